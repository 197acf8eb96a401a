"""What a guard's error lists: each function, call site and changed leaf once, and at most eight of them."""

import pytest

from explorer.ledger.causes import Misses, _joined
from explorer.ledger.guards import Compile, format_change, format_compiles, group_compiles
from explorer.ledger.keys import _is_longer
from explorer.ledger.watch import is_eager
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.key import Function, Key


def event(call, after="33", leaf="x.shape[0]", kind="shape", name="step", seconds=0.25, key=None, **more):
    reason = Reason(kind, leaf, "32" if leaf else "", after if leaf else "", **more)
    site = Place("train.py", 7, text="step(x)")
    return Event("compile", name, site, seconds, reason, f"[{name}/{call}]", call, key=key)


def compiles(*events):
    return [Compile((each,), True) for each in events]


def test_one_row_says_what_changed_what_it_took_where_and_the_cure():
    assert format_compiles(compiles(event(3, fix="pad x\nto 64"))) == (
        "  [step/3]  x.shape[0]: 32 → 33 (shape)\n"
        "      took 250 ms\n"
        "      called at  train.py, line 7:   step(x)\n"
        "      Fix: pad x\n"
        "           to 64"
    )


@pytest.mark.parametrize(
    ("afters", "then"),
    [
        (["33", "34"], "and once more: then 34"),
        (["33", "34", "34"], "and 2 times more: then 34"),
        (["33", "34", "35", "36", "37"], "and 4 times more: then 34, 35, 36, 37"),
        (["33", "34", "35", "36", "37", "38"], "and 5 times more: then 34, 35, 36, 37, …"),
    ],
)
def test_compiles_of_one_place_and_leaf_are_one_row(afters, then):
    lines = format_compiles(compiles(*(event(i, after) for i, after in enumerate(afters, 1)))).splitlines()
    assert lines[0] == "  [step/1]  x.shape[0]: 32 → 33 (shape)"
    assert lines[1] == f"      {then}"
    assert lines[2].startswith("      took ")


def test_without_a_leaf_the_reason_is_said_as_a_sentence():
    first, last = (event(call, leaf="", kind="evicted", text=text) for call, text in ((1, "gone"), (2, "again")))
    rows = format_compiles(compiles(first, last))
    # The last one says most.
    assert rows.splitlines()[:2] == ["  [step/1]  again", "      and once more"]
    assert format_change(Reason("unknown")) == "unknown"
    assert format_change(Reason("shape", "x", "", "3")) == "x: – → 3 (shape)"
    assert format_change(Reason("shape", "x", "3")) == "x: 3 → – (shape)"
    assert format_change(Reason("structure", "x", text="x is another")) == "x is another"


@pytest.mark.parametrize(
    ("count", "rest"),
    [(8, None), (9, "  … and 1 more places or reasons"), (11, "  … and 3 more places or reasons")],
)
def test_eight_places_are_listed(count, rest):
    lines = format_compiles(compiles(*(event(1, leaf=f"x[{i}]") for i in range(count)))).splitlines()
    assert sum("took" in line for line in lines) == 8
    assert (lines[-1] if lines[-1].startswith("  …") else None) == rest


def key_of(name, eager=False):
    return Key(Function(name, "train.py", 3, eager=eager))


def test_a_calls_events_are_one_compile_and_misses_and_errors_none():
    first = event(1, kind="first", leaf="", key=key_of("step"))
    events = [
        event(1, kind="first", leaf="", key=key_of("step"), seconds=0.5),
        first,
        Event("miss", "step", call=2),
        Event("compile", "step", call=3, error="ValueError"),
        event(4, key=key_of("step")),
        event(5, kind="unknown", leaf="", name="unseen"),
        event(6, kind="unknown", leaf="", name="unseen"),
        event(7, kind="first", leaf="", key=key_of("add", eager=True)),
    ]
    groups = group_compiles(events)
    assert [(group.last.call, group.again, is_eager(group.last)) for group in groups] == [
        (1, False, False), (4, True, False), (5, False, False), (6, True, False), (7, False, True),
    ]  # fmt: skip
    assert (sum(event.seconds for event in groups[0].events), groups[0].last) == (0.75, first)


@pytest.mark.parametrize(
    ("devices", "text"),
    [
        ((), ""),
        (("cpu:0",), "cpu:0"),
        (("gpu:0", "gpu:1", "gpu:2"), "gpu:0-2"),
        (("gpu:2", "gpu:3"), "gpu:2-3"),
        (("gpu:0", "gpu:2"), "gpu:0,2"),
        (("gpu:1", "gpu:0"), "gpu:1,0"),
    ],
)
def test_devices_in_a_row_are_a_range(devices, text):
    assert _joined(devices) == text


class Type:
    def __init__(self, *shape, dtype="float32"):
        self.shape, self.dtype = shape, dtype


@pytest.mark.parametrize(
    ("result", "longer"),
    [
        (Type(8, 4), False),
        (Type(9, 4), True),
        (Type(12, 4), True),  # by four at most
        (Type(13, 4), False),
        (Type(7, 4), False),
        (Type(9, 5), False),
        (Type(8, 5), True),
        (Type(9, 4, 1), False),
        (Type(9, 4, dtype="int32"), False),
    ],
)
def test_what_comes_back_a_little_longer_grows(result, longer):
    assert _is_longer(Type(8, 4), result) is longer


def test_misses_are_reported_at_the_first_the_tenth_and_the_hundredth():
    misses, wrapper = Misses(), object()
    reported = []
    for _ in range(120):
        counter = misses.count(wrapper, None, 0.5)
        if counter is not None:
            counter.first_event = counter.first_event or Event("miss", "step", start=5.0)
            event = counter.event()
            reported.append((counter.calls, event.count, event.seconds))
    assert reported == [(1, 1, 0.5), (10, 9, 4.5), (100, 90, 45.0)]
    (rest,) = misses.rest()
    assert rest.event().count == 20
    assert [*misses.rest()] == []
    assert misses.count(object(), None, 0.5).calls == 1
    misses.clear()
    assert misses.count(wrapper, None, 0.5).calls == 1


def test_a_miss_began_as_long_ago_as_it_took(monkeypatch):
    monkeypatch.setattr("explorer.ledger.causes.time", lambda: 100.0)
    counter = Misses().count(object(), None, 0.25)
    counter.first_event = Event("miss", "step")
    assert counter.event().start == 99.75
