"""Hot paths in words: each sentence worked out by hand."""

import pytest

from explorer.analysis.session_summary import headline, hot_paths_text, times_text
from explorer.model.results.hot_paths import HotPaths, HotRow


def compiled(name="step", *, calls=100, eager=0.004, now=0.001, **more):
    return HotRow(name, state="compiled", compiled_calls=calls, eager_seconds=eager, compiled_seconds=now, **more)


def eager(name="log", **more):
    return HotRow(name, state="eager", reason="it prints", **more)


BARE = HotRow("bare", state="compiled")
COMPARING = HotRow("half", state="comparing")
COUNTING = HotRow("cold", state="counting", eager_calls=3)
STEP = "4.0× as fast (4 ms → 1 ms)"


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "no function was called often"),
        ([compiled()], f"`step` runs compiled, {STEP}; about 300 ms saved, inferred"),
        ([compiled(now=0.004)], "`step` runs compiled, 1.00× as fast (4 ms → 4 ms)"),  # nothing saved
        ([BARE], "`bare` runs compiled"),
        ([compiled(), BARE], f"both hot functions run compiled: `step` {STEP}; about 300 ms saved, inferred"),
        ([BARE, BARE, BARE], "all 3 hot functions run compiled"),
        # The one that saves most is named, and all that is saved is summed.
        (
            [compiled("quick", calls=1, eager=1.0, now=0.75), compiled()],
            f"both hot functions run compiled: `step` {STEP}; about 550 ms saved, inferred",
        ),
        ([BARE, eager()], "1 of 2 hot functions runs compiled; 1 stays eager"),
        ([BARE, BARE, eager(), eager()], "2 of 4 hot functions run compiled; 2 stay eager"),
        ([eager(), eager()], "2 hot functions, none compiled; 2 stay eager"),
        ([eager(), COMPARING], "1 hot function, none compiled; 1 stays eager; 1 undecided when it ended"),
        ([COMPARING, COMPARING], "2 hot functions, none compiled"),
        ([BARE, COMPARING, COMPARING], "`bare` runs compiled; 2 undecided when it ended"),
        ([COUNTING], "1 hot function, none compiled"),
        ([COUNTING, BARE], "`bare` runs compiled"),
        # What runs in another's program is neither compiled nor undecided.
        ([BARE, HotRow("part", state="comparing", inside="bare")], "`bare` runs compiled"),
        ([HotRow("part", state="compiled", inside="other")], "`part` runs compiled"),
    ],
)
def test_what_hot_paths_brought_is_one_sentence(rows, text):
    assert headline(HotPaths(tuple(rows))) == text


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        ([], "no function was called often so far"),
        ([COMPARING], "1 hot function, none compiled yet"),
        ([COUNTING, COUNTING], "2 hot functions, none compiled yet"),
        ([eager()], "1 hot function, none compiled; 1 stays eager"),
        ([eager(), COMPARING], "2 hot functions, none compiled yet; 1 stays eager"),
        ([BARE, COMPARING], "1 of 2 hot functions runs compiled"),
    ],
)
def test_while_it_is_on_nothing_is_decided_for_good(rows, text):
    assert headline(HotPaths(tuple(rows), is_on=True)) == text


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (HotRow("f"), ""),
        (HotRow("f", eager_seconds=0.002), "2 ms"),
        (HotRow("f", eager_seconds=0.002, compiled_seconds=0.001), "2 ms → 1 ms"),
    ],
)
def test_only_times_that_were_measured_are_shown(row, text):
    assert times_text(row) == text


def test_a_line_for_each_function():
    rows = (
        compiled(calls=1000, misses={"SCALE": 1200, "rate": 1}),
        eager(eager_calls=1, reason_file="/a/train.py", reason_line=7, cure="leave the print out"),
        eager("bare"),
        HotRow("part", state="compiled", compiled_calls=2, inside="step"),
    )
    text = hot_paths_text(HotPaths(rows, notes=("a note",), labels={"/a/train.py": "cell [3]"}))
    assert text.splitlines()[1:] == [
        "  step  compiled  4 ms → 1 ms  4.0×  1,000 calls, 1,201 ran uncompiled, as `SCALE`, `rate` had changed",
        "  log   eager                        after 1 call: it prints (cell [3], line 7)",
        "        fix: leave the print out",
        "  bare  eager                        it prints",
        "  part  inside                       2 calls: its calls are in the compiled program of `step`, which calls it",
        "  a note",
    ]


@pytest.mark.parametrize(("count", "last"), [(12, "  f11  compiled      0 calls"), (13, "  … and 1 function more")])
def test_of_many_functions_the_first_twelve_have_a_line(count, last):
    lines = hot_paths_text(HotPaths(tuple(HotRow(f"f{at}", state="compiled") for at in range(count)))).splitlines()
    assert lines[-1] == last
    assert len(lines) == 1 + 12 + (count > 12)
