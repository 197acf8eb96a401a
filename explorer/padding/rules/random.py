"""Random numbers: a bit depends on its key and its number in the array, of all axes but the first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from explorer.padding.interpreter import Call
from explorer.padding.refused import Refused
from explorer.padding.registry import rule
from explorer.padding.rules.elementwise import apply_elementwise
from explorer.padding.sizes import is_symbolic
from explorer.padding.values import Value


@rule("random_bits", "bit_width shape")
def bits(call: Call) -> Value:
    return _drawn(call, call.params["shape"])


@rule("random_split", "shape")
def split(call: Call) -> Value:
    return _drawn(call, call.params["shape"])


def _drawn(call: Call, shape: Sequence[Any]) -> Value:
    """What a generator gives for each key, whose position in memory is the unpadded array's."""
    (keys,) = call.inputs
    layout = (*keys.layout, *((size,) for size in shape))
    _check_generator(keys, shape)
    if not any(map(is_symbolic, shape[1:])):
        return call.value(call.bind(keys.array), layout)
    # Drawn in one row, and gathered from where each is without padding.
    bucket = call.sizes.shape(shape)
    row = call.bind(keys.array, shape=(math.prod(bucket),))
    positions = call.sizes.positions(tuple(shape), (math.prod(shape),))
    call.interpreter.tally.relayouts += 1
    drawn = jnp.take(row, positions, axis=keys.rank, mode="clip")
    return call.value(drawn.reshape(*drawn.shape[: keys.rank], *bucket), layout)


def _check_generator(keys: Value, shape: Sequence[Any]) -> None:
    """Refuse numbers of a generator that counts otherwise than by position.

    Raises:
        Refused: It isn't known to.
    """
    is_known = str(keys.aval.dtype) == "key<fry>" and jax.config.jax_threefry_partitionable  # pyright: ignore
    if any(map(is_symbolic, shape)) and not is_known:
        raise Refused(
            "random numbers of a padded array, of a generator that isn't known to count by position",
            "use threefry keys with jax_threefry_partitionable",
        )


@rule("random_fold_in random_clone")
def of_each_key(call: Call) -> Sequence[Value]:
    return apply_elementwise(call, call.bind)


@rule("random_seed", "impl")
def seed(call: Call) -> Sequence[Value]:
    return apply_elementwise(call, call.bind)


@rule("random_wrap random_unwrap", "impl")
def data(call: Call) -> Value:
    (value,) = call.inputs
    rank = min(value.rank, len(call.shape))
    return call.value(call.bind(value.array), (*value.layout[:rank], *((size,) for size in call.shape[rank:])))


@rule("random_gamma", "log_space")
def gamma(call: Call) -> Value:
    keys, shape = call.inputs
    if keys.rank:
        raise Refused("gamma numbers of several keys")
    _check_generator(keys, shape.shape)
    if any(map(shape.is_padded, range(1, shape.rank))):
        raise Refused(
            "gamma numbers whose place in the array depends on the size: another axis than the first is padded",
            "draw them with the padded axis first, or with a key for each row",
        )
    shape = call.unmerged(shape)
    # A loop until each is accepted: of 1 it ends.
    return call.value(call.bind(keys.array, call.masked(shape, 1)))
