"""A session in sentences, to the letter."""

from math import nan

import pytest

from explorer.model.results.session import SessionReport, SessionRow

NEVER = "Not watching: `%explorer` or `ex.watch()` records later compiles and their reasons."
ENDED = "The watch has ended: later compiles are missing here."


def row(name="step", compiles=1, seconds=0.5, **more):
    return SessionRow(name, compiles=compiles, trace=0.0, lower=0.0, compile=seconds, **more)


def before(name="early"):
    return SessionRow(name, basis="before", compiles=1)


@pytest.mark.parametrize(
    ("rows", "operations", "sentences"),
    [
        ((), 0, ("Nothing has compiled yet.",)),
        ((), 4, ("Nothing has compiled yet.",)),
        ((row(),), 0, ("1 function compiled once, 500 ms.",)),
        ((row(compiles=2),), 0, ("1 function compiled twice, 500 ms.",)),
        ((row(compiles=3),), 0, ("1 function compiled 3 times, 500 ms.",)),
        ((row(compiles=1_234),), 0, ("1 function compiled 1,234 times, 500 ms.",)),
        # more than half is most of it
        ((row("a", seconds=0.5), row("b", seconds=0.5)), 0, ("2 functions compiled twice, 1 s.",)),
        ((row("a", seconds=0.75), row("b", seconds=0.5)), 0, ("2 functions compiled twice, 1.25 s, most of it `a`.",)),
        # what nobody saw has no seconds
        ((row("a", seconds=0.5), row("b", seconds=nan)), 0, ("2 functions compiled twice, 500 ms, most of it `a`.",)),
        ((row("a", seconds=nan), row("b", seconds=0.5)), 0, ("2 functions compiled twice, 500 ms.",)),
        (
            (row(),),
            1,
            ("1 function compiled once, 500 ms; and 1 single operation outside of any `jit`, 250 ms.",),
        ),
        (
            (row(),),
            2,
            ("1 function compiled once, 500 ms; and 2 single operations outside of any `jit`, 250 ms.",),
        ),
        (
            (row(compiles=2, recompiles=1), row("b", 4, 0.1, recompiles=3, leaf="x.shape[0]")),
            0,
            (
                "2 functions compiled 6 times, 600 ms, most of it `step`.",
                "`b` recompiled 3 times because `x.shape[0]` varied.",
                "`step` recompiled once.",
            ),
        ),
        (
            tuple(row(f"f{at}", 1, 1.0, recompiles=9 - at) for at in range(4)),
            0,
            (
                "4 functions compiled 4 times, 4 s.",
                "`f0` recompiled 9 times.",
                "`f1` recompiled 8 times.",
                "`f2` recompiled 7 times.",
                "1 more function recompiled too.",
            ),
        ),
        (
            (row("a", errors=1), row("b", errors=2), row("c", 2, 0.1, warnings=3)),
            0,
            ("3 functions compiled 4 times, 1.1 s.", "Errors were found in `a` and `b`."),
        ),
        # three are named
        (
            tuple(row(f"f{at}", errors=1, seconds=1.0) for at in range(4)),
            0,
            ("4 functions compiled 4 times, 4 s.", "Errors were found in `f0`, `f1` and `f2`."),
        ),
        ((before(),), 0, ("`early` compiled before watching began: time unknown.",)),
        (
            (row(), *(before(f"e{at}") for at in range(3))),
            0,
            (
                "1 function compiled once, 500 ms.",
                "`e0`, `e1` and `e2` compiled before watching began: time unknown.",
            ),
        ),
        (
            tuple(before(f"e{at}") for at in range(5)),
            0,
            ("`e0`, `e1` and `e2` and 2 more compiled before watching began: time unknown.",),
        ),
    ],
)
def test_the_sentences_of_a_session(rows, operations, sentences):
    report = SessionReport(rows, operations, 0.25, "now")
    assert report.summary == sentences


@pytest.mark.parametrize(("watching", "last"), [("never", (NEVER,)), ("once", (ENDED,)), ("now", ())])
def test_what_a_session_can_t_see_it_says(watching, last):
    report = SessionReport((row(),), watching=watching)
    assert report.summary == ("1 function compiled once, 500 ms.", *last)
