"""What a person counts of a ledger, on events made by hand: calls, functions, the sentence, the axis of time, rows."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.family_counts import Storm
from explorer.model.events.key import Function, Key
from explorer.model.events.ledger import Ledger
from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger, ProcessProgram
from explorer.model.text import bar
from explorer.view.display import render
from explorer.view.ledger import Clock, picture, tables
from explorer.view.ledger.calls import (
    calls_of,
    cause_of,
    cause_of_storm,
    cure_of,
    group_by_family,
    plain,
    varied,
    verdict_of,
)
from explorer.view.ledger.message import AGAIN, HIT, MISS, Tables, notes_of
from explorer.view.ledger.terminal import tree
from explorer.view.results import process_ledger

SVG = "{http://www.w3.org/2000/svg}"
AT = Place("train.py", 12, "train.py", "y = f(x)")


def changed(before, after, leaf="x.shape[0]", fix="pad x", **more):
    return Reason("shape", leaf, str(before), str(after), fix, f"{leaf} is {after}", **more)


def call(number, *steps, function="f", reason=None, line=3, eager=False, **more):
    """The events of one call: a kind and its seconds each."""
    key = Key(Function(function, "train.py", line, eager=eager))
    given = {"reason": reason or Reason("first"), "call": number, "key": key, "id": f"[{function}/{number}]", **more}
    return [Event(kind, function, seconds=seconds, **given) for kind, seconds in steps or [("compile", 1.0)]]


def calls(*of):
    return calls_of([event for events in of for event in events])


# Calls and functions --------------------------------------------------------------------------------------------------


def test_a_call_has_the_seconds_of_each_step_and_begins_with_its_first_event():
    (one,) = calls(
        call(1, ("trace", 0.5), ("trace", 0.25), start=7.0, id=""), call(1, ("lower", 2.0), start=5.0),
        call(1, ("compile", 4.0), start=9.0, id="[later]", error="KeyboardInterrupt"),
        call(1, ("compile", 1.0), start=8.0, error="E"),
    )  # fmt: skip
    assert (one.trace, one.lower, one.compile, one.seconds, one.start) == (0.75, 2.0, 5.0, 7.75, 5.0)
    assert (one.id, one.error) == ("[f/1]", "KeyboardInterrupt")
    assert (one.is_hit, one.is_miss, one.saved) == (False, False, 0.0)


@pytest.mark.parametrize(
    ("events", "is_hit", "is_miss", "is_again"),
    [
        (call(1, ("compile", 1.0)), False, False, False),
        (call(1, ("cache-hit", 1.0)), True, False, False),
        (call(1, ("cache-hit", 1.0), reason=changed(1, 2)), True, False, True),
        (call(1, ("cache-hit", 1.0), ("compile", 1.0)), True, False, False),
        (call(1, ("miss", 1.0), reason=changed(1, 2)), False, True, False),
        (call(1, ("miss", 1.0), ("trace", 1.0), reason=changed(1, 2)), False, False, True),
    ],
)
def test_what_could_be_spared_was_compiled_and_not_for_the_first_time(events, is_hit, is_miss, is_again):
    (one,) = calls(events)
    assert (one.is_hit, one.is_miss, one.is_again) == (is_hit, is_miss, is_again)
    tables = Tables()
    tables.add(events)
    (flags,) = tables.since({})["calls"]["flags"]
    assert (bool(flags & HIT), bool(flags & MISS), bool(flags & AGAIN)) == (is_hit, is_miss, is_again)


def test_what_the_cache_spared_is_summed():
    (one,) = calls(call(1, ("cache-hit", 0.5), saved=3.0), call(1, ("trace", 0.25), saved=1.5))
    assert (one.saved, one.compile) == (4.5, 0.5)


def test_a_function_is_a_name_at_a_place_and_without_a_key_a_name():
    kinds = [call(1), call(2, line=4), call(3), call(4, function="g"), call(5, key=None), call(6, eager=True)]
    families = [one.family for one in calls(*kinds)]
    assert len(set(families)) == 5
    assert families[0] == families[2]
    assert (families[4].name, families[4].file, families[4].line) == ("f", "", 0)
    assert (families[0].file, families[0].line, families[5].eager) == ("train.py", 3, True)


def test_a_functions_sums_leave_out_misses_and_first_compiles_where_they_should():
    (group,) = group_by_family(
        calls(call(1, ("compile", 4.0)), call(2, ("trace", 2.0), reason=changed(1, 2)), call(3, ("miss", 9.0)),
              call(4, ("compile", 0.5), reason=changed("a", "b", "n")))
    )  # fmt: skip
    assert (group.seconds, group.again, group.misses, group.compiles, len(group.calls)) == (6.5, 2.5, 1, 3, 4)
    assert [one.number for one in group.cause] == [2]  # what cost most


def test_functions_stand_by_their_cost_then_by_name_and_eager_operations_are_one():
    groups = group_by_family(
        calls(call(1, ("compile", 1.0), function="b"), call(2, ("compile", 1.0), function="a"),
              call(3, ("compile", 0.75), function="add", eager=True),
              call(4, ("compile", 0.75), function="mul", eager=True))
    )  # fmt: skip
    assert [(group.family.name, len(group.calls)) for group in groups] == [
        ("eager operations", 2), ("a", 1), ("b", 1),
    ]  # fmt: skip


# The sentence ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ([], "empty", "Nothing has compiled yet."),
        ([call(1)], "once", "`f` compiled once: 1 s."),
        ([call(1), call(2, function="g")], "once", "2 functions compiled, no recompiles: 2 s."),
        ([call(1, eager=True), call(2, eager=True)], "once", "Only eager operations compiled: 2 s."),
        ([call(1), call(2, eager=True)], "once", "`f` compiled once: 2 s."),
        # Eager operations that compile again, and calls that only missed, are no function's recompiles.
        ([call(1), call(2, eager=True, reason=changed(1, 2))], "once", "`f` compiled once: 2 s."),
        ([call(1), call(2, ("miss", 1.0), function="g")], "once", "`f` compiled once: 1 s."),
        ([call(1), call(2, reason=changed(1, 2))], "again", "`f` compiled twice: 2 s of 2 s spent compiling"),
        (
            [call(1), call(2, reason=changed(1, 2)), call(3, ("compile", 3.0), function="g")],
            "again",
            "`f` compiled twice: 2 s of 5 s spent compiling",
        ),
    ],
)
def test_the_sentence(given, kind, text):
    verdict = verdict_of(calls(*given))
    assert (verdict.kind, plain(verdict.text)) == (kind, text)
    assert bool(verdict.cause) == bool(verdict.cure) == (kind == "again")


def test_the_cause_is_the_reason_that_cost_most_and_the_cure_the_latest_one_of_it():
    (group,) = group_by_family(
        calls(call(1), call(2, reason=changed(1, 2, fix="old")), call(3, reason=changed(2, 3, fix="new")),
              call(4, reason=changed(3, 4, fix="")), call(5, ("compile", 2.5), reason=changed("a", "b", "n")))
    )  # fmt: skip
    assert plain(cause_of(group)) == "`x.shape[0]` varied: `1 … 4 (4 values)`"
    assert cure_of(group) == "new"


def test_a_cause_without_an_argument_is_its_sentence():
    (group,) = group_by_family(calls(call(1), call(2, reason=Reason("guard", text="the global `A` changed"))))
    assert cause_of(group) == [("the global ", False), ("A", True), (" changed", False)]
    (group,) = group_by_family(calls(call(1), call(2, reason=changed("", "", "n"))))
    assert plain(cause_of(group)) == "n is "
    (group,) = group_by_family(calls(call(1)))
    assert (cause_of(group), cure_of(group)) == ([], "")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([(1, 2)], "1 → 2"),
        ([(3, -1), (-1, 2)], "-1 … 3 (3 values)"),
        ([("a", "b"), ("b", "c")], "a → b → c"),
        ([("a", "b"), ("b", "c"), ("c", "d")], "a → b → c … (4 values)"),
        ([(1, 2), (2, "b")], "1 → 2 → b"),
        ([("", "b")], "b"),
    ],
)
def test_what_varied_is_its_ends_where_it_is_numbers_and_its_first_values_else(values, text):
    made = [call(n, reason=changed(before, after)) for n, (before, after) in enumerate(values, 1)]
    assert varied(calls(*made)) == text


@pytest.mark.parametrize(
    ("reason", "leaf", "changes", "text"),
    [
        (changed(7, 8), "x", 2, "`x` changed twice, lately `7 → 8`"),
        (changed("", 8), "x", 1, "`x` changed once, lately `– → 8`"),
        (changed("", ""), "x", 1234, "`x` changed 1,234 times"),
        (changed(7, 8), "", 2, "x.shape[0] is 8"),
    ],
)
def test_the_cause_of_a_storm(reason, leaf, changes, text):
    storm = Storm("f", (), 3, 1.0, changes, replace(reason, leaf=leaf), None)
    assert plain(cause_of_storm(storm)) == text


# Time -----------------------------------------------------------------------------------------------------------------


def clock(*spans):
    return Clock(
        calls(*(call(n, ("compile", until - since), start=since) for n, (since, until) in enumerate(spans, 1)))
    )


@pytest.mark.parametrize(
    ("spans", "places"),
    [
        # A wait of 4 s between two of a second: 4 % of what was busy is left of it.
        ([(0, 1), (5, 6)], {-1: 0, 0: 0, 0.5: 0.5, 1: 1, 3: 1, 5: 1.08, 5.5: 1.58, 6: 2.08, 99: 2.08}),
        # A second is no long wait, and from there on a fifth of what was busy is none.
        ([(0, 1), (2, 3)], {1: 1, 1.5: 1.5, 2: 2, 3: 3}),
        ([(0, 1), (2.25, 3.25)], {2.25: 1.08}),
        ([(0, 10), (14, 24)], {14: 14}),
        ([(0, 10), (14.5, 24.5)], {14.5: 10.8}),
        # One within another ends no stretch.
        ([(0, 10), (2, 3), (10.5, 11)], {10.5: 10.5}),
        ([(100, 101), (105, 106)], {100: 0, 105: 1.08}),
        ([(5, 6), (0, 1)], {5: 1.08}),
        ([], {7: 0}),
    ],
)
def test_a_moment_stands_as_far_as_was_busy_before_it(spans, places):
    made = clock(*spans)
    assert {moment: made.at(moment) for moment in places} == pytest.approx(places)


@pytest.mark.parametrize(
    ("spans", "ticks"),
    [
        ([(100, 108)], [(n, f"{n} s") for n in range(9)]),
        ([(0, 10)], [(n, f"{n} s") for n in range(0, 11, 2)]),
        ([(0, 0.03)], [(n / 200, f"{n * 5 / 1000:.3g} s") for n in range(7)]),
        # The second stretch begins too near to the end of the first one: its next step has the tick.
        ([(0, 1), (5, 6)], [(0, "0 s"), (0.5, "0.5 s"), (1, "1 s"), (1.58, "5.5 s"), (2.08, "6 s")]),
        (
            [(0, 1), (5000, 5001)],
            [(0, "0 s"), (0.5, "0.5 s"), (1, "1 s"), (1.58, "5,000 s"), (2.08, "5,001 s")],
        ),
        ([(3, 3)], [(0, "0 s")]),
        ([], []),
    ],
)
def test_ticks_are_even_steps_with_the_seconds_since_the_first_compile(spans, ticks):
    made = clock(*spans).ticks()
    assert [text for _, text in made] == [text for _, text in ticks]
    assert [at for at, _ in made] == pytest.approx([at for at, _ in ticks])


# Rows -----------------------------------------------------------------------------------------------------------------


def test_the_tables_have_what_each_function_cost_and_each_compile_that_was_not_the_first():
    functions, again = tables(
        calls(call(1, ("trace", 0.25), ("lower", 0.5), ("compile", 1.0), start=10.0, call_site=AT),
              call(2, ("compile", 2.0), reason=changed(7, 8), start=12.5, call_site=AT),
              call(3, ("compile", 0.5), function="g", start=13.0))
    )  # fmt: skip
    assert functions.rows == [
        ("f", "2", "3.75 s", "250 ms", "500 ms", "3 s", "`x.shape[0]` varied: `7 → 8`", "pad x", "train.py, line 12"),
        ("g", "1", "500 ms", "0 s", "0 s", "500 ms", "", "", ""),
    ]
    assert again.rows == [("[f/2]", "+2.5 s", "2 s", "x.shape[0]", "7", "8", "train.py, line 12", "y = f(x)")]
    assert again.more == ""


@pytest.mark.parametrize(("count", "more"), [(100, ""), (101, "and 1 more")])
def test_of_many_compiles_a_hundred_are_rows(count, more):
    made = [call(1), *(call(n + 2, reason=Reason("guard", text="why"), id="") for n in range(count))]
    _, again = tables(calls(*made))
    assert (len(again.rows), again.more) == (100, more)
    assert again.rows[0][:4] == ("f", "+0.0 s", "1 s", "why")


def drawn(svg):
    root = ElementTree.fromstring(svg)
    boxes = [part for part in root.iter(f"{SVG}rect") if part.get("class") != "ground"]
    sizes = [tuple(float(box.get(name)) for name in ("x", "y", "width", "height")) for box in boxes]
    texts = [(float(text.get("x")), float(text.get("y")), text.text) for text in root.iter(f"{SVG}text")]
    return sizes, texts, (float(root.get("width")), float(root.get("height")))


def test_in_the_picture_a_bar_is_as_long_as_its_step_took_beside_the_longest_function():
    made = calls(call(1, ("trace", 1.0), ("lower", 2.0), ("compile", 1.0)), call(2, ("compile", 1.0), function="g"),
                 call(3, ("compile", 1.0), reason=changed(7, 8)))  # fmt: skip
    sizes, texts, (width, height) = drawn(picture(made))
    # f took 5 s, which are 250 pixels; its bars follow each other, and g's is a fifth.
    rows = [[size for size in sizes if size[1] == y and size[3] == 14] for y in sorted({size[1] for size in sizes})]
    assert [[(x, wide) for x, _, wide, _ in row] for row in rows if row] == [
        [(206, 50), (256, 100), (356, 100)], [(206, 0), (206, 0), (206, 50)],
    ]  # fmt: skip
    shown = [text for *_, text in texts]
    assert shown[:3] == [
        "f compiled twice: 5 s of 6 s spent compiling", "x.shape[0] varied: 7 → 8", "fix: pad x",
    ]  # fmt: skip
    assert shown[3:-3] == ["f", "×2", "5 s", "x.shape[0] varied: 7 → 8", "g", "×1", "1 s"]
    assert shown[-3:] == ["trace", "lower", "XLA"]
    beside = {text: x for x, _, text in texts[3:]}
    assert beside["5 s"] == 456 + 8
    assert beside["1 s"] == 256 + 8
    lines = [y for _, y, _ in texts]
    assert lines == sorted(lines)
    assert all(0 < x < width and 0 < y < height for x, y, _ in texts)


@pytest.mark.parametrize(("count", "more"), [(12, None), (13, "and 1 more: 1 s"), (14, "and 2 more: 3 s")])
def test_twelve_functions_are_drawn_and_what_the_others_cost_is_summed(count, more):
    made = calls(*(call(n, ("compile", float(n)), function=f"f{n}") for n in range(1, count + 1)))
    sizes, texts, (_, height) = drawn(picture(made, invites=True))
    assert len([size for size in sizes if size[3] == 14]) == 3 * 12
    assert [text for *_, text in texts if text.startswith("and ")] == [more] * bool(more)
    assert texts[-1][2] == "trust the notebook for the interactive view"
    assert texts[-1][1] < height


def test_in_a_terminal_each_recompile_has_its_change_of_many_the_first_six_and_the_last():
    def lines(count):
        ledger = Ledger()
        for n in range(1, count + 2):
            ledger.add(call(n, reason=changed(n - 1, n) if n > 1 else None))
        shown = [line.strip() for line in render(tree(ledger), 160).splitlines()]
        return [line for line in shown if line.startswith(("[f/", "… "))]

    every = [f"[f/{n}] x.shape[0]: {n - 1} → {n}" for n in range(2, 12)]
    assert lines(1) == []  # the sentence above has it
    assert lines(2) == every[:2]
    assert lines(6) == every[:6]
    assert lines(7) == every[:7]
    assert lines(8) == [*every[:6], "… 1 more", every[7]]


@pytest.mark.parametrize(
    ("share", "shown"),
    [
        (0.0, "▏"),
        (0.5, "██████"),
        (1.0, "████████████"),
        (2.0, "████████████"),
        (1 / 96, "▏"),
        (9 / 96, "█▏"),
        (7 / 96, "▉"),
        (0.001, "▏"),
    ],
)
def test_a_bar_in_a_terminal_is_twelve_letters_in_eighths_and_never_nothing(share, shown):
    assert bar(share) == shown


@pytest.mark.parametrize("share", [8.0, 1e300, float("inf"), float("nan"), -1.0])
def test_a_bar_is_never_longer_than_the_whole(share):
    assert 1 <= len(bar(share)) <= len(bar(1.0)) == 12


# What is left out -----------------------------------------------------------------------------------------------------


def test_notes_say_what_is_not_shown():
    assert notes_of(Ledger()) == []
    ledger = Ledger(limit=1)
    ledger.add(tuple(event for n in range(1, 4) for event in call(n)))
    assert notes_of(ledger, 1200) == [
        "The oldest 2 events were dropped: watch(limit=…) keeps more.",
        "The oldest 1,200 events are not in this view; the ledger has them.",
    ]


# Many processes -------------------------------------------------------------------------------------------------------

PROGRAM = ProcessProgram(
    "f", "train.py", 3, "train.py, line 12", (("x", "float32[8]"), ("n", "int32[]")), processes=((0, 2),),
    compiles=1200, seconds=6.0, slowest=2.5, slowest_process=1,
)  # fmt: skip


def test_a_program_of_many_processes_is_a_row():
    ledger = ProcessLedger(("host0", "host1", "host2"), (PROGRAM,))
    assert process_ledger(ledger).tables[-1].rows[0] == (
        PROGRAM.place, "train.py, line 12", "x: float32[8], n: int32[]", f"{PROGRAM.count} of 3", "1,200", "6 s",
        "2.5 s in host1",
    )  # fmt: skip


@pytest.mark.parametrize(("count", "shown"), [(60, "x: " + "a" * 57), (61, "x: " + "a" * 56 + "…")])
def test_long_arguments_are_cut(count, shown):
    program = ProcessProgram("f", arguments=(("x", "a" * (count - 3)),))
    assert process_ledger(ProcessLedger(("h",), (program,))).tables[-1].rows[0][2] == shown


@pytest.mark.parametrize(
    ("given", "row"),
    [
        ((None, "n", "1", "", True), ("n", "no such program", "1", "yes: they may deadlock")),
        ((0, "", "", "2", False), ("–", "2", "–", "not known")),
    ],
)
def test_who_differs_is_a_row(given, row):
    other, what, usual, here, is_shared = given
    difference = ProcessDifference(0, other, ((1, 1),), 3, what, usual, here, is_shared, "a sentence")
    ledger = ProcessLedger(("h0", "h1"), (replace(PROGRAM, slowest_process=0),), (difference,))
    assert process_ledger(ledger).tables[0].rows[0] == ("process h1", PROGRAM.place, *row)


@pytest.mark.parametrize(("count", "more"), [(20, False), (21, True)])
def test_as_text_twenty_programs_are_lines_and_the_rest_is_counted(count, more):
    ledger = ProcessLedger(("h0", "h1", "h2"), (PROGRAM,) * count, notes=("a note",))
    lines = ledger.to_text().splitlines()
    assert sum("x: float32[8]" in line for line in lines) == 20
    assert lines[-1] == "a note"
    assert (lines[-2] == "1 more: .to_frame() has all of them.") == more
