"""A program evaluated equation by equation has the results that JAX gives, and marks go from operands to results."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer._jax.evaluation import Evaluation, Unaffordable, Value, host

KEY = jax.random.key(3)
CUBE = jnp.arange(24.0).reshape(2, 3, 4) - 7
MATRIX = jnp.array([[4.0, 1.0], [1.0, 3.0]])
INDICES = jnp.array([1, 0, 5])


def evaluated(function, *args):
    closed = jax.make_jaxpr(function)(*args)
    values = [Value(host(leaf)) for leaf in jax.tree.leaves(args)]
    return Evaluation(lambda _, __, results: [None] * len(results), 60).run(closed, values)


PROGRAMS = {
    "normal": (lambda k: jax.random.normal(k, (4, 3)), KEY),
    "bits": (lambda k: [jax.random.bits(k, (5,), t) for t in (jnp.uint8, jnp.uint16, jnp.uint32)], KEY),
    "split": (lambda k: [jax.random.fold_in(one, 7) for one in jax.random.split(k, 3)], KEY),
    "vmapped keys": (lambda k: jax.vmap(lambda k: jax.random.uniform(k, (3,)))(jax.random.split(k, 4)), KEY),
    "randint": (lambda k: jax.random.randint(k, (7,), -3, 100), KEY),
    "permutation": (lambda k: jax.random.permutation(k, 6), KEY),
    "categorical": (lambda k: jax.random.categorical(k, jnp.ones((2, 3))), KEY),
    "indexing": (lambda x: [x[1], x[:, 1:], x[INDICES, :, 2], x[-1, ..., ::2], x.at[:, 1].set(3.0)], CUBE),
    "take": (lambda x: [jnp.take(x, jnp.array([[0, 3], [1, 2]]), axis=2), jnp.sort(x, 1), jnp.argsort(-x, 2)], CUBE),
    "windows": (lambda x: jax.lax.dynamic_update_slice(x, x[:1, :1, :2], (1, 2, 3)), CUBE),
    "scans": (lambda x: [jnp.cumsum(x, 1), jax.lax.cummax(x, axis=2, reverse=True), jnp.cumprod(x / 9, 0)], CUBE),
    "products": (lambda x: [jnp.einsum("abc,adc->abd", x, x), jnp.tensordot(x, x, ((1, 2), (1, 2)))], CUBE),
    "padding": (lambda x: [jnp.pad(x, ((1, 2), (0, 0), (3, 1))), jnp.roll(x, 1, 2), jnp.flip(x)], CUBE),
    "activations": (lambda x: [jax.nn.gelu(x, approximate=False), jax.nn.softmax(x), jax.nn.silu(x)], CUBE),
    "rounding": (lambda x: [jnp.round(x / 2), x // 3, x % 3, x.astype(int) // 3, x.astype(int) >> 1], CUBE),
    "small floats": (lambda x: [(x.astype(jnp.bfloat16) * 2).sum(), x.astype(jnp.float16) @ x[0].T], CUBE),
    "scan": (lambda x: jax.lax.scan(lambda c, a: (c + a.sum(), c * a), 0.0, x, reverse=True), CUBE),
    "while": (lambda x: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x)), CUBE),
    "cond": (lambda x: jax.lax.cond(x[0, 0, 0] > 0, lambda x: x, lambda x: -x, x), CUBE),
    "gradient": (jax.grad(lambda x: jax.nn.relu(jnp.sin(x) @ jnp.ones((4, 2))).sum()), CUBE),
    "linear algebra": (lambda a: [jnp.linalg.cholesky(a), jnp.linalg.eigh(a)[0], jnp.linalg.inv(a)], MATRIX),
    "triangular": (lambda a: jax.scipy.linalg.solve_triangular(a, jnp.ones(2), lower=True, trans=1), MATRIX),
    "by JAX itself": (lambda x: jax.lax.conv(x, jnp.ones((1, 3, 2)), (1,), "SAME"), CUBE),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_evaluation_gives_what_jax_gives(name):
    function, argument = PROGRAMS[name]
    wanted = jax.tree.leaves(function(argument))
    for got, leaf in zip(evaluated(function, argument), wanted, strict=True):
        leaf = host(leaf)
        assert (got.array.shape, got.array.dtype) == (leaf.shape, leaf.dtype)
        np.testing.assert_allclose(got.array.astype(float), leaf.astype(float), rtol=3e-5, atol=1e-5)


def test_a_mark_goes_through_calls_and_loops():
    def run(x):
        total = jax.jit(lambda x: x * 2)(x)
        return jax.lax.scan(lambda c, _: (c + total, c), total, None, length=2), x

    def observe(place, operands, results):
        doubled = place.equation.primitive.name == "mul"
        passed = next((one.mark for one in operands if one.mark), None)
        return ["doubled" if doubled else passed] * len(results)

    closed = jax.make_jaxpr(run)(1.0)
    results = Evaluation(observe, 60).run(closed, [Value(np.float32(1.0))])
    assert [(float(np.sum(one.array)), one.mark) for one in results] == [
        (6.0, "doubled"),
        (6.0, "doubled"),
        (1.0, None),
    ]


def test_an_evaluation_ends_when_its_time_is_over():
    closed = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 10**9, lambda _, x: x + 1, x))(1)
    started = time.monotonic()
    with pytest.raises(Unaffordable):
        Evaluation(lambda _, __, results: [None] * len(results), 0.2).run(closed, [Value(np.int32(1))])
    assert time.monotonic() - started < 5


def test_a_program_with_values_beyond_the_memory_is_not_run():
    closed = jax.make_jaxpr(lambda x: jnp.broadcast_to(x, (10**6, 1000)).sum())(jnp.float32(1))
    with pytest.raises(Unaffordable):
        Evaluation(lambda _, __, results: [None] * len(results), 60).run(closed, [Value(np.float32(1))])
