"""What threads told that lint had missed when it saw them first, each with good code that comes near it."""

import dataclasses
import functools
import time
from functools import partial
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx
from jax import lax

from explorer.pitfalls.lint import lint
from tests.examples.linted import found, hits, marked, piece

X = jnp.arange(1.0, 5.0)
KEY = jax.random.key(0)


@dataclasses.dataclass(unsafe_hash=True)
class Config:
    scale: Any


@dataclasses.dataclass(eq=False)
class Identified:
    scale: Any


@partial(jax.jit, static_argnums=0)
def scaled(config, x):
    return x * config.scale


def test_an_array_in_a_dataclass_that_is_hashed_by_its_fields_has_no_hash():
    """https://github.com/jax-ml/jax/issues/7703"""
    (one,) = found("unhashable-static", scaled, Config(jnp.zeros(1)), X)
    assert one.severity == "error"
    assert "`config.scale`" in one.message
    with pytest.raises(ValueError, match="hash"):
        scaled(Config(jnp.zeros(1)), X)
    assert not found("unhashable-static", scaled, Config(2.0), X)
    assert {one.severity for one in found("unhashable-static", scaled, Identified(jnp.zeros(1)), X)} <= {"warning"}


def window(x, start, update):
    lax.dynamic_update_slice(x, update, (start,))  # HIT
    return x


def smoothed(x, start, update):
    jax.nn.softmax(x)  # SOFTMAX
    return lax.dynamic_update_slice(x, update, (start,))


def loops(x):
    lax.fori_loop(0, 3, lambda i, y: (jax.debug.print("{}", i), y)[1], x)
    return x


def test_what_lax_computes_is_dropped_as_what_numpy_computes_is():
    (one,) = hits("dropped-result", window, X, 1, X[:2])
    assert piece(one).startswith("lax.dynamic_update_slice(")
    hits("dropped-result", smoothed, X, 1, X[:2], mark="SOFTMAX")


def test_a_loop_is_called_for_what_its_body_does():
    assert not found("dropped-result", loops, X)


drop = nn.Dropout(0.5, deterministic=False)


def trained(params, xs, key):
    for x in xs:

        def loss(p, x=x):
            return drop.apply({}, x * p, rngs={"dropout": key}).sum()  # HIT

        params = params - 0.1 * jax.grad(loss)(params)
    return params


def trained_apart(params, xs, key):
    for i, x in enumerate(xs):
        own = jax.random.fold_in(key, i)
        params = params - 0.1 * jax.grad(lambda p, x=x, k=own: drop.apply({}, x * p, rngs={"dropout": k}).sum())(params)
    return params


def shuffled_once(xs, key):
    return [x[jax.random.permutation(key, 4)] for x in (xs[0],)]


def test_a_librarys_draw_in_each_turn_of_a_users_loop_is_one_draw():
    """https://github.com/google/flax/pull/2675"""
    masks = [drop.apply({}, X, rngs={"dropout": KEY}).tolist() for _ in range(2)]
    assert masks[0] == masks[1]  # which is what is wrong
    hits("key-reuse", trained, X, [X, 2 * X, 3 * X], KEY)
    assert not found("key-reuse", trained_apart, X, [X, 2 * X, 3 * X], KEY)
    assert not found("key-reuse", shuffled_once, jnp.ones((2, 4)), KEY)


class Counter(nnx.Module):
    def __init__(self):
        self.count = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.count[...] += 1  # HIT
        return x * 2


counter, model = Counter(), nnx.Linear(4, 2, rngs=nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)


def counted(x):
    return counter(x)


def counted_when_passed(counter, x):
    return counter(x)


def updated(x):
    grads = jax.tree.map(jnp.ones_like, nnx.state(model, nnx.Param))
    optimizer.update(model, grads)  # UPDATE
    return x.sum()


def test_a_variable_of_flax_that_was_not_passed_would_keep_a_tracer():
    """https://github.com/google/flax/issues/3997 and 4695"""
    (one,) = found("leaked-tracer", counted, X)
    assert [one.line] == marked(Counter.__call__)
    assert one.severity == "error"
    assert "nnx.jit" in one.fix.text
    hits("leaked-tracer", updated, X, mark="UPDATE")
    fresh = Counter()
    assert not found("leaked-tracer", nnx.jit(counted_when_passed), fresh, X)
    nnx.jit(counted_when_passed)(fresh, X)
    assert int(fresh.count[...]) == 1  # as the cure says


def advected(data, u):
    rows, columns = np.mgrid[: data.shape[0], : data.shape[1]]
    return rows - u[rows, columns]  # HIT


def test_a_grid_of_indices_is_followed_as_a_few_are():
    """https://github.com/jax-ml/jax/issues/3989"""
    data = jnp.ones((100, 100))
    (one,) = hits("out-of-bounds", advected, data, jnp.ones((50, 30)))
    assert one.severity == "error"
    assert not found("out-of-bounds", advected, data, jnp.ones((100, 100)))


def times_infinity(x):
    return jnp.where(x > 0, 0.0, x * jnp.inf).sum()  # HIT


def divided_by_zero(x):
    return jnp.where(x > 0, 0.0, x / 0.0).sum()  # ZERO


def infinite_where_chosen(x):
    return jnp.where(x > 0, 0.0, x * jnp.where(x > 0, 1, jnp.inf)).sum()


def infinity_alone(x):
    return jnp.where(x > 0, x, -jnp.inf).max()


@pytest.mark.slow
def test_an_infinite_factor_beside_a_guard_is_found():
    """https://github.com/jax-ml/jax/issues/2630"""
    at = jnp.array([1.0, 2.0])
    assert np.isnan(jax.grad(times_infinity)(at)).all()
    (one,) = hits("nan-gradient", jax.grad(times_infinity), at)
    assert one.severity == "warning"
    assert "x * jnp.where(condition, 1, jnp.inf)" in one.fix.text
    assert jax.grad(infinite_where_chosen)(at).tolist() == [0, 0]  # as the cure says
    assert infinite_where_chosen(jnp.array([-1.0])) == times_infinity(jnp.array([-1.0])) == -np.inf
    hits("nan-gradient", jax.grad(divided_by_zero), at, mark="ZERO")
    assert not found("nan-gradient", jax.grad(infinity_alone), at)
    assert not found("nan-gradient", jax.grad(infinite_where_chosen), at)


def policy_loss(logits, chosen, before, gae):
    gae = (gae - gae.mean()) / (gae.std() + 1e-8)
    ratio = jnp.exp(jnp.take_along_axis(jax.nn.log_softmax(logits), chosen[:, None], 1)[:, 0] - before)
    return -jnp.minimum(ratio * gae, jnp.clip(ratio, 0.8, 1.2) * gae).mean()


def standardized(x):
    gae = (x - x.mean()) / (x.std() + 1e-8)
    return jnp.minimum(gae, 2.0).sum()


@pytest.mark.slow
def test_what_a_derivative_is_not_taken_by_is_no_warning():
    """https://github.com/luchris429/purejaxrl"""
    args = jnp.ones((4, 2)), jnp.zeros(4, int), jnp.zeros(4), jnp.ones(4)
    assert np.isfinite(jax.grad(policy_loss)(*args)).all()  # though the advantages are all the same
    assert {one.severity for one in found("nan-gradient", jax.grad(policy_loss), *args)} <= {"note"}
    assert np.isnan(jax.grad(standardized)(jnp.ones(4))).all()
    assert "warning" in {one.severity for one in found("nan-gradient", jax.grad(standardized), jnp.ones(4))}


def of_a_clock(x):
    return x + jax.random.normal(jax.random.key(int(time.time())), x.shape)


def of_a_number(x):
    return x + jax.random.normal(jax.random.key(7), x.shape)


def test_a_key_of_a_clock_is_not_called_a_constant():
    assert "made once, while it is traced" in found("key-reuse", of_a_clock, X)[0].message
    assert "made from a constant" in found("key-reuse", of_a_number, X)[0].message


RAW_KEY = jax.random.PRNGKey(0)


def reshuffled(wall):
    return jax.random.permutation(RAW_KEY, wall)  # HIT


def reshuffled_by(key, wall):
    return jax.random.permutation(key, wall)


def test_a_raw_key_of_the_module_is_a_constant_with_any_jax():
    """https://github.com/nissymori/mahjax/pull/72"""
    (one,) = hits("key-reuse", reshuffled, jnp.arange(8))
    assert "its key is a constant of the program" in one.message
    assert not found("key-reuse", reshuffled_by, RAW_KEY, jnp.arange(8))


def drawn_with_both(key):
    first, second = jax.random.split(key)
    return jax.random.normal(first) + jax.random.normal(second)


def drawn_with_one(key):
    first, _ = jax.random.split(key)
    return jax.random.normal(first) * jax.random.uniform(first)  # HIT


def test_the_two_keys_of_a_split_are_two():
    assert not found("key-reuse", drawn_with_both, KEY)
    assert not found("key-reuse", drawn_with_both, RAW_KEY)
    hits("key-reuse", drawn_with_one, KEY)


@functools.wraps(jnp.sin)
def counted_sine(x):
    print(x)
    return jnp.sin(x)


def wrapping(function):
    @functools.wraps(function)
    def inner(*args):
        return function(*args)

    return inner


def test_a_function_that_takes_a_librarys_name_is_called_by_its_own():
    findings = lint(jax.jit(counted_sine), X)
    assert findings.function == "counted_sine"
    assert "counted_sine" in findings[0].message
    assert lint(wrapping(of_a_number), X).function == "of_a_number"


def test_a_finding_alone_has_no_empty_name_above_it():
    (one,) = found("key-reuse", of_a_number, X)
    assert one.to_text().splitlines()[0].endswith("warning EX018 key-reuse")
    assert not repr(type(lint(of_a_number, X))((one,))).startswith("Findings(:")


def means(points, labels):
    return jnp.stack([points[labels == j].mean(axis=0) for j in range(3)])


def test_a_mask_in_a_comprehension_is_named_and_not_all_of_it():
    (one,) = found("boolean-mask", means, jnp.ones((6, 2)), jnp.arange(6) % 3)
    assert piece(one) == "points[labels == j]"


class Cell:
    def __init__(self):
        self.nodes = np.zeros(3)

    def set_one(self, v):
        self.nodes[0] = v * 2  # HIT
        return jnp.asarray(self.nodes)

    def set_all(self, v):
        self.nodes[:] = v  # HIT
        return jnp.asarray(self.nodes)

    def add(self, v):
        self.nodes[1] += v  # HIT
        return jnp.asarray(self.nodes)

    def set_two_numbers(self, v):
        self.nodes[0] = [1, 2]
        return v


@pytest.mark.parametrize(
    ("method", "v", "copy"),
    [
        (Cell.set_one, 1.0, "jnp.asarray(self.nodes).at[0].set(v * 2)"),
        (Cell.set_all, jnp.arange(3.0), "jnp.asarray(self.nodes).at[:].set(v)"),
        (Cell.add, 1.0, "jnp.asarray(self.nodes).at[1].set(self.nodes[1] + v)"),
    ],
)
def test_a_numpy_array_takes_no_traced_value(method, v, copy):
    """https://github.com/jaxleyverse/jaxley/issues/508"""
    (one,) = found("concretization", functools.partial(method, Cell()), v)
    assert [one.line] == marked(method)
    assert one.fix.text.startswith(copy)
    cured = jax.jit(lambda v: eval(copy, {"jnp": jnp, "self": Cell(), "v": v}))  # as the cure says
    assert np.allclose(cured(v), method(Cell(), v))


def test_what_numpy_refuses_without_jax_is_no_traced_value():
    assert not found("concretization", Cell().set_two_numbers, 1.0)


def named_by_its_mean(x):
    name = f"mean {x.mean():.2f}"
    return x * len(name)


def test_a_text_that_ended_the_trace_says_nothing():
    messages = [one.message for one in found("formatted-tracer", named_by_its_mean, X)]
    assert len(messages) == 1
    assert "can't be made while tracing" in messages[0]
