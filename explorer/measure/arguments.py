"""Arguments of a measured call: described in words, cast, bound as constants, and made at other sizes."""

from __future__ import annotations

import inspect
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial, wraps
from operator import is_
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer.capture.explore import Described, struct_of
from explorer.capture.filtered import flatten
from explorer.capture.readers.jaxpr import short_type
from explorer.errors import OptionError
from explorer.model.results.statistics import Axis

_ARRAYS = (jax.Array, np.ndarray, np.generic, jax.ShapeDtypeStruct, Described)
_LONGEST = 40  # characters of a label
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def axis_of(name: str, values: Sequence[Any], labels: Sequence[str] | None = None) -> Axis:
    """Return the axis of a sweep's values; with `labels`, the user's names for them, it has no numbers.

    Example:
        >>> axis_of("n", [128, 1024])
        Axis(name='n', labels=('128', '1,024'), numbers=(128.0, 1024.0), unit='')
        >>> axis_of("x", [np.zeros((2, 3), np.int8), np.zeros(9, np.int8)])
        Axis(name='x', labels=('i8[2,3]', 'i8[9]'), numbers=(6.0, 9.0), unit='elements')
    """
    if labels is not None:
        return Axis(name, distinct_labels(labels))
    numbers, unit = _numbers(values)
    return Axis(name, distinct_labels([value_text(value) for value in values]), numbers, unit)


def value_text(value: Any) -> str:
    """Return a short text for a value, without addresses; a string is returned as it is."""
    # Before the numbers: a bool is an int.
    if value is None or isinstance(value, bool | str):
        return str(value)
    if isinstance(value, int | float):
        return f"{value:,}" if isinstance(value, int) else f"{value:g}"
    if is_array(value):
        leaves, _ = flattened(value)
        return short_type(struct_of(leaves[0])) if len(leaves) == 1 else f"{len(leaves):,} arrays"
    if isinstance(value, Mapping):
        pairs = cast("Mapping[Any, Any]", value).items()
        return _short(", ".join(f"{key}={value_text(one)}" for key, one in pairs)) or "none"
    if isinstance(value, (tuple, list)):
        return _short(f"({', '.join(map(value_text, cast('Sequence[Any]', value)))})")
    named = getattr(value, "__name__", None) or getattr(value, "name", None)  # functions and classes, dtypes and enums
    # An address would make the label another one in each process.
    return str(named) if isinstance(named, str) else _short(_ADDRESS.sub("", repr(value)))


def is_array(value: Any) -> bool:
    """Return True for an array, a description of one, or a non-empty tree of both."""
    leaves, _ = flattened(value)
    return bool(leaves) and all(isinstance(leaf, _ARRAYS) for leaf in leaves)


def _numbers(values: Sequence[Any]) -> tuple[tuple[float, ...] | None, str]:
    """Return an axis's numbers and their unit: finite numbers with "", or the element counts of arrays and shapes, if
    all differ, with "elements"; else (None, "").
    """
    if all(isinstance(value, (int, float, np.number)) and not isinstance(value, bool) for value in values):
        numbers = tuple(map(float, values))
        return (numbers, "") if all(map(math.isfinite, numbers)) else (None, "")
    sizes = tuple(float(count) for count in map(_elements, values) if count is not None)
    return (sizes, "elements") if len(sizes) == len(values) == len(set(sizes)) else (None, "")


def _elements(value: Any) -> int | None:
    if is_array(value):
        return sum(math.prod(struct_of(leaf).shape) for leaf in flattened(value)[0])
    if isinstance(value, (tuple, list)) and value:
        sizes = cast("Sequence[Any]", value)
        return math.prod(sizes) if all(type(size) is int and size > 0 for size in sizes) else None
    return None


def distinct_labels(labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels, each distinct: a repeated one gets a number behind it.

    Example:
        >>> distinct_labels(["f32[8]", "f32[9]", "f32[8]"])
        ('f32[8]', 'f32[9]', 'f32[8] #2')
    """
    seen: Counter[str] = Counter()
    # Those further on too: `a #2` may be a label of the user's own.
    taken = set(labels)
    all_distinct: list[str] = []
    for label in labels:
        seen[label] += 1
        distinct = label
        while seen[label] > 1 and distinct in taken:
            distinct = f"{label} #{seen[label]}"
            seen[label] += distinct in taken
        taken.add(distinct)
        all_distinct.append(distinct)
    return tuple(all_distinct)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def as_float(given: Any, verb: str) -> Any:
    """Return the floating-point dtype that `given` names.

    Raises:
        OptionError: `given` is no dtype, no floating point, or a dtype that JAX would canonicalize to another.
    """
    try:
        dtype = jnp.dtype(given)
    except TypeError:
        raise OptionError(
            f"{verb} takes a dtype to cast to; it got {value_text(given)}.\n"
            "  Hint: jnp.float32, jnp.bfloat16 or 'float16'."
        ) from None
    if not jnp.issubdtype(dtype, jnp.floating):
        raise OptionError(
            f"{verb} casts floating-point arguments to another floating-point dtype; {dtype.name} is no such dtype.\n"
            "  Hint: make arguments of another kind in `args=`: args=lambda dtype: (jnp.ones(8, dtype),)."
        )
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise OptionError(
            f"{verb} can't cast to {dtype.name}: JAX makes {jax.dtypes.canonicalize_dtype(dtype).name} of it.\n"
            "  Hint: jax.config.update('jax_enable_x64', True), before any array is made."
        )
    return dtype


def cast_floats(tree: Any, dtype: Any) -> Any:
    """Return the tree with its floating-point arrays, and descriptions of such, cast to `dtype`."""

    def cast(leaf: Any) -> Any:
        leaf = struct_of(leaf)
        if not _is_float(leaf):
            return leaf
        return leaf.update(dtype=dtype) if isinstance(leaf, jax.ShapeDtypeStruct) else leaf.astype(dtype)

    leaves, rebuild = flatten(tree)
    return rebuild([cast(leaf) for leaf in leaves])


def has_floats(tree: Any) -> bool:
    """Return True if the tree has a floating-point array, or a description of one."""
    return any(_is_float(struct_of(leaf)) for leaf in flatten(tree)[0])


def _is_float(leaf: Any) -> bool:
    dtype = getattr(leaf, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jnp.floating)


def signature_of_callable(function: Any) -> inspect.Signature | None:
    """Return the function's signature; None for a builtin without one."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def bind_constants(
    function: Callable[..., Any],
    signature: inspect.Signature,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    names: Collection[str],
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Bind the arguments of these names as constants; return everything unchanged if that is not possible.

    `functools.partial` binds them by name. Unlike a wrapper of ours it leaves no frame among the user's lines that JAX
    records. Therefore the arguments behind a bound one must be passed by name too.

    Returns:
        The function with its constants, and the remaining arguments by position and by name.

    Example:
        >>> def scale(x, n, y):
        ...     return x * n + y
        >>> function, args, kwargs = bind_constants(scale, inspect.signature(scale), (2, 3, 4), {}, ["n"])
        >>> args, kwargs, function(*args, **kwargs)
        ((2,), {'y': 4}, 10)
    """
    parameters = signature.parameters
    positional = [name for name, parameter in parameters.items() if parameter.kind in _BY_POSITION][: len(args)]
    cut = next((i for i, name in enumerate(positional) if name in names), len(args))
    behind = positional[cut:]
    has_unnamed = len(args) > len(positional) or any(parameters[name].kind not in _BY_NAME for name in behind)
    if not names or (cut < len(args) and has_unnamed):
        return function, args, kwargs
    every = dict(zip(behind, args[cut:], strict=False)) | kwargs
    constant = {name: value for name, value in every.items() if name in names}
    rest = {name: value for name, value in every.items() if name not in names}
    return partial(function, **constant), args[:cut], rest


_tree: Any = jax.tree  # whose functions have no types


def abstract_maker(args: Callable[..., Any]) -> Callable[..., Any]:
    """Return a wrapper of `args` that takes keywords and returns shapes instead of arrays: see `abstract_arguments`."""

    @wraps(args)
    def shapes(**values: Any) -> Any:
        return abstract_arguments(args, values)

    return shapes


def abstract_arguments(maker: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Return the result of `maker(**values)` with a `jax.ShapeDtypeStruct` for each array that it makes.

    It is traced, so that arrays too large for this machine cost nothing. The result of a maker that can't be traced,
    because it needs array values, has its arrays.
    """
    seen: list[tuple[list[Any], Any, list[int]]] = []

    def arrays_of_maker() -> list[Any]:
        leaves, tree = _tree.flatten(maker(**values), is_leaf=partial(is_, None))
        arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, (jax.Array, np.ndarray))]
        seen.append(([None if i in arrays else leaf for i, leaf in enumerate(leaves)], tree, arrays))  # no tracer leaks
        return [leaves[i] for i in arrays]

    try:
        structs = jax.eval_shape(arrays_of_maker)
    except Exception:  # it needs array values, or JAX can't trace it
        return maker(**values)
    leaves, tree, arrays = seen[-1]
    for i, struct in zip(arrays, structs, strict=True):
        leaves[i] = jax.ShapeDtypeStruct(struct.shape, struct.dtype)
    return jax.tree.unflatten(tree, leaves)


def ranges_of(given: Sequence[Any]) -> dict[str, tuple[int, int, int]]:
    """Return (least, usual, largest size), each at least 1, of each varying dimension of `InputInfo`s, by its name."""
    ranges: dict[str, tuple[int, int, int]] = {}
    for number, leaf in enumerate(flattened(tuple(given))[0]):
        for axis, size in enumerate(_shape(leaf)):
            if not isinstance(size, int) and size.max > size.min:
                ranges[_size_name(size, number, axis)] = (max(size.min, 1), max(size.opt, size.min, 1), size.max)
    return ranges


def _shape(leaf: Any) -> Sequence[Any]:
    return getattr(leaf, "shape", ()) if is_described(leaf) else ()


def sized_maker(given: Sequence[Any]) -> Callable[..., Any]:
    """Return a function of sizes by dimension name: it returns `given` as a tuple, with a `jax.ShapeDtypeStruct` for
    each `InputInfo`. Dimensions without a size keep their usual one.
    """
    leaves, tree = flattened(tuple(given))

    def sized(leaf: Any, number: int, sizes: Mapping[str, int]) -> Any:
        if not is_described(leaf):
            return leaf
        struct = leaf.to_struct()
        shape = [
            size if isinstance(size, int) else sizes.get(_size_name(size, number, axis), size.opt)
            for axis, size in enumerate(_shape(leaf))
        ]
        return jax.ShapeDtypeStruct(tuple(shape), struct.dtype, sharding=struct.sharding)

    def arguments(**sizes: int) -> Any:
        return jax.tree.unflatten(tree, [sized(leaf, number, sizes) for number, leaf in enumerate(leaves)])

    return arguments


def flattened(arguments: Any) -> tuple[list[Any], Any]:
    """Return the leaves and the structure of a tree; an `InputInfo` is a leaf."""
    return _tree.flatten(arguments, is_leaf=is_described)


def is_described(leaf: object) -> bool:
    return isinstance(leaf, Described)


def _size_name(size: Any, number: int, axis: int) -> str:
    """Return the dimension's name, or `arg0.shape[1]` if it has no name."""
    return getattr(size, "name", f"arg{number}.shape[{axis}]")
