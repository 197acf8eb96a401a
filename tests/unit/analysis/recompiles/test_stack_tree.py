"""What compiled, as a tree of the user's stacks: each figure added by hand."""

from explorer.model.events.event import Event, Place
from explorer.model.events.key import Function, Key
from explorer.model.events.ledger import Ledger

MAIN, LOOP = Place("train.py", 9, function="main"), Place("train.py", 4, function="loop")
STEP = Key(Function("step", "train.py", 3))


def ledger_of(*events):
    ledger = Ledger()
    ledger.add(events)
    return ledger


def event(kind, seconds, number, id="[step/0]", *, stack=(LOOP, MAIN), key=STEP, **more):
    return Event(kind, more.pop("function", "step"), seconds=seconds, id=id, call=number, stack=stack, key=key, **more)


def rows(ledger):
    """Depth, what stands there, how many calls, seconds of its own, seconds in all, and its compiles."""
    return [
        (depth, str(node.place or node.function), node.count, node.self_seconds, node.seconds, node.ids)
        for depth, node in ledger.tree()
    ]


def test_each_frame_has_what_was_compiled_from_it_and_below_it():
    ledger = ledger_of(
        event("trace", 0.25, 1),
        event("lower", 0.5, 1),
        event("compile", 1.0, 1),
        event("compile", 2.0, 2, "[step/1]", stack=(MAIN,)),
        event("miss", 64.0, 2, "[step/1]", stack=(MAIN,)),  # nothing was built
        event("cache-hit", 4.0, 3, "[step/2]"),
    )
    assert rows(ledger) == [
        (0, "", 3, 0.0, 7.75, []),
        (1, "train.py, line 9", 3, 2.0, 7.75, []),
        (2, "train.py, line 4", 2, 5.75, 5.75, []),
        (3, "step", 2, 5.75, 5.75, ["[step/0]", "[step/2]"]),
        (2, "step", 1, 2.0, 2.0, ["[step/1]"]),
    ]


def test_events_of_no_known_call_are_a_call_each():
    ledger = ledger_of(
        event("compile", 1.0, 0), event("compile", 1.0, 0), event("trace", 1.0, 1), event("lower", 1.0, 2)
    )
    assert [row[2] for row in rows(ledger)] == [4, 4, 4, 4]
    same = ledger_of(event("trace", 1.0, 2), event("lower", 1.0, 2))
    assert [row[2] for row in rows(same)] == [1, 1, 1, 1]
    assert rows(same)[-1][-1] == ["[step/0]"]


def test_what_has_no_stack_hangs_at_its_call_or_at_the_root():
    ledger = ledger_of(
        event("compile", 1.0, 1, stack=(), call_site=LOOP),
        event("compile", 2.0, 2, "", stack=(), function="f", key=None),
    )
    assert rows(ledger) == [
        (0, "", 2, 2.0, 3.0, []),
        (1, "train.py, line 4", 1, 1.0, 1.0, []),
        (2, "step", 1, 1.0, 1.0, ["[step/0]"]),
        (1, "f", 1, 2.0, 2.0, []),
    ]


def test_each_process_has_a_branch_of_its_own():
    ledger = ledger_of(
        event("compile", 1.0, 1, process="host0"),
        event("compile", 2.0, 1, process="host1"),
        event("compile", 4.0, 2, "[step/1]", process="host1"),
    )
    assert rows(ledger) == [
        (0, "", 3, 0.0, 7.0, []),
        (1, "host0", 1, 0.0, 1.0, []),
        (2, "train.py, line 9", 1, 0.0, 1.0, []),
        (3, "train.py, line 4", 1, 1.0, 1.0, []),
        (4, "step", 1, 1.0, 1.0, ["[step/0]"]),
        (1, "host1", 2, 0.0, 6.0, []),
        (2, "train.py, line 9", 2, 0.0, 6.0, []),
        (3, "train.py, line 4", 2, 6.0, 6.0, []),
        (4, "step", 2, 6.0, 6.0, ["[step/0]", "[step/1]"]),
    ]
    assert [(node.function, node.process) for _, node in ledger.tree() if node.function == "step"] == [
        ("step", "host0"),
        ("step", "host1"),
    ]
