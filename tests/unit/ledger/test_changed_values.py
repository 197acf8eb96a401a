"""Static values are compared part by part, and a class that was defined again is named as such."""

import dataclasses
import typing
from typing import Any

import equinox as eqx
import flax.nnx as nnx
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import explorer as ex

X = jnp.ones(4)
Forty = dataclasses.make_dataclass("Forty", [(f"field_{i}", int, i) for i in range(40)], frozen=True)


@dataclasses.dataclass(frozen=True)
class Optimizer:
    lr: float = 1e-3
    betas: tuple = (0.9, 0.99)


@dataclasses.dataclass(frozen=True)
class Config:
    name: str = "x" * 100
    optimizer: Optimizer = Optimizer()
    sizes: tuple = tuple(range(50))
    activation: Any = jax.nn.relu


class Shape(typing.NamedTuple):
    width: int = 3
    depth: int = 4


def last(jitted, *calls):
    """The reason of the last compile of these calls."""
    with ex.watch(storm=0) as ledger:
        for args in calls:
            jitted(*args)
    assert not ledger.faults
    return [event.reason for event in ledger.events if event.key and not event.key.function.eager][-1]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (Forty(), Forty(field_30=99), ("cfg.field_30", "30", "99")),
        (Config(), Config(optimizer=Optimizer(lr=2e-3)), ("cfg.optimizer.lr", "0.001", "0.002")),
        (Config(), Config(optimizer=Optimizer(betas=(0.9, 0.5))), ("cfg.optimizer.betas[1]", "0.99", "0.5")),
        (Config(), Config(sizes=(*range(49), 7)), ("cfg.sizes[49]", "49", "7")),
        (Config(), Config(sizes=(1, 2)), ("cfg.sizes", "50 items", "2 items")),
        (Config(), Config(activation=jax.nn.silu), ("cfg.activation", "relu", "silu")),
        (Shape(), Shape(depth=5), ("cfg.depth", "4", "5")),
        (flax.core.freeze({"a": {"b": 1}}), flax.core.freeze({"a": {"b": 2}}), ("cfg['a']['b']", "1", "2")),
        (-1, -2, ("cfg", "-1", "-2")),  # their hashes are equal
        ("a" * 100 + "b", "a" * 100 + "c", ("cfg", None, None)),
    ],
)
def test_a_static_argument_is_compared_part_by_part(before, after, told):
    reason = last(jax.jit(lambda x, cfg: x * 2, static_argnums=1), (X, before), (X, after))
    assert (reason.kind, reason.leaf) == ("static", told[0])
    assert told[1] is None or (reason.before, reason.after) == told[1:]
    assert f"`{told[0]}`" in reason.text
    assert "__eq__" not in reason.fix


def test_a_lambda_in_a_config_that_was_made_again_is_to_be_made_once():
    calls = [(X, Config(activation=lambda x: x)) for _ in range(2)]
    reason = last(jax.jit(lambda x, cfg: x * 2, static_argnums=1), *calls)
    assert (reason.kind, reason.leaf) == ("static", "cfg.activation")
    assert "is a new object" in reason.text
    assert reason.fix == "make `cfg.activation` once, before the loop, and build each `cfg` with that one"


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    w: jax.Array
    config: Config = dataclasses.field(default=Config(), metadata={"static": True})


class Module(eqx.Module):
    w: jax.Array
    config: Config = eqx.field(static=True, default=Config())


class Network(nnx.Module):
    def __init__(self, config):
        self.w = nnx.Param(jnp.ones(4))
        self.config = config

    def __call__(self, x):
        return x * self.w[...]


@pytest.mark.parametrize("jit", [jax.jit, eqx.filter_jit])
@pytest.mark.parametrize("kind", [Model, Module])
def test_a_static_field_is_compared_part_by_part(kind, jit):
    other = Config(optimizer=Optimizer(lr=2e-3))
    reason = last(jit(lambda model, x: model.w * x), (kind(X), X), (kind(X, other), X))
    assert (reason.kind, reason.leaf) == ("structure", "model.config.optimizer.lr")
    assert (reason.before, reason.after) == ("0.001", "0.002")


def test_a_static_field_of_an_nnx_module_is_compared_part_by_part():
    models = [Network(Config()), Network(Config(optimizer=Optimizer(lr=2e-3)))]
    reason = last(nnx.jit(lambda model, x: model(x)), *[(model, X) for model in models])
    assert (reason.kind, reason.leaf) == ("structure", "model.config.optimizer.lr")


# --- classes that were defined again


def named_tuple():
    class State(typing.NamedTuple):
        mu: jax.Array

    return State(X)


def registered():
    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class State:
        mu: jax.Array
        n: int = dataclasses.field(default=3, metadata={"static": True})

    return State(X)


def of_flax():
    @flax.struct.dataclass
    class State:
        mu: jax.Array

    return State(X)


def of_equinox():
    class State(eqx.Module):
        mu: jax.Array

    return State(X)


def of_nnx():
    class State(nnx.Module):
        def __init__(self):
            self.mu = nnx.Param(X)

    return State()


@pytest.mark.parametrize(
    ("make", "jit"),
    [
        (named_tuple, jax.jit), (registered, jax.jit), (of_flax, jax.jit), (of_equinox, jax.jit),
        (of_equinox, eqx.filter_jit), (named_tuple, eqx.filter_jit), (of_nnx, nnx.jit),
    ],
)  # fmt: skip
def test_a_class_that_was_defined_again_is_said_to_be(make, jit):
    reason = last(jit(lambda state, x: state.mu * x), (make(), X), (make(), X))
    assert (reason.kind, reason.leaf) == ("class", "state")
    assert (reason.before, reason.after) == ("State", "State, defined again")
    assert "State` was redefined" in reason.text
    assert "__eq__" not in reason.fix
    assert "define `State` once" in reason.fix


def test_an_inner_object_of_a_redefined_class_is_named():
    reason = last(jax.jit(lambda s: s["a"][0].mu), ({"a": [named_tuple()]},), ({"a": [named_tuple()]},))
    assert (reason.kind, reason.leaf) == ("class", "s['a'][0]")


def test_a_static_value_of_a_redefined_class_is_said_to_be():
    def make():
        @dataclasses.dataclass(frozen=True)
        class State:
            lr: float = 1.0

        return State()

    reason = last(jax.jit(lambda x, cfg: x * cfg.lr, static_argnums=1), (np.ones(3), make()), (np.ones(3), make()))
    assert (reason.kind, reason.leaf) == ("class", "cfg")


def test_a_class_without_equality_is_no_redefined_class():
    class Plain:
        pass

    reason = last(jax.jit(lambda x, cfg: x, static_argnums=1), (X, Plain()), (X, Plain()))
    assert (reason.kind, reason.leaf) == ("static", "cfg")
    assert "__eq__" in reason.text
