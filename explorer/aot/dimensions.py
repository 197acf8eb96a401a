"""The sizes a dimension may have: one, a range, or a range with a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, NamedTuple, cast

import numpy as np

from explorer.errors import InputInfoError

_SIZES = 2**63  # XLA counts in int64
# What JAX's symbolic expressions call their own operations.
_OPERATIONS = {"max", "min", "floordiv", "mod", "non_negative"}


class Bounds(NamedTuple):
    """The smallest size of a dimension, the one to optimise for, and the largest.

    Example:
        >>> import explorer
        >>> batch = explorer.NamedDimension("batch", 1, 8, 64)
        >>> explorer.InputInfo((batch, 3), "float32").shape_bounds
        ShapeBounds(min=(1, 3), opt=(8, 3), max=(64, 3))
        >>> explorer.Bounds(1, 8, 64).max
        64
    """

    min: int
    opt: int
    max: int


class ShapeBounds(NamedTuple):
    """The smallest shape, the one to optimise for, and the largest.

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
    """A size that varies from call to call. Wherever one name stands, the sizes of a call are equal.

    Args:
        name: A Python identifier.
        min, opt, max: The smallest size, the one to optimise for, the largest: 0 ≤ min ≤ opt ≤ max.

    Raises:
        InputInfoError: The name or the bounds are none.

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
            object.__setattr__(self, field, value)

    def __repr__(self) -> str:
        return f"NamedDimension({self.name!r}, {self.min}, {self.opt}, {self.max})"


Dimension = int | Bounds | NamedDimension


def bounds_of(dimension: Dimension) -> Bounds:
    """Its range; of a fixed size, that size three times."""
    if isinstance(dimension, int):
        return Bounds(dimension, dimension, dimension)
    return Bounds(dimension.min, dimension.opt, dimension.max)


def shape_bounds(shape: Sequence[Dimension]) -> ShapeBounds:
    """The bounds of every dimension, as three shapes."""
    bounds = [bounds_of(dimension) for dimension in shape]
    return ShapeBounds(tuple(b.min for b in bounds), tuple(b.opt for b in bounds), tuple(b.max for b in bounds))


def checked_dimension(what: str, given: Any) -> Dimension:
    """A dimension from any of the forms that a person may write.

    Raises:
        InputInfoError: It is none of them.
    """
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
    # True is an int to Python, and np.int64 is none: what counts as a size is decided here.
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(cast(int, value)) < _SIZES


def dimension_to_json(dimension: Dimension) -> Any:
    """A number, a list of three, or an object with the name: what JSON can say."""
    if isinstance(dimension, NamedDimension):
        return {"name": dimension.name, **bounds_of(dimension)._asdict()}
    return list(dimension) if isinstance(dimension, Bounds) else dimension


def dimension_from_json(what: str, value: Any) -> Dimension:
    """The reverse of `dimension_to_json`.

    Raises:
        InputInfoError: It says none.
    """
    if isinstance(value, Mapping):
        data = cast(Mapping[str, Any], value)
        if set(data) == {"name", *Bounds._fields}:
            return NamedDimension(data["name"], data["min"], data["opt"], data["max"])
    return checked_dimension(what, value)
