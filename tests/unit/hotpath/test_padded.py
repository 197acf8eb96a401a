"""Hot functions at more sizes than are compiled: one padded copy serves the rest, where that is proven."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.hotpath.compiled import at_once
from explorer.hotpath.hot import HotFunction, Options

WEIGHTS = jnp.asarray(np.random.default_rng(0).normal(size=(4, 4)), jnp.float32)
SCALE = 2.0


def weighted(x):
    centred = jnp.tanh(x @ WEIGHTS) * SCALE
    return {"mean": centred.mean(0), "share": jax.nn.softmax(centred.sum(-1))}


def by_its_length(x):
    return x * (1.0 / int(x.shape[0]))


def in_windows(x):
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (3, 1), (2, 1), "SAME")


def rows(n):
    return jnp.asarray(np.random.default_rng(n).normal(size=(n, 4)), jnp.float32)


@pytest.fixture
def hot(monkeypatch):
    """Makes functions hot, two sizes compiled at most, whether that is faster or not; they are restored after."""
    monkeypatch.setattr("explorer.hotpath.hot._VARIANTS", 2)
    made = []

    def make(function):
        made.append(HotFunction(function, Options(1, 0.0, at_once, is_forced=True)))
        made[-1].watch()
        return made[-1]

    yield make
    for one in made:
        one.release()


def assert_same(ours, theirs):
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (one.shape, one.dtype, one.weak_type, one.committed) == (
            other.shape,
            other.dtype,
            other.weak_type,
            other.committed,
        )
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def call(function, reference, sizes):
    for n in sizes:
        assert_same(function(rows(n)), reference(rows(n)))


def copy_of(function):
    """The same code and globals, which nobody watches."""
    return type(function)(function.__code__, function.__globals__)


@pytest.mark.slow
def test_sizes_past_the_bound_are_served_by_one_padded_copy(hot, monkeypatch):
    reference = copy_of(weighted)
    one = hot(weighted)
    call(weighted, reference, [3, 3, 4, 4])
    assert len(one.variants) == 2
    call(weighted, reference, [5, 7, 6, 8, 5])  # compiled, compared, trusted
    before = one.calls
    call(weighted, reference, range(5, 17))
    assert one.state == "compiled"
    assert one.calls["compiled"] >= before["compiled"] + 10  # but for the first past the bucket, which is compiled then
    texts = [event.text for event in one._options.journal.events if event.kind == "compiled"]
    assert texts[2:] == ["padded: (8, 4), and all below", "padded: (16, 4), and all below"]
    monkeypatch.setitem(globals(), "WEIGHTS", WEIGHTS * 2)  # an array that is read is given at each call
    before = one.calls
    call(weighted, reference, [9, 6, 13])
    assert one.calls["compiled"] == before["compiled"] + 3


def test_what_a_padded_copy_reads_is_guarded(hot, monkeypatch):
    reference = copy_of(weighted)
    one = hot(weighted)
    call(weighted, reference, [3, 3, 4, 4, 5, 6, 7, 8, 5, 6])
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    call(weighted, reference, [5, 6, 7, 8, 3])
    assert "SCALE" in one.misses


@pytest.mark.parametrize(("function", "why"), [(by_its_length, "can't be padded"), (in_windows, "depends on the size")])
def test_what_cannot_be_padded_runs_eagerly_past_the_bound_and_says_why(hot, function, why):
    reference = copy_of(function)
    one = hot(function)
    call(function, reference, [3, 3, 4, 4])
    for turn in range(100):
        call(function, reference, [5 + turn % 3])
    assert one.state == "eager"
    assert "2 kinds of arguments, and can't be padded" in one.refusal.reason
    assert why in one.refusal.reason
