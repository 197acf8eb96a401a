"""What a refusal names as its cure is true: who acts on it gets a function that is compiled."""

import logging
import random
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.hotpath.hot import HotFunction, Options
from tests.unit.hotpath.programs import X

CASES = []
LARGE = np.ones((32, 64), np.float32)
LARGE_OF_JAX = jnp.asarray(LARGE)
WORLD = {"w": jnp.asarray(2.0), "total": jnp.zeros(())}
LOG = logging.getLogger("cures")


def case(reason, cure, args=(X,), cured_args=None):
    """A function that is refused, for this reason and with this cure; the other function has acted on it."""

    def add(functions):
        before, after = functions()
        CASES.append(pytest.param(before, args, reason, cure, after, cured_args or args, id=functions.__name__))
        return functions

    return add


@case("it prints", "jax.debug.print")
def printing():
    def before(x):
        print("called")
        return jnp.tanh(x) * 2

    def after(x):
        return jnp.tanh(x) * 2

    return before, after


@case("reads a value", "keep it an array")
def reading_a_value():
    return lambda x: x * float(x.sum()), lambda x: x * x.sum()


@case("reads a value", "keep it an array")
def reading_by_item():
    return lambda x: x * x.sum().item(), lambda x: x * x.sum()


@case("branches on the value of an array", "jnp.where")
def deciding_by_a_value():
    return lambda x: x * 2 if x.sum() > 0 else x * 3, lambda x: jnp.where(x.sum() > 0, x * 2, x * 3)


@case("branches on the value of an array", "jnp.where")
def deciding_by_a_weight():
    def before(x):
        return x * 2 if WORLD["w"] else x * 3

    def after(x):
        return jnp.where(WORLD["w"] != 0, x * 2, x * 3)

    return before, after


@case("NumPy array `LARGE` from outside", "jnp.asarray")
def reading_a_large_numpy_array():
    return lambda x: x[0, 0] * jnp.sin(LARGE), lambda x: x[0, 0] * jnp.sin(LARGE_OF_JAX)


@case("changes an object outside", "return the new value")
def appending():
    seen = []

    def before(x):
        seen.append(x.sum())
        return x * 2

    return before, lambda x: (x * 2, x.sum())


@case("an argument or a value that the call read", "return the new value")
def putting_into_a_dict():
    def before(x):
        WORLD["total"] = x.sum()
        return x * 2

    return before, lambda x: (x * 2, x.sum())


@case("changes the variable `TOTAL`", "return the new value")
def a_global_name():
    def before(x):
        global TOTAL
        TOTAL = TOTAL + 1
        return x * 2

    return before, lambda x: x * 2


TOTAL = 0


@case("is outside of the call", "return the new value")
def an_attribute():
    @dataclass
    class Model:
        steps: int = 0

    model = Model()

    def before(x):
        model.steps = model.steps + 1
        return x * 2

    return before, lambda x: x * 2


@case("reads the value of an array to find an item", "jnp.take")
def an_item_by_an_array():
    parts = [X, X + 1]
    which = jnp.asarray(1)
    stacked = jnp.stack(parts)
    return lambda x: x + parts[which], lambda x: x + jnp.take(stacked, which, axis=0)


@case("slices by the value of an array", "jax.lax.dynamic_slice")
def a_cut_by_an_array():
    start = jnp.asarray(1)
    return lambda x: x[start : start + 1] * 2, lambda x: jax.lax.dynamic_slice(x, (start, 0), (1, 4)) * 2


@case("array's value as text", "outside of the function")
def a_text():
    def before(x):
        name = f"{x.sum()}"
        return x * 2 if name else x

    return before, lambda x: x * 2


@case("catches errors", "put the `try` around the call of this function")
def catching():
    def before(x):
        try:
            return jnp.linalg.cholesky(x.T @ x + jnp.eye(4))
        except ValueError:
            return jnp.eye(4)

    return before, lambda x: jnp.linalg.cholesky(x.T @ x + jnp.eye(4))


@case("is a generator", "return a list")
def a_generator():
    def rows(x):
        for row in x:
            yield row * 2

    return lambda x: jnp.stack(list(rows(x))), lambda x: jnp.stack([row * 2 for row in x])


@case("may read the numbers in an array from outside", "jax.numpy")
def numpy_of_a_weight():
    def before(x):
        return x * np.sqrt(WORLD["w"])

    def after(x):
        return x * jnp.sqrt(WORLD["w"])

    return before, after


@case("compares what is in it", "jnp.sort")
def sorting_a_list():
    def before(x):
        rows = [row.sum() for row in x]
        rows.sort()
        return jnp.stack(rows)

    return before, lambda x: jnp.sort(jnp.stack([row.sum() for row in x]))


@case("returns a container from its arguments", "return a new one", args=([X, X + 1],))
def giving_back_a_container():
    return lambda parts: (parts, parts[0] * 2), lambda parts: ([*parts], parts[0] * 2)


@case("`x` is a NumPy array", "jnp.asarray(x)", args=(np.ones((3, 4)),), cured_args=(jnp.ones((3, 4)),))
def being_given_numpy():
    return lambda x: jnp.tanh(x) * 2, lambda x: jnp.tanh(x) * 2


def hot_after(function, args):
    hot = HotFunction(function, Options(1, 0.0, lambda work: work()))
    hot.watch()
    try:
        for _ in range(6):
            function(*args)
    finally:
        hot.release()
    return hot


@pytest.mark.parametrize(("before", "args", "reason", "cure", "after", "cured_args"), CASES)
def test_a_cure_cures(before, args, reason, cure, after, cured_args, monkeypatch):
    monkeypatch.setattr("explorer.hotpath.comparison._FASTER", 0.0)
    refusal = hot_after(before, args).refusal
    assert refusal is not None
    assert reason in refusal.reason
    assert cure in refusal.cure
    cured = hot_after(after, cured_args)
    assert cured.refusal is None
    assert cured.calls["compiled"]


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda: random.random(), "Python's own state"),
        (lambda: np.random.rand(), "NumPy's own state"),
        (lambda: LOG.debug("called"), "writes a log"),
        (lambda: id(WORLD), "address"),
        (lambda: open("/dev/null").close(), "opens a file"),
    ],
)
def test_what_has_no_cure_names_its_reason_and_line(act, reason):
    def step(x):
        act()
        return jnp.tanh(x)

    refusal = hot_after(step, (X,)).refusal
    assert reason in refusal.reason
    assert refusal.file == __file__
    assert refusal.line


def test_a_module_of_nnx_is_left_to_its_own_jit():
    nnx = pytest.importorskip("flax.nnx")
    counted = nnx.Linear(4, 4, rngs=nnx.Rngs(0))

    def step(module, x):
        module.kernel[...] = module.kernel[...] + 1  # jax.jit would leave a traced value there
        return module(x)

    def forward(x):
        return counted(x) * 2

    assert "`@nnx.jit`" in hot_after(forward, (X,)).refusal.cure
    assert "jax.jit" not in hot_after(step, (counted, X)).refusal.cure
    expected, before = step(nnx.clone(counted), X), counted.kernel[...]
    np.testing.assert_allclose(nnx.jit(step)(counted, X), expected, rtol=1e-6)
    np.testing.assert_allclose(counted.kernel[...], before + 1)
