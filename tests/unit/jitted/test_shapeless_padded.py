"""jit(shapeless=True) at many shapes: a few padded binaries serve them, where that is proven; else each has its own."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex
from explorer.model.results.dynamic_report import Specialization

WEIGHTS = np.random.default_rng(0).normal(size=(4, 4)).astype(np.float32)
SIZES = [(3, 5), (2, 7), (4, 4), (1, 5), (4, 8), (3, 7), (4, 3)]


def attended(x, mask, scale=1.0):
    q = x @ WEIGHTS
    weights = jax.nn.softmax(jnp.where(mask[:, None], q @ q.mT, -1e9), -1)
    return {"out": scale * (weights @ x), "mean": x.mean((1, 2))}


def batch(sizes, seed=0):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=(*sizes, 4)), jnp.float32), jnp.asarray(rng.random(sizes) < 0.7)


def padded(fast) -> list[Specialization]:
    return list(fast.padded_specializations)


def assert_same(ours, theirs):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert (one.shape, one.dtype, one.weak_type) == (other.shape, other.dtype, other.weak_type)
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
def test_many_shapes_are_served_by_few_binaries_and_give_what_the_function_gives():
    runs = []

    def counted(x, mask, scale=1.0):
        runs.append(1)
        return attended(x, mask, scale)

    fast = ex.jit(counted, shapeless=True)
    with ex.watch() as ledger, warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.errors.RecompilationWarning)
        for i, sizes in enumerate(SIZES):
            arrays = [np.asarray(array) for array in batch(sizes)] if i % 2 else batch(sizes)
            assert_same(fast(*arrays, scale=0.5 * i), attended(*batch(sizes), scale=0.5 * i))
    assert 1 <= len(padded(fast)) <= 4
    assert {one.shapes["x"] for one in padded(fast)} <= {(b, s, 4) for b in (2, 4) for s in (4, 8)}
    compiled = [event for event in ledger.events if event.kind == "compile" and event.function == "counted"]
    # The two shapes that showed what varies, one row, and the padded ones; no call that was left for those is an event.
    assert len(compiled) <= 3 + len(padded(fast))
    assert "ServePadded" not in ledger.to_text()
    before = len(runs)
    fast(*batch((3, 3)), scale=2.0)
    assert len(runs) == before


@pytest.mark.slow
def test_under_transformations_it_is_what_it_was():
    fast = ex.jit(lambda x: jnp.sin(x).sum(-1), shapeless=True)
    for n in (2, 3, 5):
        x = jnp.arange(2.0 * n).reshape(2, n)
        np.testing.assert_allclose(fast(x), jnp.sin(x).sum(-1), rtol=1e-6)
        np.testing.assert_allclose(jax.grad(lambda x: fast(x).sum())(x), jnp.cos(x), rtol=1e-6)
        np.testing.assert_allclose(jax.vmap(fast)(x[None])[0], jnp.sin(x).sum(-1), rtol=1e-6)
        np.testing.assert_allclose(jax.jit(fast)(x), jnp.sin(x).sum(-1), rtol=1e-6)
    assert len(padded(fast)) == 2


def test_state_is_read_and_written_by_padded_calls():
    state = {"total": jnp.zeros(4)}

    @ex.jit(inputs=state, outputs=state, shapeless=True)
    def add(x):
        state["total"] = state["total"] + x.sum(0)
        return x - state["total"]

    total = np.zeros(4, np.float32)
    for n in (3, 5, 6, 2, 8):
        x = batch((n, 1), n)[0][:, 0]
        total += np.asarray(x).sum(0)
        np.testing.assert_allclose(add(x), x - total, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(state["total"], total, rtol=1e-5, atol=1e-5)
    assert [one.shapes["x"] for one in padded(add)] == [(8, 4), (2, 4)] or len(padded(add)) == 1


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda x: jax.pure_callback(np.sum, jax.ShapeDtypeStruct((), x.dtype), x), {}),
        (lambda x: x * 2, {"donate_argnums": 0}),
        (lambda x: x * 2, {"keep_unused": True}),
    ],
    ids=["not proven", "donated", "told more"],
)
def test_where_it_isnt_proven_or_jax_is_told_more_each_shape_is_compiled(function, options):
    fast = ex.jit(function, shapeless=True, **options)
    for n in (2, 3, 5):
        np.testing.assert_allclose(fast(jnp.ones(n)), function(jnp.ones(n)))
    assert padded(fast) == []


def test_where_jax_checks_for_nan_nothing_is_padded():
    fast = ex.jit(lambda x: x / x.sum(), shapeless=True)
    with jax.debug_nans(True):
        for n in (2, 3, 5):
            np.testing.assert_allclose(fast(jnp.ones(n)), np.full(n, 1 / n), rtol=1e-6)
    assert padded(fast) == []


@pytest.mark.slow
def test_a_size_that_is_called_often_gets_a_binary_of_its_own():
    fast = ex.jit(lambda x: jnp.tanh(x).sum(), shapeless=True)
    fast(jnp.ones(3))
    x = jnp.ones(100)
    known = fast._cache_size()
    for _ in range(20_000):
        fast(x)
        if fast._cache_size() > known:  # jax.jit's dispatcher answers such calls from now on
            break
    assert fast._cache_size() > known
    assert len(padded(fast)) == 1
    assert float(fast(x)) == pytest.approx(100 * np.tanh(1.0), rel=1e-5)


def test_an_array_that_was_deleted_is_refused_as_ever():
    fast = ex.jit(lambda x: x * 2, shapeless=True)
    fast(jnp.ones(2))
    fast(jnp.ones(3))
    gone = jnp.ones(4)
    gone.delete()
    with pytest.raises(RuntimeError, match="donated to an earlier call"):
        fast(gone)
