"""Programs of strands: each strand has a prime of its own among its dimensions, which no other strand has.

A strand is one array that goes through a few removable operations, between operations that stay. So whatever bears the
strand's prime and one of the removable operations' names is theirs, in any text that any stage or pass prints.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Array = Any
PRIMES = [n for n in range(101, 500) if all(n % i for i in range(2, 23))]


@dataclass(frozen=True)
class Removable:
    """Something that the compiler takes away, or that only looks so.

    Args:
        apply: To an array `f32[prime, 3]`; what it gives has the same shape.
        primitives: What a jaxpr calls the operations.
        instructions: What HLO calls them; StableHLO too, with underscores.
        stays: It is no removable operation: one is computed another way, or as it is.
    """

    apply: Callable[[Array], Array]
    primitives: frozenset[str]
    instructions: frozenset[str]
    stays: bool = False


def _kind(primitives: str, instructions: str, apply: Callable[[Array], Array], *, stays: bool = False) -> Removable:
    return Removable(apply, frozenset(primitives.split()), frozenset(instructions.split()), stays)


def _dead(x: Array) -> Array:
    _ = jnp.cbrt(x)
    return x


def _second_result(x: Array) -> Array:
    return jax.jit(lambda y: (jnp.ceil(y), y))(x)[1]


def _whole(x: Array) -> Array:
    return lax.slice(x, (0, 0), x.shape)


def _padded(x: Array) -> Array:
    return lax.pad(x, np.float32(0), [(0, 0, 0), (1, 2, 0)])[:, 1:4]


def _constant(x: Array) -> Array:
    values = np.linspace(1, 2, x.size, dtype=np.float32).reshape(x.shape)
    return x + jnp.log(jnp.asarray(values)) if x.ndim == 2 else x


def _branch(x: Array) -> Array:
    return lax.cond(np.bool_(True), lambda y: y, lambda y: jnp.floor(y), x)


def _narrow(x: Array) -> Array:
    """Integers that become wider and narrow again."""
    return lax.bitcast_convert_type(
        lax.bitcast_convert_type(x, jnp.int32).astype(jnp.uint32).astype(jnp.int32), jnp.float32
    )


KINDS: dict[str, Removable] = {
    "times one": _kind("mul", "multiply", lambda x: x * 1.0),
    "plus zero": _kind("add", "add", lambda x: x + 0),
    "minus zero": _kind("sub", "subtract", lambda x: x - 0.0),
    "over one": _kind("div", "divide", lambda x: x / 1.0),
    "to the one": _kind("pow", "power", lambda x: lax.pow(x, np.float32(1))),
    "transposed twice": _kind("transpose", "transpose", lambda x: x.T.T),
    "reversed twice": _kind("rev", "reverse", lambda x: lax.rev(lax.rev(x, (0,)), (0,))),
    "reversed back in parts": _kind("rev", "reverse", lambda x: lax.rev(lax.rev(x, (0, 1)), (1, 0))),
    "reshaped twice": _kind("reshape", "reshape bitcast", lambda x: x.reshape(-1).reshape(x.shape)),
    "negated twice": _kind("neg", "negate", lambda x: lax.neg(lax.neg(x))),
    "added and subtracted": _kind("add sub", "add subtract", lambda x: x + 2 - 2),
    "subtracted and added": _kind("add sub", "add subtract", lambda x: x - 3 + 3),
    "multiplied and divided": _kind("mul div", "multiply divide", lambda x: x * 8 / 8),
    "chosen by true": _kind("select_n", "select", lambda x: jnp.where(True, x, 0)),
    "chosen by false": _kind("select_n", "select", lambda x: jnp.where(False, 1.5, x)),
    "chosen among equals": _kind("select_n", "select", lambda x: lax.select(x > 0, x, x)),
    "sliced whole": _kind("slice", "slice", _whole),
    "sliced whole, dynamically": _kind(
        "dynamic_slice", "dynamic-slice", lambda x: lax.dynamic_slice(x, (np.int32(0), np.int32(0)), x.shape)
    ),
    "padded by nothing": _kind("pad", "pad", lambda x: lax.pad(x, np.float32(0), [(0, 0, 0), (0, 0, 0)])),
    "padded and cut": _kind("pad slice", "pad slice", _padded),
    "concatenated alone": _kind("concatenate", "concatenate", lambda x: lax.concatenate([x], 0)),
    "converted there and back": _kind("convert_element_type", "convert", _narrow),
    "the greater of itself": _kind("max", "maximum", lambda x: jnp.maximum(x, x)),
    "the less of itself": _kind("min", "minimum", lambda x: jnp.minimum(x, x)),
    "the absolute twice": _kind("abs", "abs", lambda x: jnp.abs(jnp.abs(x))),
    "not not": _kind("not", "not", lambda x: lax.select(lax.bitwise_not(lax.bitwise_not(x > 0)), x, x * 3)),
    "computed twice": _kind("tanh", "tanh", lambda x: jnp.tanh(x) * jnp.tanh(x)),
    "computed three times": _kind("atan2", "atan2", lambda x: sum(lax.atan2(x, x) for _ in range(3))),
    "dead": _kind("cbrt", "cbrt", _dead),
    "a result that nobody takes": _kind("ceil", "ceil", _second_result),
    "a branch that never runs": _kind("floor", "floor", _branch),
    "known beforehand": _kind("log", "log", _constant),
    "reduced over one": _kind("reduce_sum", "reduce", lambda x: x.reshape(1, *x.shape).sum(0)),
    # What stays, in one form or another.
    "over four": _kind("div", "divide multiply", lambda x: x / 4.0, stays=True),
    "over three": _kind("div", "divide multiply", lambda x: x / 3.0, stays=True),
    "squared": _kind("integer_pow", "multiply", lambda x: x**2, stays=True),
    "to the two": _kind("pow", "power multiply", lambda x: lax.pow(x, np.float32(2)), stays=True),
    "to the half": _kind("pow", "power sqrt", lambda x: lax.pow(x, np.float32(0.5)), stays=True),
    "one over the root": _kind("sqrt div", "sqrt divide rsqrt", lambda x: 1 / jnp.sqrt(x), stays=True),
    "the log of one more": _kind("log add", "log add log-plus-one", lambda x: jnp.log(x + 1), stays=True),
    "transposed once": _kind("transpose", "transpose bitcast", lambda x: jnp.sin(x.T).T, stays=True),
    "clamped": _kind(
        "clamp", "clamp maximum minimum", lambda x: lax.clamp(np.float32(-1), x, np.float32(1)), stays=True
    ),
}


def _plain(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return apply


def _jitted(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return jax.jit(lambda x: apply(x))


def _in_scan(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda x: lax.scan(lambda carry, _: (apply(carry), None), x, None, length=3)[0]


def _in_vmap(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return jax.vmap(apply)


def _in_grad(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return jax.grad(lambda x: jnp.sum(apply(x)))


def _called_twice(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    inner = _jitted(apply)
    return lambda x: inner(inner(x))


def _called_alike(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Two calls that are one computation."""
    inner = _jitted(apply)
    return lambda x: lax.rem(inner(x), inner(x))


def _called_in_vain(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    """Of two results nobody takes the second."""
    inner = _jitted(apply)
    return lambda x: jax.jit(lambda y: (inner(y), inner(inner(y))))(x)[0]


def _called_by_called(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return _called_twice(_called_twice(apply))


def _called_in_scan(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return _in_scan(_called_twice(apply))


def _called_in_grad(apply: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return _in_grad(_called_twice(apply))


CONTEXTS = {"": _plain, "jit": _jitted, "scan": _in_scan, "vmap": _in_vmap, "grad": _in_grad}
CALLED = {
    **{"a function called twice": _called_twice, "two calls alike": _called_alike, "a call in vain": _called_in_vain},
    **{"calls in calls": _called_by_called, "calls in a scan": _called_in_scan, "calls in a grad": _called_in_grad},
}
FIRST_CALLED = 240
"""From this seed on, every strand is in a function that is called several times."""


@dataclass(frozen=True)
class Strand:
    """One array of a program: its prime, what is done to it in order, and in what."""

    prime: int
    kinds: tuple[str, ...]
    context: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (2, self.prime, 3) if self.context == "vmap" else (self.prime, 3)

    def __call__(self, x: Array) -> Array:
        def apply(x: Array) -> Array:
            x = jnp.sin(x)
            for kind in self.kinds:
                x = KINDS[kind].apply(x)
            return jnp.cos(x)

        return (CONTEXTS | CALLED)[self.context](apply)(x)


@dataclass(frozen=True)
class Program:
    """Several strands, each of an argument of its own."""

    seed: int
    strands: tuple[Strand, ...]

    @property
    def arguments(self) -> list[jax.ShapeDtypeStruct]:
        return [jax.ShapeDtypeStruct(strand.shape, jnp.float32) for strand in self.strands]

    def __call__(self, *arrays: Array) -> list[Array]:
        return [strand(array) for strand, array in zip(self.strands, arrays, strict=True)]


def program(seed: int) -> Program:
    """The program of a seed; those of 0, 1, 2, … have every kind in turn, alone and beside others, in every context."""
    rng = random.Random(seed)
    names, contexts = list(KINDS), list(CONTEXTS if seed < FIRST_CALLED else CALLED)
    primes = rng.sample(PRIMES, 3)
    strands = [
        Strand(prime, tuple(_disjoint(rng, names[(seed * 3 + at) % len(names)], names)), rng.choice(contexts))
        for at, prime in enumerate(primes)
    ]
    return Program(seed, tuple(strands))


def _disjoint(rng: random.Random, first: str, names: list[str]) -> Iterator[str]:
    """A kind, and in half of the cases another one that shares no operation's name with it, before or after."""
    second = rng.choice(names)
    one, other = KINDS[first], KINDS[second]
    shared = one.primitives & other.primitives or one.instructions & other.instructions
    pair = [first] if shared or rng.random() < 0.5 else [first, second]
    rng.shuffle(pair)
    yield from pair


programs = partial(map, program)
