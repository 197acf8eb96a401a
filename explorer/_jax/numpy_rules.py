"""Primitives of JAX as NumPy functions: they run in microseconds, where JAX compiles each operation and shape first."""

# NumPy's own types are partly unknown, and those of lambdas in tables too.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

Params = Mapping[str, Any]
# Takes an equation's parameters and operands, and returns its result, or a tuple of several; the caller converts them
# to the avals' dtypes.
Rule = Callable[..., Any]


def _of(compute: Callable[..., Any]) -> Rule:
    return lambda params, *operands: compute(*operands)


def _wide(array: np.ndarray) -> np.ndarray:
    """Return floats of fewer than 4 bytes as float32, which NumPy computes a hundred times faster; others unchanged."""
    is_small = array.dtype.itemsize < 4 and array.dtype.kind in "fV"
    return array.astype(np.float32) if is_small else array


def _divide(x: np.ndarray, y: np.ndarray) -> Any:
    if x.dtype.kind not in "iu":
        return np.divide(x, y)
    if not y.all():  # XLA gives -1 or the largest number, NumPy 0
        raise ValueError("an integer is divided by zero")
    return np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y)) if x.dtype.kind == "i" else x // y


def _shifted(shift: Callable[..., Any], view: str) -> Rule:
    def rule(_: Params, x: np.ndarray, count: np.ndarray) -> Any:
        bits = 8 * x.dtype.itemsize
        number = x.view(f"{view}{x.dtype.itemsize}")
        if not (count >= 0).all() or not (count < bits).all():
            raise ValueError("a shift by more bits than there are")
        return shift(number, count.astype(number.dtype)).view(x.dtype)

    return rule


def _round(params: Params, x: np.ndarray) -> Any:
    is_even = int(params["rounding_method"]) == 1  # else halves go away from zero
    return np.round(x) if is_even else np.trunc(x + np.copysign(np.asarray(0.5, x.dtype), x))


def _integer_pow(params: Params, x: np.ndarray) -> Any:
    exponent = params["y"]
    return np.power(x, exponent) if exponent >= 0 else 1 / np.power(x, -exponent)


def _select(_: Params, which: np.ndarray, *cases: np.ndarray) -> Any:
    chosen = cases[0]
    for i, case in enumerate(cases[1:], 1):
        chosen = np.where(which == i, case, chosen)
    return chosen


def _broadcast(params: Params, x: np.ndarray) -> Any:
    shape = params["shape"]
    inner = [1] * len(shape)
    for axis, size in zip(params["broadcast_dimensions"], x.shape, strict=True):
        inner[axis] = size
    return np.broadcast_to(x.reshape(inner), shape)


def _slice(params: Params, x: np.ndarray) -> Any:
    strides = params["strides"] or (1,) * x.ndim
    bounds = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return x[tuple(slice(*bound) for bound in bounds)]


def _window(starts: Sequence[Any], sizes: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """Return one slice per axis of a dynamic slice: XLA moves a window inside where it would end outside."""
    first = [max(0, min(int(start), whole - size)) for start, size, whole in zip(starts, sizes, shape, strict=True)]
    return tuple(slice(start, start + size) for start, size in zip(first, sizes, strict=True))


def _dynamic_slice(params: Params, x: np.ndarray, *starts: Any) -> Any:
    return x[_window(starts[: x.ndim], params["slice_sizes"], x.shape)]


def _dynamic_update_slice(_: Params, x: np.ndarray, update: np.ndarray, *starts: Any) -> Any:
    changed = x.copy()
    changed[_window(starts, update.shape, x.shape)] = update
    return changed


def _iota(params: Params, *_: Any) -> Any:
    shape, axis = params["shape"], params["dimension"]
    line = np.arange(shape[axis]).astype(params["dtype"])
    return np.broadcast_to(line.reshape([-1 if i == axis else 1 for i in range(len(shape))]), shape)


def _pad(params: Params, x: np.ndarray, value: np.ndarray) -> Any:
    config = params["padding_config"]
    if any(low < 0 or high < 0 for low, high, _ in config):
        raise NotImplementedError("negative padding")
    inside = [
        low + (size - 1) * (gap + 1) + 1 if size else low for (low, _, gap), size in zip(config, x.shape, strict=True)
    ]
    whole = np.full([end + high for end, (_, high, _) in zip(inside, config, strict=True)], value, x.dtype)
    whole[tuple(slice(low, end, gap + 1) for (low, _, gap), end in zip(config, inside, strict=True))] = x
    return whole


def _reduce(compute: Callable[..., Any]) -> Rule:
    return lambda params, x: compute(_wide(x), axis=tuple(params["axes"]))


def _arg(compute: Callable[..., Any]) -> Rule:
    return lambda params, x: compute(x, axis=params["axes"][0])


def _cumulative(compute: Callable[..., Any]) -> Rule:
    def rule(params: Params, x: np.ndarray) -> Any:
        line = np.flip(x, params["axis"]) if params["reverse"] else x
        # By dtype: NumPy sums small integers in a wider type, XLA in their own.
        done = compute(_wide(line), axis=params["axis"], dtype=_wide(line).dtype)
        return np.flip(done, params["axis"]) if params["reverse"] else done

    return rule


def _sum(params: Params, x: np.ndarray) -> Any:
    return np.sum(_wide(x), axis=tuple(params["axes"]), dtype=_wide(x).dtype)


def _prod(params: Params, x: np.ndarray) -> Any:
    return np.prod(_wide(x), axis=tuple(params["axes"]), dtype=_wide(x).dtype)


def _dot(params: Params, x: np.ndarray, y: np.ndarray) -> Any:
    (own, others), (batch, batch_y) = params["dimension_numbers"]
    free = [axis for axis in range(x.ndim) if axis not in (*own, *batch)]
    free_y = [axis for axis in range(y.ndim) if axis not in (*others, *batch_y)]
    wanted = params.get("preferred_element_type")
    left, right = (_wide(one) for one in (x, y))
    if wanted is not None and np.dtype(wanted).kind in "iu":
        left, right = left.astype(wanted), right.astype(wanted)
    left, right = left.transpose(*batch, *free, *own), right.transpose(*batch_y, *others, *free_y)
    count, n = len(batch), len(own)
    head, rows, columns = left.shape[:count], left.shape[count : left.ndim - n], right.shape[count + n :]
    width = int(np.prod([x.shape[axis] for axis in own], dtype=np.int64))
    size = (int(np.prod(rows, dtype=np.int64)), int(np.prod(columns, dtype=np.int64)))
    product = np.matmul(left.reshape(*head, size[0], width), right.reshape(*head, width, size[1]))
    return product.reshape((*head, *rows, *columns))


def _places(
    shape: Sequence[int],
    axes: Sequence[int],
    indices: np.ndarray,
    sizes: Sequence[int],
    kept: Sequence[int],
    batching: Mapping[int, int],
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the indices of windows in an array, one array for each axis, and a mask of the windows inside of it.

    Args:
        shape: Of the array.
        axes: Axes that the last axis of `indices` is about.
        indices: Where each window starts.
        sizes: Of the windows, by axis.
        kept: Axes of the array that the windows have, in their order; of the others the size is 1.
        batching: Axes of the array that the indices have too, each with its number there.
    """
    batch, numbers = indices.shape[:-1], dict(zip(axes, range(indices.shape[-1]), strict=True))
    is_inside, places = np.ones(batch, bool), list[np.ndarray]()
    for axis, whole in enumerate(shape):
        start = indices[..., numbers[axis]].astype(np.int64) if axis in numbers else np.zeros(batch, np.int64)
        if axis in batching:
            line = [whole if one == batching[axis] else 1 for one in range(len(batch))]
            start = start + np.arange(whole).reshape(line)
        is_inside &= (start >= 0) & (start <= whole - sizes[axis])
        start = np.clip(start, 0, whole - sizes[axis]).reshape(*batch, *[1] * len(kept))
        window = [1] * len(batch) + [sizes[axis] if axis == one else 1 for one in kept]
        places.append(start + np.arange(sizes[axis]).reshape(window) if axis in kept else start)
    return places, is_inside


def _gather(params: Params, x: np.ndarray, indices: np.ndarray) -> Any:
    numbers, mode = params["dimension_numbers"], str(params.get("mode", "")).lower()
    batching = dict(zip(numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True))
    kept = [axis for axis in range(x.ndim) if axis not in (*numbers.collapsed_slice_dims, *batching)]
    places, is_inside = _places(x.shape, numbers.start_index_map, indices, params["slice_sizes"], kept, batching)
    taken = x[tuple(places)]
    if "fill" in mode and not is_inside.all():
        fill, is_unset = params.get("fill_value"), params.get("fill_value") is None
        fill = np.nan if is_unset and x.dtype.kind in "fVc" else np.iinfo(x.dtype).min if is_unset else fill
        taken = np.where(is_inside.reshape(*is_inside.shape, *[1] * len(kept)), taken, np.asarray(fill, x.dtype))
    # The window's axes are at `offset_dims` of the result, the others are the batch.
    offsets = list(numbers.offset_dims)
    return np.moveaxis(taken, range(is_inside.ndim, taken.ndim), offsets) if offsets else taken


def _scatter(combine: Any) -> Rule:
    """Return the rule of a scatter that combines old and new values by a ufunc, or overwrites if it is None."""

    def rule(params: Params, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> Any:
        numbers, windows = params["dimension_numbers"], tuple(params["dimension_numbers"].update_window_dims)
        batching = dict(zip(numbers.operand_batching_dims, numbers.scatter_indices_batching_dims, strict=True))
        kept = [axis for axis in range(x.ndim) if axis not in (*numbers.inserted_window_dims, *batching)]
        updates = updates.transpose(*(axis for axis in range(updates.ndim) if axis not in windows), *windows)
        sizes = [1] * x.ndim
        for axis, size in zip(kept, updates.shape[indices.ndim - 1 :], strict=True):
            sizes[axis] = size
        places, is_inside = _places(x.shape, numbers.scatter_dims_to_operand_dims, indices, sizes, kept, batching)
        if "clip" in str(params.get("mode", "")).lower():
            is_inside = np.ones_like(is_inside)
        at = tuple(np.broadcast_to(place, updates.shape)[is_inside] for place in places)
        changed = x.copy()
        if combine is None:
            changed[at] = updates[is_inside]
        else:
            combine.at(changed, at, updates[is_inside])
        return changed

    return rule


def _sort(params: Params, *arrays: np.ndarray) -> Any:
    if params["num_keys"] != 1:
        raise NotImplementedError("several keys")
    order = np.argsort(arrays[0], axis=params["dimension"], kind="stable")
    return tuple(np.take_along_axis(array, order, params["dimension"]) for array in arrays)


def _squeeze(params: Params, x: np.ndarray) -> Any:
    return x.squeeze(tuple(params["dimensions"]))


def _same(_: Params, x: Any) -> Any:
    return x


# Keys of random numbers are uint64 here, with the first word of a key in the upper half, so that the rules above hold
# for arrays of keys too.

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))


def _threefry(keys: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the hash of counts by keys, both as uint64: Random123's threefry2x32 with 20 rounds, as in JAX."""
    first, second = (word.astype(np.uint32) for word in (keys >> np.uint64(32), keys))
    schedule = (first, second, first ^ second ^ np.uint32(0x1BD11BDA))
    x, y = ((counts >> np.uint64(32)).astype(np.uint32) + first), counts.astype(np.uint32) + second
    for i in range(5):
        for rotation in _ROTATIONS[i % 2]:
            x = x + y
            y = (y << np.uint32(rotation)) | (y >> np.uint32(32 - rotation))
            y = x ^ y
        x = x + schedule[(i + 1) % 3]
        y = y + schedule[(i + 2) % 3] + np.uint32(i + 1)
    return (x.astype(np.uint64) << np.uint64(32)) | y.astype(np.uint64)


def _counted(keys: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return the hash of 0, 1, 2, … by each key, with the shape of the keys followed by `shape`."""
    counts = np.arange(int(np.prod(shape, dtype=np.int64)), dtype=np.uint64).reshape(shape)
    return _threefry(keys.reshape((*keys.shape, *[1] * len(shape))), counts)


def _random_bits(params: Params, keys: np.ndarray) -> Any:
    width, words = params["bit_width"], _counted(keys, params["shape"])
    return words if width == 64 else ((words >> np.uint64(32)) ^ words).astype(f"u{width // 8}")


def _random_wrap(_: Params, words: np.ndarray) -> Any:
    wide = words.astype(np.uint64)
    return (wide[..., 0] << np.uint64(32)) | wide[..., 1]


def _random_unwrap(_: Params, keys: np.ndarray) -> Any:
    return np.stack([keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)], -1).astype(np.uint32)


def _random_seed(_: Params, seeds: np.ndarray) -> Any:
    if seeds.dtype.itemsize > 4:
        raise NotImplementedError("seeds of 64 bits")
    return seeds.astype(np.uint32).astype(np.uint64)


def _erf(x: np.ndarray) -> Any:
    """Return erf with an error below 1.5e-7 (Abramowitz and Stegun, 7.1.26), which is a float32's."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    tail = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    return np.sign(x) * (1 - tail * np.exp(-x * x))


_CENTER = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
           -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
_TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
         0.00943887047, 1.00167406, 2.83297682)  # fmt: skip


def _erf_inv(x: np.ndarray) -> Any:
    """Return the inverse of erf by Giles' polynomials for float32, which XLA uses too."""
    w = -np.log1p(-x * x)
    value = np.where(w < 5, np.polyval(_CENTER, w - 2.5), np.polyval(_TAIL, np.sqrt(np.maximum(w, 5)) - 3)) * x
    return np.where(np.abs(x) == 1, x * np.inf, value)


def _eigh(params: Params, x: np.ndarray) -> Any:
    values, vectors = np.linalg.eigh(x, "L" if params["lower"] else "U")
    return vectors, values


def _cholesky(_: Params, x: np.ndarray) -> Any:
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:  # XLA gives NaN
        return np.full_like(x, np.nan)


_MAX_ROWS = 64  # of a matrix that is factored row by row here


def _lu(_: Params, x: np.ndarray) -> Any:
    rows, columns = x.shape[-2:]
    if x.ndim > 2 or rows > _MAX_ROWS:
        raise NotImplementedError("a large factorization")
    factors, order, pivots = x.copy(), np.arange(rows), np.zeros(min(rows, columns), np.int32)
    for i in range(min(rows, columns)):
        pivots[i] = pivot = i + int(np.argmax(np.abs(factors[i:, i])))
        factors[[i, pivot]], order[[i, pivot]] = factors[[pivot, i]], order[[pivot, i]]
        below = factors[i + 1 :, i]
        below /= np.where(factors[i, i] == 0, 1, factors[i, i])
        factors[i + 1 :, i + 1 :] -= np.outer(below, factors[i, i + 1 :])
    return factors, pivots, order


def _solve(a: np.ndarray, b: np.ndarray, is_lower: bool) -> np.ndarray:
    """Return x with a @ x = b by substitution: a zero on the diagonal gives infinity, as XLA's, and no error."""
    x = np.zeros_like(b)
    for i in range(len(a)) if is_lower else reversed(range(len(a))):
        x[i] = (b[i] - a[i, :] @ x) / a[i, i]
    return x


def _triangular_solve(params: Params, a: np.ndarray, b: np.ndarray) -> Any:
    if a.ndim > 2 or len(a) > _MAX_ROWS or params.get("conjugate_a"):
        raise NotImplementedError("a large system")
    is_lower = params["lower"]
    a = np.tril(a) if is_lower else np.triu(a)
    if params["unit_diagonal"]:
        a = a + np.diag(1 - np.diag(a))
    a, is_lower = (a.T, not is_lower) if params["transpose_a"] else (a, is_lower)
    return _solve(a, b, is_lower) if params["left_side"] else _solve(a.T, b.T, not is_lower).T


_UNARY: dict[str, Callable[..., Any]] = {
    **{"neg": np.negative, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "exp": np.exp, "exp2": np.exp2},
    **{"log": np.log, "log2": np.log2, "log1p": np.log1p, "expm1": np.expm1, "tanh": np.tanh, "sin": np.sin},
    **{"cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh},
    **{"cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "sqrt": np.sqrt},
    **{"cbrt": np.cbrt, "abs": np.abs, "is_finite": np.isfinite, "not": np.invert, "square": np.square},
    **{"real": np.real, "imag": np.imag, "conj": np.conj},
    "erf": _erf,
    "erf_inv": _erf_inv,
    "erfc": lambda x: 1 - _erf(x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "logistic": lambda x: 1 / (1 + np.exp(-x)),
}
_BINARY: dict[str, Callable[..., Any]] = {
    **{"add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply, "div": _divide, "rem": np.fmod},
    **{"max": np.maximum, "min": np.minimum, "pow": np.power, "atan2": np.arctan2, "nextafter": np.nextafter},
    **{"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "eq": np.equal, "ne": np.not_equal},
    **{"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal},
    "complex": lambda x, y: x + 1j * y,
}
NUMPY: dict[str, Rule] = {
    **{name: _of(compute) for name, compute in (*_UNARY.items(), *_BINARY.items())},
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "optimization_barrier", "pvary", "reduce_precision"), _same),
    "convert_element_type": _same,
    "round": _round,
    "integer_pow": _integer_pow,
    "select_n": _select,
    "clamp": _of(lambda low, x, high: np.minimum(np.maximum(x, low), high)),
    "shift_left": _shifted(operator.lshift, "u"),
    "shift_right_logical": _shifted(operator.rshift, "u"),
    "shift_right_arithmetic": _shifted(operator.rshift, "i"),
    "broadcast_in_dim": _broadcast,
    "reshape": lambda params, x: x.reshape(params["new_sizes"]),
    "squeeze": _squeeze,
    "expand_dims": lambda params, x: np.expand_dims(x, tuple(params["dimensions"])),
    "transpose": lambda params, x: x.transpose(params["permutation"]),
    "rev": lambda params, x: np.flip(x, tuple(params["dimensions"])),
    "slice": _slice,
    "concatenate": lambda params, *parts: np.concatenate(parts, params["dimension"]),
    "pad": _pad,
    "iota": _iota,
    "dynamic_slice": _dynamic_slice,
    "dynamic_update_slice": _dynamic_update_slice,
    "gather": _gather,
    "scatter": _scatter(None),
    "scatter-add": _scatter(np.add),
    "scatter-mul": _scatter(np.multiply),
    "scatter-min": _scatter(np.minimum),
    "scatter-max": _scatter(np.maximum),
    "reduce_sum": _sum,
    "reduce_prod": _prod,
    "reduce_max": _reduce(np.max),
    "reduce_min": _reduce(np.min),
    "reduce_and": _reduce(np.all),
    "reduce_or": _reduce(np.any),
    "argmax": _arg(np.argmax),
    "argmin": _arg(np.argmin),
    "cumsum": _cumulative(np.cumsum),
    "cumprod": _cumulative(np.cumprod),
    "cummax": lambda params, x: _scanned(np.maximum, params, x),
    "cummin": lambda params, x: _scanned(np.minimum, params, x),
    "dot_general": _dot,
    "bitcast_convert_type": lambda params, x: x.view(params["new_dtype"]),
    "random_bits": _random_bits,
    "random_split": lambda params, keys: _counted(keys, params["shape"]),
    "random_fold_in": lambda params, keys, data: _threefry(keys, data.astype(np.uint32).astype(np.uint64)),
    "random_seed": _random_seed,
    "random_wrap": _random_wrap,
    "random_unwrap": _random_unwrap,
    "sort": _sort,
    "eigh": _eigh,
    "cholesky": _cholesky,
    "lu": _lu,
    "triangular_solve": _triangular_solve,
    "stack": lambda params, *parts: np.stack(parts, params["axis"]),
    "unstack": lambda params, x: tuple(np.moveaxis(x, params["axis"], 0)),
    "split": lambda params, x: tuple(np.split(x, np.cumsum(params["sizes"])[:-1], params["axis"])),
}


def _scanned(compute: Any, params: Params, x: np.ndarray) -> Any:
    line = np.flip(x, params["axis"]) if params["reverse"] else x
    done = compute.accumulate(line, axis=params["axis"])
    return np.flip(done, params["axis"]) if params["reverse"] else done
