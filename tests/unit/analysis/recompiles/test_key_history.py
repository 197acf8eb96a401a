"""What a long session remembers of its functions."""

from explorer.analysis.recompiles.key_history import History
from explorer.model.events.key import Function, Key


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
