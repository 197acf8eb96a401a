"""Models of libraries are clean, hostile objects are never asked, strange containers cost no time."""

import time
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from explorer.pitfalls.lint import lint
from explorer.pitfalls.rule_outside_state import stale_values
from explorer.pitfalls.tracing import gather

X = jnp.ones(3)


@pytest.mark.slow
def test_models_of_libraries_are_clean():
    import equinox as eqx
    import optax
    from flax import linen, nnx

    class Dense(linen.Module):
        width: int

        @linen.compact
        def __call__(self, x):
            x = linen.Dense(self.width)(x)
            return linen.LayerNorm()(jax.nn.relu(x))

    class Layer(eqx.Module):
        linear: eqx.nn.Linear
        scale: float = 2.0

        def __call__(self, x):
            return jax.nn.gelu(self.linear(x)) * self.scale

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.linear = nnx.Linear(3, 3, rngs=rngs)

        def __call__(self, x):
            return self.linear(x)

    dense, optimizer = Dense(3), optax.adam(1e-3)
    params = dense.init(jax.random.key(0), X)
    layer = Layer(eqx.nn.Linear(3, 3, key=jax.random.key(0)))
    graph, state = nnx.split(Block(nnx.Rngs(0)))

    def train(params, moments, x):
        loss, gradients = jax.value_and_grad(lambda p: dense.apply(p, x).sum())(params)
        updates, moments = optimizer.update(gradients, moments, params)
        return optax.apply_updates(params, updates), moments, loss

    def apply_graph(state, x):
        return nnx.merge(graph, state)(x)

    arrays, static = eqx.partition(layer, eqx.is_array)

    def apply_layer(arrays, x):
        return eqx.combine(arrays, static)(x)

    for function, arguments in [
        (train, (params, optimizer.init(params), X)),
        (lambda x: dense.apply(params, x), (X,)),
        (apply_layer, (arrays, X)),
        (layer, (X,)),
        (layer.__call__, (X,)),
        (apply_graph, (state, X)),
    ]:
        ours = [one for one in lint(function, *arguments) if "EX001" <= one.code <= "EX008" or one.code == "EX011"]
        assert [one for one in ours if one.severity != "note"] == []


class Hostile:
    """Whatever is asked of it raises, and is remembered."""

    asked: ClassVar = []

    def _refuse(self, *_):
        Hostile.asked.append("asked")
        raise RuntimeError("asked")

    __repr__ = __str__ = __hash__ = __eq__ = __ne__ = __bool__ = __len__ = __iter__ = __contains__ = _refuse
    __float__ = __array__ = __dir__ = __format__ = __sizeof__ = __reduce__ = __copy__ = __deepcopy__ = _refuse
    __class__ = property(_refuse)
    __dict__ = property(_refuse)
    value = property(_refuse)

    def __getattr__(self, name):
        self._refuse()


class HostileMeta(type):
    def __getattribute__(cls, name):
        if name in ("__mro__", "__module__", "__dict__", "__qualname__", "__name__", "__subclasses__"):
            Hostile.asked.append(name)
        return super().__getattribute__(name)

    def __instancecheck__(cls, one):
        Hostile.asked.append("instance")
        return False

    def __subclasscheck__(cls, one):
        Hostile.asked.append("subclass")
        return False

    def __eq__(cls, other):
        Hostile.asked.append("eq")
        return False

    def __hash__(cls):
        return 1


class OfHostileClass(metaclass=HostileMeta):
    def __init__(self):
        self.inner = 1


def test_hostile_objects_are_never_asked():
    hostile, other = Hostile(), OfHostileClass()
    several = [hostile, {"a": hostile, 1: other}, (other,)]

    class Owner:
        def __init__(self):
            self.hostile = hostile
            self.other = other

    owner = Owner()

    def function(x):
        kept = several[0], owner.hostile, owner.other, other
        several.append(len(kept))
        return x * len(kept)

    Hostile.asked.clear()
    evidence = gather(function, [X], {})
    findings = lint(function, X)
    stale_values(evidence)
    assert Hostile.asked == []
    assert findings.faults == ()
    assert [one.rule for one in findings] == ["state-write"]


@pytest.mark.slow
@pytest.mark.parametrize("make", ["cycle", "deep", "wide", "long text", "large array"])
def test_strange_containers_cost_no_time(make):

    value = []
    if make == "cycle":
        value.append({"me": value, "all": [value, value]})
    elif make == "deep":
        for _ in range(100_000):
            value = [value]
    elif make == "wide":
        value = {i: [i] for i in range(1_000_000)}
    elif make == "long text":
        value = ["x" * 100_000_000]
    else:
        value = [np.zeros(30_000_000)]

    def function(x):
        return x * len(value)

    start = time.process_time()
    plain = jax.jit(function).trace(X)
    tracing = time.process_time() - start
    start = time.process_time()
    assert lint(function, X).faults == ()
    assert plain is not None
    assert time.process_time() - start < tracing + 1.0
    while make == "deep" and value:  # Python frees what is nested call by call
        value = value.pop()
