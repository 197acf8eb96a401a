"""A program that runs hot does what it does when nobody looks: results, prints, errors, what it leaves behind."""

import jax
import numpy as np
import pytest

from explorer.hotpath.hot import HotFunction, Options
from tests.unit.hotpath.programs import FINE, TRAPS


def outcome(call):
    """What a call gave or raised, as something that can be compared."""
    try:
        return plain(call())
    except Exception as error:
        return type(error), str(error).splitlines()[:1]


def plain(result):
    leaves, structure = jax.tree.flatten(result)
    return str(structure), [
        (type(leaf).__name__, str(getattr(leaf, "dtype", "")), getattr(leaf, "weak_type", None), value(leaf))
        for leaf in leaves
    ]


def value(leaf):
    if not hasattr(leaf, "dtype"):
        return leaf
    array = np.asarray(jax.random.key_data(leaf) if jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf)
    return array.shape, np.asarray(array, np.float64).round(4).tolist()


def played(make, capsys, is_hot):
    """All that a program does: what its calls give, what is printed, what it leaves behind."""
    function, calls, left = make()
    hot = HotFunction(function, Options(1, 0.0, lambda work: work())) if is_hot else None
    if hot is not None:
        hot.watch()
    outcomes = []
    with np.errstate(all="ignore"):
        for args, kwargs, *change in calls:
            for act in change:
                act()
            with pytest.warns() if make.__name__ == "warns" else np.errstate():
                outcomes.append(outcome(lambda args=args, kwargs=kwargs: function(*args, **kwargs)))
    jax.effects_barrier()
    if hot is not None:
        hot.release()
    return outcomes, capsys.readouterr().out, plain(left()), hot


@pytest.mark.parametrize("make", TRAPS, ids=lambda make: make.__name__)
def test_a_trap_does_the_same(make, capsys):
    expected = played(make, capsys, is_hot=False)
    found = played(make, capsys, is_hot=True)
    assert found[:3] == expected[:3]


@pytest.mark.parametrize("make", FINE, ids=lambda make: make.__name__)
def test_what_only_computes_is_compiled_and_does_the_same(make, capsys, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.hot._FASTER", 0.0)  # whether it is worth it is another matter
    expected = played(make, capsys, is_hot=False)
    *found, hot = played(make, capsys, is_hot=True)
    assert found == list(expected[:3])
    assert hot.refusal is None
    assert hot.calls["compiled"]
