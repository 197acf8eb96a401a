"""How what is known of a function becomes its row, on values made by hand."""

from dataclasses import replace
from math import isnan, nan

import pytest

from explorer.model.capture import Capture
from explorer.model.events.event import Event, Reason
from explorer.model.events.key import Function, Key
from explorer.model.events.ledger import Ledger
from explorer.model.findings import Finding, Findings
from explorer.model.results.hot_paths import HotRow
from explorer.model.results.profile import Profile
from explorer.model.results.session import SessionRow
from explorer.model.results.timing import Samples, Timing
from explorer.model.stage import Durations
from explorer.sessions import session as collect
from explorer.sessions.session import _Collected

ONCE = Durations(1.0, 0.5, 2.0)


@pytest.fixture
def collected():
    return _Collected(None)


def capture(function="f", line=10, **more):
    durations = more.pop("durations", ONCE)
    return Capture(function, "a.py", (), durations, line, "(x: f32[4])", **more)


def ledger(*events):
    made = Ledger()
    for event in events:
        made.add((event,))
    return made


def event(kind, call, function="f", seconds=1.0, reason=None, file="a.py", eager=False):
    key = Key(Function(function, file, 10 if file else 0, eager=eager))
    return Event(kind, function, seconds=seconds, call=call, key=key, reason=reason or Reason("first"))


def changed(leaf="x.shape[0]", before="7", after="8", text="why"):
    return Reason("shape", leaf, before, after, "pad it", text)


# Who a function is ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "line", "is_same"),
    [
        ("f", 10, True),
        ("f", 17, True),  # its decorators stand above the `def`
        ("f", 3, True),
        ("f", 18, False),
        ("f", 2, False),
        ("g", 10, False),
        ("<lambda>", 12, False),
    ],
)
def test_a_function_is_a_name_at_a_place_within_its_decorators(collected, name, line, is_same):
    known = collected.of("<lambda>" if name == "<lambda>" else "f", "a.py", 10)
    assert (collected.of(name, "a.py", line) is known) == is_same
    assert collected.of("f", "b.py", 10) is not known


def test_where_two_functions_have_a_name_a_line_between_them_is_a_third(collected):
    collected.of("f", "a.py", 10)
    collected.of("f", "a.py", 30)
    assert collected.of("f", "a.py", 12).row.line == 12


def test_a_name_alone_means_the_latest_function_that_has_it(collected):
    collected.of("f", "a.py", 10)
    latest = collected.of("f", "b.py", 10)
    collected.of("g", "b.py", 20)
    assert collected.of_name("f") is latest
    unknown = collected.of_name("h")
    assert (unknown.row.name, unknown.row.line, unknown.row.place, unknown.row.basis) == ("h", 0, "", "explored")
    assert latest.row.place == "b.py, line 10"


# What was returned ----------------------------------------------------------------------------------------------------


def test_each_capture_of_a_function_is_a_compile_and_its_seconds_are_added(collected):
    first, second = capture(), capture(durations=Durations(0.25, 0.5, 1.0))
    for number, value in enumerate((first, second, first)):  # the same one was displayed again
        collected.add(number, value)
    (function,) = collected.functions.values()
    row = function.row
    assert (row.compiles, row.trace, row.lower, row.compile, row.basis) == (2, 1.25, 1.0, 3.0, "explored")
    assert [(item.kind, item.key, item.text) for item in function.items["capture"]] == [
        ("capture", f"capture:{number}", "capture (x: f32[4])") for number in range(3)
    ]


def test_a_capture_that_failed_is_no_compile_and_one_of_a_watched_function_is_counted_there(collected):
    collected.add(1, capture(failure="trace failed"))
    (function,) = collected.functions.values()
    assert (function.row.compiles, isnan(function.row.trace)) == (0, True)
    function.row = replace(function.row, basis="watched", compiles=5, trace=0.5)
    collected.add(2, capture())
    assert (function.row.compiles, function.row.trace) == (5, 0.5)


def test_a_long_signature_is_cut_on_its_button(collected):
    for number, wide in enumerate((40, 41)):
        collected.add(number, Capture("f", "a.py", (), ONCE, 10, "x" * wide))
    (function,) = collected.functions.values()
    assert [item.text for item in function.items["capture"]] == ["capture " + "x" * 40, "capture " + "x" * 39 + "…"]


def test_the_latest_findings_count_by_severity_and_none_leave_no_button(collected):
    rows = [Finding("r", severity, "m", "a.py") for severity in ("error", "warning", "warning", "note", "note", "note")]
    collected.add(1, Findings(rows[1:3], "f"))
    collected.add(2, Findings(rows, "f"))
    (function,) = collected.functions.values()
    assert (function.row.errors, function.row.warnings, function.row.notes) == (1, 2, 3)
    assert [(item.key, item.text) for item in function.items["findings"]] == [("findings:2", "6 findings")]
    collected.add(3, Findings([], "f"))
    assert (function.row.errors, function.row.warnings, function.row.notes) == (0, 0, 0)
    assert "findings" not in function.items


def test_a_row_lists_the_six_latest_of_each_kind(collected):
    for number in range(8):
        collected.add(number, capture())
    collected.of_name("f").add("ledger", "ledger:f", "ledger")
    (function,) = collected.functions.values()
    assert [item.key for item in function.finished().items] == [*(f"capture:{n}" for n in range(2, 8)), "ledger:f"]


def test_how_long_a_call_takes_is_what_was_measured_last(collected):
    steady = Samples((0.25,) * 7)
    collected.add(1, Timing("f", "()", Samples((1.0,)), steady))
    (function,) = collected.functions.values()
    assert function.row.run == 0.25
    assert [item.text for item in function.items["timing"]] == ["timing 250 ms"]
    profile = Profile("f", "()", 1, 0.75, 0.5, 0.0, (), (), 0.0)
    collected.add(2, profile)
    assert function.row.run == 0.75
    collected.add(3, replace(profile, plain_seconds=0.5))  # while nothing recorded
    assert function.row.run == 0.5
    assert [item.text for item in function.items["profile"]] == ["profile", "profile"]


@pytest.mark.parametrize(
    ("state", "is_known", "rows"),
    [("compiled", False, 1), ("compiled", True, 1), ("eager", False, 0), ("eager", True, 1), ("counting", True, 1)],
)
def test_hot_paths_add_what_they_compiled_and_say_of_known_functions_what_stays_eager(state, is_known, rows):
    collected = _Collected(None)
    if is_known:
        collected.add(1, capture("step"))
    hot = HotRow("Model.step", "a.py", 10, state, variants=3, compile_seconds=0.5, compiled_seconds=0.125)
    collected.add_hot(7, type("Paths", (), {"functions": (hot,)}))
    made = [function.row for function in collected.functions.values()]
    assert len(made) == rows
    if rows and state != "counting":
        assert (made[0].name, made[0].hot, made[0].compiles, made[0].compile) == ("step", state, 3, 0.5)
        assert (made[0].trace, made[0].lower, made[0].run) == (0.0, 0.0, 0.125)
    if state == "counting":
        assert (made[0].hot, made[0].compiles) == ("", 1)


# The ledger -----------------------------------------------------------------------------------------------------------


def test_a_watched_function_has_its_counts_its_seconds_and_why(collected):
    collected.add_ledger(
        ledger(event("trace", 1, seconds=0.25), event("lower", 1, seconds=0.5), event("compile", 1, seconds=2.0),
               event("trace", 2, seconds=0.25, reason=changed()), event("cache-hit", 2, seconds=1.0, reason=changed()))
    )  # fmt: skip
    (function,) = collected.functions.values()
    row = function.row
    assert (row.name, row.file, row.line, row.place, row.basis) == ("f", "a.py", 10, "a.py, line 10", "watched")
    assert (row.compiles, row.recompiles, row.trace, row.lower, row.compile) == (2, 1, 0.5, 0.5, 3.0)
    assert (row.leaf, row.why, row.cure) == ("x.shape[0]", "`x.shape[0]` changed once (lately 7 → 8)", "pad it")
    assert [(item.kind, item.text) for item in function.finished().items] == [
        ("ledger", "ledger"), ("compiled", "capture (last compile)"),
    ]  # fmt: skip
    collected.add(1, capture())
    assert [item.kind for item in function.finished().items] == ["ledger", "capture"]  # the user's own says more


def test_operations_are_summed_and_what_only_missed_is_no_row(collected):
    collected.add_ledger(
        ledger(event("compile", 1, "add", 0.5, eager=True), event("cache-hit", 2, "mul", 0.25, eager=True),
               event("miss", 3, "g"), event("trace", 4, "h"))
    )  # fmt: skip
    assert (collected.operations, collected.operation_seconds) == (2, 0.75)
    assert [name for name, *_ in collected.functions] == ["h"]
    (function,) = collected.functions.values()
    assert [item.kind for item in function.finished().items] == ["ledger"]  # no program came of it


def test_what_the_ledger_dropped_is_a_note(collected):
    small = Ledger(limit=1)
    small.add(tuple(event("compile", n) for n in range(1, 4)))
    collected.add_ledger(small)
    assert collected.notes == ["The ledger has dropped its oldest 2 events; counts are whole."]
    unknown = _Collected(None)
    unknown.add_ledger(ledger(event("compile", 1, file="")))
    assert [function.row.place for function in unknown.functions.values()] == [""]
    assert unknown.notes == []


@pytest.mark.parametrize(
    ("reasons", "why"),
    [
        ([], ("", "")),
        ([changed()], ("`x.shape[0]` changed once (lately 7 → 8)", "pad it")),
        ([changed()] * 2, ("`x.shape[0]` changed twice (lately 7 → 8)", "pad it")),
        ([changed(before="", after="8")] * 3, ("`x.shape[0]` changed 3 times (lately – → 8)", "pad it")),
        ([changed(before="7", after="")], ("`x.shape[0]` changed once (lately 7 → –)", "pad it")),
        ([changed(before="", after="")], ("`x.shape[0]` changed once", "pad it")),
        ([changed(leaf="", text="the global `A` changed")], ("the global `A` changed", "pad it")),
    ],
)
def test_why_a_function_compiled_again(reasons, why):
    made = ledger(event("compile", 1), *(event("compile", n, reason=reason) for n, reason in enumerate(reasons, 2)))
    assert collect._why(made.family_counts[0]) == why


def test_the_dearest_stand_first_those_before_any_watch_last():
    def row(name, basis="watched", seconds=nan):
        return SessionRow(name, basis=basis, trace=seconds, lower=0.0, compile=0.0)

    rows = [row("d", "before", 9.0), row("c"), row("b"), row("z", seconds=1.0), row("y", "explored", 2.0)]
    assert [each.name for each in sorted(rows, key=collect._by_cost)] == ["y", "z", "b", "c", "d"]


def test_the_report_says_whether_anybody_watches(collected):
    collected.add(1, capture())
    assert collected.report().watching == "never"
