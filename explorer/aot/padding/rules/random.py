"""Random numbers: a bit depends on its key and its number in the array, so only the first axis may be padded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from explorer.aot.padding.interpreter import Call
from explorer.aot.padding.registry import Refused, rule
from explorer.aot.padding.rules.elementwise import apply_elementwise
from explorer.aot.padding.sizes import is_symbolic
from explorer.aot.padding.values import Value


def _check_position(call: Call, keys: Value, shape: Sequence[Any]) -> None:
    """Refuse numbers whose position in memory depends on the size.

    Raises:
        Refused: It does, or the generator counts otherwise.
    """
    if not any(map(is_symbolic, shape)):
        return
    if str(keys.aval.dtype) != "key<fry>" or not jax.config.jax_threefry_partitionable:  # pyright: ignore
        raise Refused(
            "random numbers of a padded array, of a generator that isn't known to count by position",
            "use threefry keys with jax_threefry_partitionable",
        )
    if any(map(is_symbolic, shape[1:])):
        raise Refused(
            "random numbers whose place in the array depends on the size: another axis than the first is padded",
            "draw them with the padded axis first, or with a key for each row",
        )


@rule("random_bits", "bit_width shape")
def bits(call: Call) -> Value:
    (keys,) = call.inputs
    _check_position(call, keys, call.params["shape"])
    return call.value(call.bind(keys.array), (*keys.layout, *((size,) for size in call.params["shape"])))


@rule("random_split", "shape")
def split(call: Call) -> Value:
    (keys,) = call.inputs
    _check_position(call, keys, call.params["shape"])
    return call.value(call.bind(keys.array), (*keys.layout, *((size,) for size in call.params["shape"])))


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
    _check_position(call, keys, shape.shape)
    shape = call.unmerged(shape)
    # A loop until each is accepted: of 1 it ends.
    return call.value(call.bind(keys.array, call.masked(shape, 1)))
