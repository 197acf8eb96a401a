"""What a long session remembers of its functions."""

from explorer.analysis.recompiles.reasons import History, explain
from explorer.model.events.key import Function, Key, Leaf
from explorer.model.events.leaves import Contents, LeafColumns


def test_a_function_in_use_is_remembered_however_many_others_come():
    history, step = History(), Key(Function("step", identity=1))
    history.add(step)
    for other in range(2_000):
        history.add(Key(Function(f"other_{other}", identity=2 + other)))
        if other % 500 == 0:
            assert history.earlier(step), other
    assert history.earlier(step) == [step]


def test_one_that_nobody_uses_is_forgotten():
    history, old = History(), Key(Function("old", identity=1))
    history.add(old)
    for other in range(2_000):
        history.add(Key(Function(f"other_{other}", identity=2 + other)))
    assert not history.earlier(old)


def sized(size, contents):
    return Key(Function("step", identity=1), LeafColumns.of([Leaf("x", (size,), "float32")], contents))


def test_a_call_is_recognized_however_its_contents_are_numbered():
    history, first = History(), sized(3, Contents())
    history.add(first)
    others = Contents()  # as after tens of thousands of them
    for size in range(4, 104):
        history.add(sized(size, others))
    assert history.earlier(sized(3, Contents()))[-1] is first
    assert all(key.leaves[0].shape != (3,) for key in history.earlier(sized(200, Contents())))


def test_of_a_call_that_came_before_the_others_were_not_what_changed():
    history, contents = History(), Contents()
    for size in (8, 16):
        history.add(sized(size, contents))
    again = sized(8, contents)
    assert explain(again, history.earlier(again), frozenset({"trace", "lower", "compile"})).kind == "unknown"
