"""Descriptions of inputs and outputs: bounds of dimensions, shapes, dtypes and shardings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, NamedTuple, NoReturn, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import Mesh, PartitionSpec

from explorer.aot.meshes import check_spec, checked_mesh, is_spread, on_mesh, sharding_from_json, sharding_to_json
from explorer.errors import InputInfoError

_SIZES = 2**63  # XLA counts in int64
_OPERATIONS = {"max", "min", "floordiv", "mod", "non_negative"}  # reserved in JAX's symbolic expressions


class Bounds(NamedTuple):
    """Smallest size of a dimension, the size to optimize for, and the largest.

    Example:
        >>> import explorer
        >>> batch = explorer.NamedDimension("batch", 1, 8, 64)
        >>> explorer.InputInfo((batch, 3), "float32").shape_bounds
        ShapeBounds(min=(1, 3), opt=(8, 3), max=(64, 3))
        >>> explorer.types.Bounds(1, 8, 64).max
        64
    """

    min: int
    opt: int
    max: int


class ShapeBounds(NamedTuple):
    """Smallest shape, the shape to optimize for, and the largest.

    Example:
        >>> import explorer
        >>> batch = explorer.NamedDimension("batch", 1, 8, 64)
        >>> explorer.InputInfo((batch, 3), "float32").shape_bounds.opt
        (8, 3)
    """

    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]


@dataclass(frozen=True, init=False, repr=False)
class NamedDimension:
    """A size that varies from call to call. Within a call, all dimensions with one name have the same size.

    Args:
        name: A Python identifier.
        min, opt, max: Smallest size, size to optimize for, largest size: 0 ≤ min ≤ opt ≤ max.

    Raises:
        InputInfoError: The name or the bounds are invalid.

    Example:
        >>> import explorer
        >>> explorer.NamedDimension("batch", 1, 8, 64)
        NamedDimension('batch', 1, 8, 64)
    """

    name: str
    min: int
    opt: int
    max: int

    def __init__(self, name: str, min: int, opt: int, max: int) -> None:
        if not isinstance(name, str) or not name.isidentifier() or iskeyword(name) or name in _OPERATIONS:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputInfoError(
                f"{name!r} can't name a dimension: a name is a Python identifier, and none of "
                f"{', '.join(sorted(_OPERATIONS))}.\n  Hint: NamedDimension('batch', 1, 8, 64)."
            )
        checked = _checked_bounds(f"dimension `{name}`", (min, opt, max))
        for field, value in zip(("name", *Bounds._fields), (name, *checked), strict=True):
            # Frozen dataclasses refuse assignments in `__init__` too.
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"NamedDimension({self.name!r}, {self.min}, {self.opt}, {self.max})"


Dimension = int | Bounds | NamedDimension


def bounds_of(dimension: Dimension) -> Bounds:
    if isinstance(dimension, int):
        return Bounds(dimension, dimension, dimension)
    return Bounds(dimension.min, dimension.opt, dimension.max)


def shape_bounds(shape: Sequence[Dimension]) -> ShapeBounds:
    bounds = [bounds_of(dimension) for dimension in shape]
    return ShapeBounds(tuple(b.min for b in bounds), tuple(b.opt for b in bounds), tuple(b.max for b in bounds))


def checked_dimension(what: str, given: Any) -> Dimension:
    """Return a dimension from any form that a user may write; raise InputInfoError for others."""
    if isinstance(given, NamedDimension):
        return given
    if isinstance(given, (tuple, list)):
        values = cast(Sequence[Any], given)
        if len(values) == 3:
            bounds = _checked_bounds(what, values)
            return bounds.opt if bounds.min == bounds.max else bounds
    elif _is_size(given):
        return int(given)
    raise InputInfoError(
        f"{what} is {given!r}; allowed are an int of at least 0, below 2**63, (min, opt, max), or a NamedDimension.\n"
        "  Hint: InputInfo(((1, 8, 64), 128), jnp.float32) takes 1 to 64 rows and is fastest for 8."
    )


def _checked_bounds(what: str, values: Sequence[Any]) -> Bounds:
    if all(_is_size(value) for value in values):
        bounds = Bounds(*map(int, values))
        if bounds.min <= bounds.opt <= bounds.max:
            return bounds
    raise InputInfoError(
        f"{what} has the bounds {tuple(values)}; allowed are ints with 0 ≤ min ≤ opt ≤ max, below 2**63.\n"
        "  Hint: (1, 8, 64) is from 1 to 64, and optimised for 8."
    )


def _is_size(value: Any) -> bool:
    # True is an int in Python, and np.int64 isn't.
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(cast(int, value)) < _SIZES


def dimension_to_json(dimension: Dimension) -> Any:
    """Return a dimension in JSON: a number, a list of three bounds, or an object with the name."""
    if isinstance(dimension, NamedDimension):
        return {"name": dimension.name, **bounds_of(dimension)._asdict()}
    return list(dimension) if isinstance(dimension, Bounds) else dimension


def dimension_from_json(what: str, value: Any) -> Dimension:
    """Return the dimension that `dimension_to_json` described; raise InputInfoError for other values."""
    if isinstance(value, Mapping):
        data = cast(Mapping[str, Any], value)
        if set(data) == {"name", *Bounds._fields}:
            return NamedDimension(data["name"], data["min"], data["opt"], data["max"])
    return checked_dimension(what, value)


_KINDS = (jnp.number, jnp.bool_)
_KEYS = ("threefry2x32", "rbg", "unsafe_rbg")


@dataclass(frozen=True, init=False, repr=False)
class InputInfo:
    """Shape and dtype of an array that is passed at run time.

    Args:
        shape: A tuple or list with a size, `(min, opt, max)` or a `NamedDimension` for each dimension; `()` for a
            scalar. Or an array or `jax.ShapeDtypeStruct`, whose shape is used.
        dtype: Any dtype that JAX accepts: `jnp.float32`, `"int8"`. Optional if `shape` is an array.
        sharding: Devices that the array is sharded over: a `jax.sharding.Sharding`, or a `PartitionSpec` of the mesh
            that `compile(mesh=)` gets or `jax.set_mesh` has set; None follows the arrays of each call.

    Raises:
        InputInfoError: A dimension is invalid, the dtype is unknown or JAX would silently narrow it, or the sharding
            doesn't fit the shape.

    Example:
        >>> import explorer as ex
        >>> ex.InputInfo((2, 8), "float32")
        InputInfo((2, 8), float32)
        >>> ex.InputInfo((ex.NamedDimension("batch", 1, 8, 64), 128), "float32")
        InputInfo((NamedDimension('batch', 1, 8, 64), 128), float32)
    """

    shape: tuple[Dimension, ...]
    dtype: np.dtype[Any]
    sharding: jax.sharding.Sharding | PartitionSpec | None

    def __init__(
        self, shape: Any, dtype: Any = None, *, sharding: jax.sharding.Sharding | PartitionSpec | None = None
    ) -> None:
        if hasattr(shape, "shape") and hasattr(shape, "dtype"):
            shape, dtype = shape.shape, shape.dtype if dtype is None else dtype
        object.__setattr__(self, "shape", _checked_shape(shape))
        object.__setattr__(self, "dtype", _checked_dtype(dtype))
        object.__setattr__(self, "sharding", _checked_sharding(sharding, self.shape))

    @classmethod
    def like(cls, array: Any) -> InputInfo:
        """Describe an array or a `jax.ShapeDtypeStruct`, without a reference to it.

        A sharding over several devices is included; a single device follows from the arrays of each call.

        Raises:
            InputInfoError: It has no shape and dtype, or none that an input can have.

        Example:
            >>> import explorer, numpy as np
            >>> explorer.InputInfo.like(np.ones((2, 8), "float32"))
            InputInfo((2, 8), float32)
        """
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
        if shape is None or dtype is None:
            raise InputInfoError(
                f"{type(array).__name__} has no shape and dtype.\n  Hint: give an array, or InputInfo(shape, dtype)."
            )
        sharding = None if isinstance(array, Tracer) else getattr(array, "sharding", None)
        return cls(shape, dtype, sharding=sharding if is_spread(sharding) else None)

    @property
    def shape_bounds(self) -> ShapeBounds:
        """Smallest shape, the shape to optimize for, and the largest."""
        return shape_bounds(self.shape)

    @property
    def dimension_names(self) -> dict[int, str]:
        """Names of the named dimensions, by axis.

        Example:
            >>> import explorer
            >>> explorer.InputInfo((explorer.NamedDimension("batch", 1, 8, 64), 128), "float32").dimension_names
            {0: 'batch'}
        """
        return {axis: size.name for axis, size in enumerate(self.shape) if isinstance(size, NamedDimension)}

    @property
    def is_dynamic(self) -> bool:
        """True if a dimension may have several sizes."""
        return self.shape_bounds.min != self.shape_bounds.max

    def to_struct(self) -> jax.ShapeDtypeStruct:
        """Return a `jax.ShapeDtypeStruct`, in which varying sizes are the ones to optimize for.

        Raises:
            InputInfoError: The sharding is a PartitionSpec, and `jax.set_mesh` has set no mesh.

        Example:
            >>> import explorer
            >>> explorer.InputInfo(((1, 8, 64), 3), "float32").to_struct().shape
            (8, 3)
        """
        sharding = self.sharding
        if isinstance(sharding, PartitionSpec):
            sharding = on_mesh(sharding, checked_mesh(None))
        return jax.ShapeDtypeStruct(self.shape_bounds.opt, self.dtype, sharding=sharding)

    def on_mesh(self, mesh: Mesh | None) -> InputInfo:
        """Return this with a PartitionSpec, or a sharding over an AbstractMesh, resolved over the devices of a mesh.

        Raises:
            InputInfoError: The mesh is None or has other axes, or the sharding doesn't fit the shape.

        Example:
            >>> import explorer, jax
            >>> mesh = jax.make_mesh((1,), ("data",))
            >>> explorer.InputInfo((8,), "float32", sharding=jax.P("data")).on_mesh(mesh).sharding.mesh == mesh
            True
        """
        sharding = on_mesh(self.sharding, mesh)
        return self if sharding is self.sharding else InputInfo(self.shape, self.dtype, sharding=sharding)

    def to_json(self) -> dict[str, Any]:
        """Return the description as numbers, text, lists and dicts.

        Raises:
            InputInfoError: JSON can't describe the sharding.

        Example:
            >>> import explorer
            >>> explorer.InputInfo(((1, 8, 64), 128), "float32").to_json()
            {'shape': [[1, 8, 64], 128], 'dtype': 'float32'}
        """
        description = {"shape": [dimension_to_json(dimension) for dimension in self.shape], "dtype": str(self.dtype)}
        return description if self.sharding is None else {**description, "sharding": sharding_to_json(self.sharding)}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> InputInfo:
        """Return the description that `to_json` encoded.

        Raises:
            InputInfoError: It describes no input, or its sharding needs more devices than there are.

        Example:
            >>> import explorer
            >>> explorer.InputInfo.from_json({"shape": [[1, 8, 64], 128], "dtype": "float32"})
            InputInfo(((1, 8, 64), 128), float32)
        """
        needed = {"shape", "dtype"}
        # A description may come from a file.
        is_mapping = isinstance(description, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
        if not is_mapping or not needed <= set(description) <= {*needed, "sharding"}:
            _refuse_json(description)
        shape, dtype = description["shape"], description["dtype"]
        if not isinstance(shape, list) or not isinstance(dtype, str):
            _refuse_json(description)
        dimensions = [dimension_from_json(f"dimension {i}", d) for i, d in enumerate(cast(list[Any], shape))]
        sharding = sharding_from_json(description["sharding"]) if "sharding" in description else None
        return cls(dimensions, dtype_named(dtype), sharding=sharding)

    def __repr__(self) -> str:
        where = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"InputInfo({_written(self.shape)}, {self.dtype}{where})"


@dataclass(frozen=True, init=False, repr=False)
class DimensionInputInfo:
    """A size that is passed at run time as an int, and used in shapes.

    Args:
        value_bounds: `(min, opt, max)`, or a `NamedDimension`: then it equals that dimension of the other inputs.

    Raises:
        InputInfoError: The bounds are invalid.

    Example:
        >>> import explorer
        >>> explorer.compat.tripy.DimensionInputInfo((1, 8, 64))
        DimensionInputInfo((1, 8, 64))
    """

    dimension: Dimension

    def __init__(self, value_bounds: Any) -> None:
        object.__setattr__(self, "dimension", checked_dimension("the value", value_bounds))

    @property
    def value_bounds(self) -> Bounds:
        """Smallest value, the value to optimize for, and the largest."""
        return bounds_of(self.dimension)

    def to_json(self) -> dict[str, Any]:
        """Return the description as numbers, text, lists and dicts."""
        return {"value": dimension_to_json(self.dimension)}

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> DimensionInputInfo:
        """Return the description that `to_json` encoded.

        Raises:
            InputInfoError: It describes no size.
        """
        if not isinstance(description, Mapping) or set(description) != {"value"}:  # pyright: ignore[reportUnnecessaryIsInstance]
            _refuse_json(description)
        return cls(dimension_from_json("the value", description["value"]))

    def __repr__(self) -> str:
        inner = self.dimension
        return f"DimensionInputInfo({tuple(inner) if isinstance(inner, Bounds) else inner!r})"


@dataclass(frozen=True, repr=False)
class OutputInfo:
    """Shape and dtype of an array that is returned.

    Args:
        shape: Sizes; those that vary with the inputs are expressions: `("batch", "2*seq")`.
        dtype: The array's dtype.

    Example:
        >>> import explorer, numpy as np
        >>> explorer.types.OutputInfo(("batch", 8), np.dtype("float32"))
        OutputInfo((batch, 8), float32)
    """

    shape: tuple[int | str, ...]
    dtype: np.dtype[Any]

    def __repr__(self) -> str:
        inner = ", ".join(map(str, self.shape)) + ("," if len(self.shape) == 1 else "")
        return f"OutputInfo(({inner}), {self.dtype})"


def _written(shape: tuple[Dimension, ...]) -> str:
    inner = ", ".join(repr(tuple(d) if isinstance(d, Bounds) else d) for d in shape)
    return f"({inner},)" if len(shape) == 1 else f"({inner})"


def _refuse_json(description: Any) -> NoReturn:
    raise InputInfoError(f"{description!r} describes no input.\n  Hint: pass what InputInfo.to_json() returns.")


def _checked_shape(shape: Any) -> tuple[Dimension, ...]:
    if not isinstance(shape, (tuple, list)):
        raise InputInfoError(
            f"a shape is a tuple of ints; it came as {type(shape).__name__}.\n"
            "  Hint: a vector of 8 is InputInfo((8,), dtype)."
        )
    sizes = enumerate(cast(Sequence[Any], shape))
    return tuple(checked_dimension(f"dimension {axis} of a shape", size) for axis, size in sizes)


def _checked_dtype(dtype: Any) -> np.dtype[Any]:
    try:
        if jnp.issubdtype(dtype, jax.dtypes.extended):  # a PRNG key's dtype, unknown to NumPy
            return dtype
        wanted = None if dtype is None else jnp.dtype(dtype)  # NumPy takes None for float64
    except (TypeError, ValueError):
        wanted = None
    # NumPy's text, object, record and byte-swapped dtypes are refused.
    if wanted is None or not wanted.isnative or not any(jnp.issubdtype(wanted, kind) for kind in _KINDS):
        raise InputInfoError(
            f"{dtype!r} is no dtype of JAX.\n  Hint: write one of jax.numpy, such as jnp.float32, or its name."
        )
    got = jax.dtypes.canonicalize_dtype(wanted)
    if got != wanted:
        raise InputInfoError(
            f"dtype {wanted} would become {got}: JAX narrows 64-bit types.\n"
            f"  Hint: say {got}, or allow 64 bits with jax.config.update('jax_enable_x64', True)."
        )
    return wanted


def dtype_named(name: str) -> Any:
    """Return the dtype whose `str` is this name; raise InputInfoError for a name without one."""
    return key_like(name).dtype if name.startswith("key<") else _checked_dtype(name)


def key_like(dtype: Any) -> jax.Array:
    """Return a PRNG key with this dtype, or this dtype's name; raise InputInfoError for other dtypes."""
    for kind in _KEYS:
        key = jax.random.key(0, impl=kind)
        if str(key.dtype) == str(dtype):
            return key
    raise InputInfoError(f"{dtype} is no PRNG key's dtype.\n  Hint: jax.random.key(0).dtype.")


def _checked_sharding(sharding: Any, shape: tuple[Dimension, ...]) -> jax.sharding.Sharding | PartitionSpec | None:
    if sharding is None:
        return None
    if isinstance(sharding, PartitionSpec):  # sizes are checked when it is resolved over a mesh
        check_spec(sharding, len(shape), _written(shape))
        return sharding
    if not isinstance(sharding, jax.sharding.Sharding):
        raise InputInfoError(
            f"sharding is {type(sharding).__name__}; allowed is a jax.sharding.Sharding, or a PartitionSpec.\n"
            "  Hint: jax.NamedSharding(mesh, jax.P('x', None)), or x.sharding of an array."
        )
    try:
        for sizes in shape_bounds(shape):
            sharding.shard_shape(sizes)
    except (ValueError, IndexError) as error:  # IndexError: it has more dimensions than the shape
        raise InputInfoError(
            f"the sharding doesn't fit the shape {_written(shape)}: {str(error).splitlines()[0]}\n"
            "  Hint: each size that is split must be a multiple of the devices it is split over."
        ) from None
    return sharding
