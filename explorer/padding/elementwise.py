"""Rules for element-wise operations and random numbers.

Padded positions are computed from padding; known fills stay known. A random bit depends on its key and its position
in memory, which depends on all axes but the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorer.padding.interpreter import UNIFORM, Call, Fill, Layout, Value, longest_layout, rule, scalar_fill
from explorer.padding.sizes import Refused, is_symbolic

_PLAIN = """
abs acos acosh add add_any and asin asinh atan atan2 atanh bessel_i0e bessel_i1e cbrt ceil clamp clz complex conj copy
copy_p cos cosh digamma div eq eq_to erf erf_inv erfc exp exp2 expm1 floor ge ge_to gt gt_to imag integer_pow
is_finite le le_to lgamma log log1p log2 logistic lt lt_to max min mul mulhi name ne neg nextafter not
one_minus_square optimization_barrier or polygamma polynomial population_count pow real reduce_precision rem round
rsqrt select_n shift_left shift_right_arithmetic shift_right_logical sign sin sinh sqrt square stop_gradient sub tan
tanh threefry2x32 xor zeta
"""


@rule(
    _PLAIN,
    parameters="accuracy y exponent_bits mantissa_bits rounding_method name input_dtype _input_dtype unroll",
    absent="out_dtype sharding",
    shrinks=True,
)
def elementwise(call: Call) -> Sequence[Value]:
    results = apply_elementwise(call)
    if call.name in ("sub", "exp", "stop_gradient", "max"):
        _follow_softmax(call, results[0])
    return results


def _follow_softmax(call: Call, result: Value) -> None:
    """Set `result.greatest_of` and `result.or_nan` in `exp(x - max(x))`, whose sum then needs no mask.

    A mask doubles the time. x is -inf in the padding. Minus the maximum it stays -inf and exp makes it 0, unless the
    maximum is NaN or -inf. Then it is NaN, but so are all valid elements of that maximum: x - NaN, or -inf + inf.
    """
    first, *others = call.inputs
    if call.name == "exp":
        result.or_nan = {axis: 0 for axis, fill in first.or_nan.items() if fill == -np.inf}
    elif call.name == "stop_gradient":
        result.greatest_of = first.greatest_of
    elif call.name == "max":  # jax.nn.softmax also takes the maximum with -inf
        (other,) = others
        pairs = ((first, other), (other, first))
        result.greatest_of = next((one.greatest_of for one, two in pairs if scalar_fill(two) == -np.inf), None)
    elif (of := others[0].greatest_of) is not None and of[0] is first.array and others[0].rank == first.rank:
        result.or_nan = {axis: -np.inf for axis in of[1] if first.is_padded(axis) and first.fills[axis] == -np.inf}


@rule("igamma igamma_grad_a igammac random_gamma_grad regularized_incomplete_beta")
def iterative(call: Call) -> Sequence[Value]:
    # XLA loops until all elements converge: garbage may take all iterations, 1 takes few.
    for value in call.inputs:
        call.masked(value, 1)
    return apply_elementwise(call)


@rule("convert_element_type", "new_dtype weak_type", "sharding", shrinks=True)
@rule("random_fold_in random_clone")
@rule("random_seed", "impl")
def converted(call: Call) -> Sequence[Value]:
    return apply_elementwise(call)


@rule("bitcast_convert_type", parameters="new_dtype")
def bitcast(call: Call) -> Sequence[Value]:
    (value,) = call.inputs
    if len(call.shape) == value.rank:
        return apply_elementwise(call)
    # Another bit width adds or removes a last axis.
    rank = min(len(call.shape), value.rank)
    if any(value.is_padded(axis) for axis in range(rank, value.rank)):
        raise Refused("bits along a padded axis become one number")
    layout = (*value.layout[:rank], *((size,) for size in call.shape[rank:]))
    return [call.value(call.bind(value.array), layout)]


def apply_elementwise(call: Call) -> Sequence[Value]:
    if call.name == "optimization_barrier":  # one result per operand, of the operand's shape
        arrays = call.bind(*(value.array for value in call.inputs))
        pairs = zip(arrays, call.avals, call.inputs, strict=True)
        return [Value(array, aval, value.layout, value.fills) for array, aval, value in pairs]
    stretched = [_stretched(value, call.shape) for value in call.inputs if value.rank]
    alike = call.aligned(stretched, [range(value.rank) for value in stretched])
    layout = longest_layout(alike) if alike else None
    rest = iter(alike)
    values = [next(rest) if value.rank else value for value in call.inputs]
    arrays = call.bind(*(value.array for value in values))
    if call.equation.primitive.multiple_results:
        return call.values(arrays, layout)
    return [call.value(arrays, layout, _fills(call, values, layout))]


def _stretched(value: Value, shape: Sequence[Any]) -> Value:
    """Return the operand as uniform along its axes of size 1 that `shape` stretches; unchanged without such an axis."""
    axes = [axis for axis, (one, other) in enumerate(zip(value.shape, shape, strict=True)) if one != other]
    if not axes:
        return value
    layout = tuple(UNIFORM if axis in axes else factors for axis, factors in enumerate(value.layout))
    return Value(value.array, value.aval, layout, tuple(None if a in axes else f for a, f in enumerate(value.fills)))


# Fills ------------------------------------------------------------------------------------------------------------

# Operations that NumPy and every compiler compute alike on fills. Missing entries are safe: an unknown fill only costs
# a mask.
_FOLDS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "add_any": np.add,
    "and": np.bitwise_and,
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "max": np.maximum,
    "min": np.minimum,
    "mul": np.multiply,
    "ne": np.not_equal,
    "neg": np.negative,
    "not": np.invert,
    "or": np.bitwise_or,
    "square": np.square,
    "sub": np.subtract,
    **dict.fromkeys(("copy", "copy_p", "name", "stop_gradient"), np.positive),
}


def _fills(call: Call, values: Sequence[Value], layout: Layout | None) -> tuple[Fill, ...] | None:
    if layout is None or not any(fill is not None for value in values for fill in value.fills):
        return None
    return tuple(
        _fill(call, [v.fills[axis] if v.rank else scalar_fill(v) for v in values]) if is_symbolic(size) else None
        for axis, size in enumerate(call.shape)
    )


def _fill(call: Call, fills: list[Fill]) -> Fill:
    if call.name == "select_n":
        which, *cases = fills
        return cases[int(which.real)] if which is not None else cases[0] if len(set(cases)) == 1 else None
    if None in fills:
        return None
    if call.name == "convert_element_type":
        return _exact(fills[0], call.avals[0].dtype) if fills[0] in (0, 1) else None
    fold = _FOLDS.get(call.name)
    if fold is None or not np.issubdtype(call.inputs[0].aval.dtype, np.generic):
        return None
    with np.errstate(all="ignore"):
        operands = [np.asarray(f, v.aval.dtype) for f, v in zip(fills, call.inputs, strict=True)]
        return _exact(fold(*operands).item(), call.avals[0].dtype)


def _exact(number: Any, dtype: Any) -> Fill:
    """Return a number that every dtype holds exactly (0, ±1, ±infinity); its truth for a bool dtype; else None."""
    if dtype == np.bool_:
        return bool(number)
    return number if number in (0, 1, -1, np.inf, -np.inf) else None


@rule("random_bits", "bit_width shape")
@rule("random_split", "shape")
def drawn(call: Call) -> Value:
    (keys,), shape = call.inputs, call.params["shape"]
    layout = (*keys.layout, *((size,) for size in shape))
    _check_generator(keys, shape)
    if not any(map(is_symbolic, shape[1:])):
        return call.value(call.bind(keys.array), layout)
    # Draw one row, and gather each number from its position in the unpadded array.
    bucket = call.sizes.shape(shape)
    row = call.bind(keys.array, shape=(math.prod(bucket),))
    positions = call.sizes.positions(tuple(shape), (math.prod(shape),))
    call.interpreter.tally.relayouts += 1
    taken = jnp.take(row, positions, axis=keys.rank, mode="clip")
    return call.value(taken.reshape(*taken.shape[: keys.rank], *bucket), layout)


def _check_generator(keys: Value, shape: Sequence[Any]) -> None:
    is_known = str(keys.aval.dtype) == "key<fry>" and jax.config.jax_threefry_partitionable  # pyright: ignore
    if any(map(is_symbolic, shape)) and not is_known:
        raise Refused(
            "random numbers of a padded array, of a generator that isn't known to count by position",
            "use threefry keys with jax_threefry_partitionable",
        )


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
    # XLA loops until each number is accepted, which garbage may prevent.
    return call.value(call.bind(keys.array, call.masked(shape, 1)))
