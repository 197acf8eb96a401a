"""Real code gives no warning and no error from the rules on the jaxpr."""

import equinox as eqx
import flax.linen as nn
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import optax
import pytest
from jax import random

from explorer.pitfalls.equations import Program
from explorer.pitfalls.lint import check_rules
from explorer.pitfalls.rule import all_rules
from explorer.pitfalls.tracing import gather
from tests.examples.corpus import CORPUS
from tests.examples.training import training_step

NAMES = (
    *("concretization", "boolean-mask", "unrolled-loop", "large-constant", "truncation", "weak-type", "out-of-bounds"),
    *("nan-gradient", "key-reuse", "donated-reuse", "unusable-donation", "dead-code", "symbolic-equality"),
)
RULES = [rule for rule in all_rules() if rule.name in NAMES]
X = jnp.linspace(-2.0, 2.0, 24).reshape(4, 6)
KEY = random.key(0)


def grave(function, *args):
    evidence = gather(function, args, {}, record=False)
    assert evidence.error is None, evidence.error
    found = check_rules(evidence, RULES)
    assert not found.faults
    return [one for one in found if one.severity != "note"]


def test_all_the_rules_are_there_and_cheap():
    assert {rule.name for rule in RULES} == set(NAMES)
    assert all(rule.passive for rule in RULES)


ACTIVATIONS = (
    "relu",
    "gelu",
    "silu",
    "elu",
    "selu",
    "celu",
    "softplus",
    "log_sigmoid",
    "softmax",
    "log_softmax",
    "glu",
)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_jax_nn(name):
    function = getattr(jax.nn, name)
    assert grave(function, X) == []
    assert grave(jax.grad(lambda x: function(x).sum()), X) == []


def test_jax_numpy():
    def several(x):
        square = x[:4, :4] @ x[:4, :4].T + jnp.eye(4)
        solved = jnp.linalg.solve(square, x), jnp.linalg.norm(x), jnp.linalg.inv(square), jnp.linalg.svd(x)
        ordered = jnp.sort(x), jnp.argsort(x), jnp.median(x), jnp.quantile(x, 0.3), jnp.unique(x, size=5)
        shaped = jnp.pad(x, 1), jnp.roll(x, 1), jnp.einsum("ij,kj->ik", x, x), jnp.stack([x, x]), jnp.split(x, 2)
        return solved, ordered, shaped, jnp.interp(x, x[0], x[1]), jnp.fft.fft(x), jnp.cumsum(x), jnp.histogram(x)

    assert grave(several, X) == []


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train=True):
        for width in (16, 16):
            x = nn.Dense(width)(x)
            x = nn.BatchNorm(use_running_average=not train)(x)
            x = nn.Dropout(0.5, deterministic=not train)(nn.gelu(x))
        return nn.Dense(2)(nn.LayerNorm()(x))


def test_flax_with_dropout_and_optax():
    model, optimizer = Network(), optax.adam(1e-3)
    variables = jax.eval_shape(model.init, {"params": KEY, "dropout": KEY}, X)
    params, stats = variables["params"], variables["batch_stats"]

    def step(params, stats, state, x, key):
        def loss(params):
            out, changed = model.apply(
                {"params": params, "batch_stats": stats}, x, mutable=["batch_stats"], rngs={"dropout": key}
            )
            return (out**2).mean(), changed["batch_stats"]

        (value, stats), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), stats, state, value

    step = jax.jit(step, donate_argnums=(0, 1, 2))
    assert grave(step, params, stats, jax.eval_shape(optimizer.init, params), X, KEY) == []


def test_flax_nnx():
    model = nnx.Linear(6, 3, rngs=nnx.Rngs(0))
    definition, state = nnx.split(model)

    def step(state, x):
        def loss(state):
            return (nnx.merge(definition, state)(x) ** 2).mean()

        return jax.tree.map(lambda p, g: p - 0.1 * g, state, jax.grad(loss)(state))

    assert grave(step, state, X) == []


def test_equinox_with_dropout():
    keys = random.split(KEY, 3)
    model = eqx.nn.Sequential([eqx.nn.Linear(6, 8, key=keys[0]), eqx.nn.Dropout(0.3), eqx.nn.Linear(8, 2, key=keys[1])])
    params, static = eqx.partition(model, eqx.is_array)

    def step(params, x, key):
        def loss(params):
            model = eqx.combine(params, static)
            return (jax.vmap(lambda row, k: model(row, key=k))(x, random.split(key, len(x))) ** 2).mean()

        return jax.value_and_grad(loss)(params)

    assert grave(step, params, X, KEY) == []


@pytest.mark.parametrize("make", [optax.adamw, optax.lion, optax.rmsprop, optax.adafactor, optax.lamb])
def test_optax(make):
    optimizer = make(1e-3)
    params = {"w": X, "b": jnp.zeros(6)}

    def step(params, state, x):
        value, gradients = jax.value_and_grad(lambda p: optax.losses.huber_loss(x @ p["w"].T).mean() + p["b"].sum())(
            params
        )
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    assert grave(step, params, optimizer.init(params), X) == []


@pytest.mark.slow
def test_the_training_step_of_four_layers():
    step, args = training_step(4)
    assert grave(step, *args) == []
    step, (state, batch) = training_step(1)
    shared = grave(jax.jit(step, donate_argnums=0), state, batch)
    assert [one.rule for one in shared] == ["donated-reuse"]  # its optimizer starts with one array of zeros, twice
    apart = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), state)
    assert grave(jax.jit(step, donate_argnums=0), apart, batch) == []


@pytest.mark.parametrize("name", sorted(set(CORPUS) - {"donated"}))
def test_the_corpus_of_the_readers(name):
    function, *args = CORPUS[name]
    assert grave(function, *args) == []


@pytest.mark.slow
def test_each_of_a_hundred_thousand_equations_has_its_place():
    def long(x):
        for _ in range(1_000):
            x = jnp.sin(x)
        return x

    def longer(x):
        for _ in range(100):
            x = inner(x)
        return x

    inner = jax.jit(long)
    program = Program(jax.jit(longer).trace(X).jaxpr)
    frames = [program.frame(one) for one in program.equations]
    assert len(frames) == 100_100
    assert all(frames)
