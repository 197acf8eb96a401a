"""Rules for operations that combine the elements of an axis: contractions, convolutions, windows, linear algebra,
reductions, cumulative operations, argmax and sorting.

Both operands are masked with 0 along a contracted axis, as 0 · NaN is NaN. A window's overhang sees the function's own
padding value. Batch axes of matrices and signals may be padded. For a reduction, padding is masked with the neutral
element; for sorting with the greatest key, so that valid elements come first.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from explorer.padding.interpreter import Call, Fill, Layout, Value, identity, rule, scalar_fill
from explorer.padding.sizes import Refused, is_symbolic


@rule("dot_general", "dimension_numbers precision preferred_element_type", absent="out_sharding", shrinks=True)
def dot(call: Call) -> Value:
    (contracting_left, contracting_right), (batch_left, batch_right) = call.params["dimension_numbers"]
    left, right = call.aligned(call.inputs, [(*contracting_left, *batch_left), (*contracting_right, *batch_right)])
    arrays = call.masked(left, 0, contracting_left), call.masked(right, 0, contracting_right)
    free = [
        value.layout[axis]
        for value, used in ((left, (*contracting_left, *batch_left)), (right, (*contracting_right, *batch_right)))
        for axis in range(value.rank)
        if axis not in used
    ]
    batch = [left.layout[one] or right.layout[other] for one, other in zip(batch_left, batch_right, strict=True)]
    return call.value(call.bind(*arrays), (*batch, *free))


@rule("ragged_dot_general", "ragged_dot_dimension_numbers precision preferred_element_type", absent="group_offset")
def ragged_dot(call: Call) -> Value:
    raise Refused("a ragged product's groups are counted along a padded axis")


_FRONT = "the padding in front depends on the size"
_FRONT_HINT = "give the padding as numbers, or use stride 1"


@rule(
    "conv_general_dilated",
    "window_strides padding lhs_dilation rhs_dilation dimension_numbers feature_group_count batch_group_count precision"
    " preferred_element_type",
    absent="out_sharding",
)
def convolution(call: Call) -> Value:
    numbers = call.params["dimension_numbers"]
    image, kernel = call.inputs[0], call.inputs[1]
    (batch, feature, *space), (out_feature, in_feature, *kernel_space) = numbers.lhs_spec, numbers.rhs_spec
    _check_groups(call, image, kernel, (batch, feature, out_feature))
    if any(is_symbolic(low) for low, _ in call.params["padding"]):
        raise Refused(_FRONT, _FRONT_HINT)
    image = call.unmerged(image, [feature, *space])
    kernel = call.unmerged(kernel, [in_feature, *kernel_space])
    if any(image.is_padded(a) for a in (feature, *space)) or any(kernel.is_padded(a) for a in kernel_space):
        # Mask both: 0 · NaN is NaN, and overhanging windows are summed too.
        arrays = call.masked(image, 0, [feature, *space]), call.masked(kernel, 0, [in_feature, *kernel_space])
    else:
        arrays = image.array, kernel.array
    out_batch, out_channel, *_ = numbers.out_spec
    layout: list[Any] = [(size,) for size in call.shape]
    layout[out_batch], layout[out_channel] = image.layout[batch], kernel.layout[out_feature]
    return call.value(call.bind(*arrays), tuple(layout))


def _check_groups(call: Call, image: Value, kernel: Value, axes: tuple[int, int, int]) -> None:
    batch, feature, out_feature = axes
    features, batches = call.params["feature_group_count"], call.params["batch_group_count"]
    padded_features = image.is_padded(feature) or kernel.is_padded(out_feature)
    padded_batches = image.is_padded(batch) or kernel.is_padded(out_feature)
    if is_symbolic(features) or is_symbolic(batches):
        raise Refused("a convolution in as many groups as an axis is long")
    if (features != 1 and padded_features) or (batches != 1 and padded_batches):
        raise Refused("a convolution in groups along a padded axis")


# Windows ----------------------------------------------------------------------------------------------------------

_WINDOW = "window_dimensions window_strides padding base_dilation window_dilation"


@rule("reduce_window_sum reduce_window_max reduce_window_min", _WINDOW, absent="out_sharding")
def window(call: Call) -> Value:
    (value,) = call.inputs
    reached = _reached(call, value)
    value = call.unmerged(value, reached)
    array = call.masked(value, identity(call.name.removeprefix("reduce_window_"), value.aval.dtype), reached)
    return call.value(call.bind(array), call.in_one_piece(value, reached))


@rule("reduce_window", f"{_WINDOW} jaxpr consts")
def any_window(call: Call) -> Sequence[Value]:
    values = call.inputs[: len(call.inputs) // 2]
    starts = [value.array for value in call.inputs[len(values) :]]
    for value in values:
        if any(value.is_padded(axis) for axis in _reached(call, value)):
            raise Refused("windows along a padded axis, reduced by a function without a known neutral element")
    values = call.aligned(values, [range(value.rank) for value in values])
    arrays = call.bind(*(value.array for value in values), *starts)
    return call.values(arrays, call.in_one_piece(values[0], _reached(call, values[0])))


def _reached(call: Call, value: Value) -> list[int]:
    """Return the axes along which a window covers more than one position.

    Raises:
        Refused: The position of windows depends on the size.
    """
    settings = [call.params[key] for key in _WINDOW.split() if key in call.params]
    return [axis for axis, values in enumerate(zip(*settings, strict=True)) if _is_reached(value.shape[axis], *values)]


def _is_reached(size: Any, length: Any, stride: Any, padding: tuple[Any, Any], *dilations: Any) -> bool:
    if is_symbolic(padding[0]):
        raise Refused(_FRONT, _FRONT_HINT)
    if length == size and padding == (0, 0):  # one window over the whole axis
        return True
    if any(map(is_symbolic, (length, stride, *dilations))):
        raise Refused("the length of a window or its stride depends on the size")
    return (length, stride, *padding, *dilations) != (1, 1, 0, 0, *[1] * len(dilations))


@rule("select_and_scatter_add", "select_prim window_dimensions window_strides padding")
def scatter_to_selected(call: Call) -> Value:
    source, operand = call.inputs
    # Padding loses every comparison, as JAX's own does, and contributes 0.
    kind: Any = {"ge": "max", "le": "min"}.get(call.params["select_prim"].name)
    reached = _reached(call, operand)
    if kind is None:
        raise Refused("the gradient of windows that select an element other than an extreme")
    source, operand = call.unmerged(source, reached), call.unmerged(operand, reached)
    others = [axis for axis in range(operand.rank) if axis not in reached]
    source, operand = call.aligned([source, operand], [others, others])
    arrays = call.masked(source, 0, reached), call.masked(operand, identity(kind, operand.aval.dtype), reached)
    return call.value(call.bind(*arrays), call.in_one_piece(operand, reached))


@rule("select_and_gather_add", f"select_prim {_WINDOW}")
def gather_from_selected(call: Call) -> Value:
    tangents, operand = call.inputs
    reached = _reached(call, operand)
    if any(operand.is_padded(axis) for axis in reached):
        raise Refused("the derivative of windows along a padded axis")
    tangents, operand = call.aligned([tangents, operand], [range(operand.rank)] * 2)
    return call.value(call.bind(tangents.array, operand.array), operand.layout)


_MATRICES = """
cholesky_update eig eigh geqrf geqp3 hessenberg householder_product ormqr qr schur svd symmetric_product tridiagonal
tridiagonal_solve
"""
_HINT = "pad to a fixed size, or keep it out of the function"
_PARAMETERS = """
symmetrize_input lower sort_eigenvalues subset_by_index algorithm compute_left_eigenvectors compute_right_eigenvectors
implementation pivoting full_matrices use_magma compute_uv left_side transpose_a conjugate_a unit_diagonal
compute_schur_vectors sort_eig_vals select_callable perturbation_m perturbation_eps left transpose enable_eigvec_derivs
"""


@rule(_MATRICES, _PARAMETERS)
def of_matrices(call: Call) -> Sequence[Value]:
    return _batched(call, 2)


@rule("cholesky lu", "symmetrize_input")
def square_factors(call: Call) -> Sequence[Value]:
    return call.values(_results(call, [_extended(call, call.inputs[0])]))


@rule("triangular_solve", "left_side lower transpose_a conjugate_a unit_diagonal")
def triangular_solve(call: Call) -> Sequence[Value]:
    matrix, right = call.inputs
    return call.values(_results(call, [_extended(call, matrix), call.masked(call.unmerged(right), 0)]))


def _extended(call: Call, value: Value) -> Any:
    """Return the array of `value`'s matrices with 0 in the padding, but 1 on its diagonal.

    The identity there doesn't mix with the valid part.

    Raises:
        Refused: A matrix may not be square.
    """
    rows, columns = value.shape[-2:]
    array = call.masked(call.unmerged(value), 0)
    if not is_symbolic(rows) and not is_symbolic(columns):
        return array
    if not rows == columns:
        raise Refused(f"`{call.name}` of a matrix that isn't square, along a padded axis", _HINT)
    shape, last = array.shape, array.ndim - 1
    row, column = (lax.broadcasted_iota(jnp.int32, shape, axis) for axis in (last - 1, last))
    is_new = (row == column) & (row >= jnp.int32(call.sizes.true(rows)))
    return lax.select(is_new, lax.full(shape, 1, array.dtype), array)


@rule("lu_pivots_to_permutation", "permutation_size")
def of_vectors(call: Call) -> Sequence[Value]:
    return _batched(call, 1)


@rule("fft", "fft_type fft_lengths")
def fft(call: Call) -> Sequence[Value]:
    return _batched(call, len(call.params["fft_lengths"]))


def _batched(call: Call, inner: int) -> Sequence[Value]:
    for value in call.inputs:
        if any(axis >= value.rank - inner for axis in value.padded_axes):
            raise Refused(f"`{call.name}` along a padded axis", _HINT)
    # Iterative algorithms converge on zeros, but may not on NaN.
    return call.values(_results(call, [call.masked(call.unmerged(value), 0) for value in call.inputs]))


def _results(call: Call, arrays: Sequence[Any]) -> list[Any]:
    results: Any = call.bind(*arrays)
    return results if call.equation.primitive.multiple_results else [results]


@rule("custom_linear_solve", "const_lengths jaxprs")
def linear_solve(call: Call) -> Sequence[Value]:
    lengths = call.params["const_lengths"]
    before = lengths.matvec + lengths.vecmat
    after = before + lengths.solve + lengths.transpose_solve
    operands = [*call.inputs[before : before + lengths.solve], *call.inputs[after:]]
    return call.interpreter.run(call.params["jaxprs"].solve, operands)


def _kind(call: Call) -> str:
    """Return the operation of `reduce_sum`, `cumsum` or `argmax`: `sum`, `sum`, `max`; `max` for logsumexp too."""
    kind = re.split("reduce_|cum|arg", call.name)[-1]
    return "max" if kind == "logsumexp" else kind  # padding of -inf adds nothing to either


@rule(
    "reduce_sum reduce_prod reduce_max reduce_min reduce_or reduce_and reduce_xor",
    "axes",
    absent="out_sharding",
    shrinks=True,
)
def reduction(call: Call) -> Value:
    (value,) = call.inputs
    kind, axes = _kind(call), [int(axis) for axis in call.params["axes"]]
    neutral = identity(kind, value.aval.dtype)
    kept = [axis for axis in range(value.rank) if axis not in axes]
    if kind == "prod" and _is_complex(value) and any(value.is_padded(axis) for axis in axes):
        return call.value(_product_of_valid(call, value, axes), _settled(value, kept))
    sums_alone = kind == "sum" and _sums_alone(value, axes, neutral)
    array = value.array if sums_alone else call.masked(value, neutral, axes)
    fills = [_reduced(kind, value.fills[axis], neutral) for axis in kept]
    result = call.value(call.bind(array), _settled(value, kept), fills)
    if kind == "max":
        result.greatest_of = array, frozenset(axes)
    return result


def _sums_alone(value: Value, axes: Sequence[int], neutral: Fill) -> bool:
    """Return True if there is padding, and `or_nan` has `neutral` for each padded axis, so that a sum needs no mask.

    Such padding is 0, or NaN where all valid elements are NaN, as in softmax.
    """
    padded = [axis for axis in axes if value.is_padded(axis)]
    return bool(padded) and all(axis in value.or_nan and value.or_nan[axis] == neutral for axis in padded)


def _is_complex(value: Value) -> bool:
    return jnp.issubdtype(value.aval.dtype, jnp.complexfloating)


def _product_of_valid(call: Call, value: Value, axes: Sequence[int]) -> Any:
    """Return the product of the valid elements. 1 isn't neutral for complex numbers: (inf+0j)·(1+0j) is inf+nanj."""
    mask = jnp.ones(value.array.shape, bool)
    for axis in axes:
        if value.is_padded(axis):
            own = call.sizes.mask(value.layout[axis] or (value.shape[axis],))
            mask = lax.bitwise_and(mask, lax.broadcast_in_dim(own, mask.shape, (axis,)))

    def both(one: tuple[Any, Any], other: tuple[Any, Any]) -> tuple[Any, Any]:
        product = lax.select(one[1], lax.select(other[1], one[0] * other[0], one[0]), other[0])
        return product, lax.bitwise_or(one[1], other[1])

    one = jnp.ones((), value.aval.dtype)
    product, is_any = lax.reduce((value.array, mask), (one, jnp.zeros((), bool)), both, axes)
    return lax.select(is_any, product, jnp.ones_like(product))


def _settled(value: Value, axes: Sequence[int]) -> Layout:
    return tuple(value.layout[axis] for axis in axes)


def _reduced(kind: str, fill: Fill, neutral: Fill) -> Fill:
    """Return the reduction of elements that all equal `fill`; None if it is unknown."""
    if fill == neutral or kind in ("max", "min", "or", "and"):
        return fill
    return 0 if kind == "prod" and fill == 0 else None


@rule("reduce", "computation jaxpr dimensions")
def any_reduction(call: Call) -> Sequence[Value]:
    operands, starts = call.inputs[: len(call.inputs) // 2], call.inputs[len(call.inputs) // 2 :]
    axes = [int(axis) for axis in call.params["dimensions"]]
    kept = [axis for axis in range(operands[0].rank) if axis not in axes]
    neutral = _neutral(call.params["jaxpr"], operands)
    # XLA's result is undefined if the start isn't neutral.
    if neutral is not None and scalar_fill(starts[0]) == neutral:
        array = call.masked(operands[0], neutral, axes)
        return call.values(call.bind(array, starts[0].array), _settled(operands[0], kept))
    if any(operands[0].is_padded(axis) for axis in axes):
        raise Refused(
            "a reduction over a padded axis by a function without a known neutral element",
            "use a sum, product, maximum or minimum",
        )
    values = call.aligned(operands, [range(value.rank) for value in operands])
    arrays = call.bind(*(value.array for value in (*values, *starts)))
    return call.values(arrays, _settled(values[0], kept))


_OPERATIONS = {"add": "sum", "mul": "prod", "max": "max", "min": "min", "and": "and", "or": "or", "xor": "xor"}


def _neutral(closed: Any, operands: Sequence[Value]) -> Fill:
    jaxpr = getattr(closed, "jaxpr", closed)
    if len(operands) != 1 or len(jaxpr.eqns) != 1 or list(jaxpr.eqns[0].invars) != list(jaxpr.invars):
        return None
    kind = _OPERATIONS.get(jaxpr.eqns[0].primitive.name)
    if kind is None or (kind == "prod" and _is_complex(operands[0])):
        return None
    return identity(kind, operands[0].aval.dtype)


@rule("argmax argmin", "axes index_dtype")
def argument(call: Call) -> Value:
    axes = [int(axis) for axis in call.params["axes"]]
    value = call.unmerged(call.inputs[0], axes)
    # The first of equal elements wins, and valid positions come first.
    array = call.masked(value, identity(_kind(call), value.aval.dtype), axes)
    return call.value(call.bind(array), _settled(value, [axis for axis in range(value.rank) if axis not in axes]))


@rule("cumsum cumprod cummax cummin cumlogsumexp", "axis reverse")
def cumulative(call: Call) -> Value:
    (value,) = call.inputs
    axis = int(call.params["axis"])
    # Padding after all valid positions doesn't reach them, unless the direction is reversed or the axis merged.
    reaches = call.params["reverse"] or len(value.layout[axis]) > 1
    if reaches and call.name == "cumprod" and _is_complex(value):
        raise Refused("a product of complex numbers from the end of a padded axis: (inf+0j)·(1+0j) is inf+nanj")
    array: Any = call.masked(value, identity(_kind(call), value.aval.dtype), [axis]) if reaches else value.array
    layout = tuple((value.shape[a],) if a == axis and not f else f for a, f in enumerate(value.layout))
    return call.value(call.bind(array), layout)


@rule("sort", "dimension is_stable num_keys")
def sort(call: Call) -> Sequence[Value]:
    axis, keys = int(call.params["dimension"]), call.params["num_keys"]
    values = call.aligned(call.inputs, [range(value.rank) for value in call.inputs])
    layout = call.in_one_piece(values[0], [axis])
    if not values[0].is_padded(axis):
        return call.values(call.bind(*(value.array for value in values)), layout)
    # A stable sort puts valid elements before padding of the same key.
    stable = call.params["is_stable"] or keys < len(values)
    arrays = [call.masked(value, _greatest(value.aval.dtype), [axis]) for value in values[:keys]]
    rest = [value.array for value in values[keys:]]
    return call.values(call.bind(*arrays, *rest, is_stable=stable), layout)


def _greatest(dtype: Any) -> Fill:
    """Return the key that JAX sorts last: NaN of any sign, or the greatest number of the type."""
    if jnp.issubdtype(dtype, np.complexfloating):
        return complex(np.nan, np.nan)
    if jnp.issubdtype(dtype, np.inexact):
        return np.nan
    return identity("min", dtype)


@rule("top_k", "k axis is_stable")
def top_k(call: Call) -> Sequence[Value]:
    (operand,) = call.inputs
    axis = int(call.params.get("axis", -1)) % operand.rank
    value = call.unmerged(operand, [axis])
    if value.is_padded(axis) and not call.params.get("is_stable", True):
        raise Refused("the largest elements of a padded axis, in any order of equal ones")
    # The first of equal elements win, and valid positions come first.
    array = call.masked(value, identity("max", value.aval.dtype), [axis])
    return call.values(call.bind(array), call.in_one_piece(value, [axis]))


@rule("approx_top_k", "k reduction_dimension recall_target is_max_k reduction_input_size_override aggregate_to_topk")
def approximate_top_k(call: Call) -> Sequence[Value]:
    (operand,) = call.inputs
    axis = int(call.params["reduction_dimension"]) % operand.rank
    if operand.is_padded(axis):
        raise Refused("how well the largest elements are approximated depends on the size", "use jax.lax.top_k")
    return call.values(call.bind(operand.array), call.in_one_piece(operand, [axis]))
