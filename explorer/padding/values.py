"""A value of a padded program: an array of a bucket's size, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from explorer.padding.sizes import Factors, is_symbolic

# By axis, of what it was merged: (b, s) for an axis of b*s positions that lie at i_b * bucket(s) + i_s. An axis that
# was never merged has one factor: its valid positions come first. UNIFORM: the same all along, so both at once.
Layout = tuple[Factors, ...]
UNIFORM: Factors = ()

# What fills the padded positions of an axis, whatever the other axes' position is; None is garbage: anything at all,
# NaN and infinities too.
Fill = complex | float | int | bool | None


def unmerged(shape: Sequence[Any]) -> Layout:
    """The layout of a shape whose axes are each in one piece."""
    return tuple((size,) for size in shape)


@dataclass(slots=True, eq=False)
class Value:
    """An array of a bucket's size.

    Attributes:
        array: The elements; those at valid positions are the unpadded function's.
        aval: Its symbolic type.
        layout: How the valid positions lie on each axis.
        fills: What the padded positions of each axis hold.
        bare: The array and its fills before any mask; None if there was none.
        filled: Masked arrays, by fill and axes: each is made once.
        greatest_of: Of a maximum the array that it is of, and along which axes; of what else it is the same all along.
        wished: What the first mask filled it with.
        or_nan: By axis, what fills it where not all valid elements of the same reduction are NaN; `softmax` has such.
    """

    array: Any
    aval: Any
    layout: Layout
    fills: tuple[Fill, ...]
    bare: tuple[Any, tuple[Fill, ...]] | None = None
    filled: dict[Any, Any] = field(default_factory=dict[Any, Any])
    greatest_of: tuple[Any, frozenset[int]] | None = None
    or_nan: dict[int, Fill] = field(default_factory=dict[int, Fill])
    wished: Fill = None

    @property
    def shape(self) -> tuple[Any, ...]:
        return getattr(self.aval, "shape", ())

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def padded_axes(self) -> list[int]:
        """The axes that have padded positions."""
        return [axis for axis, size in enumerate(self.shape) if is_symbolic(size)]

    def is_padded(self, axis: int) -> bool:
        return is_symbolic(self.shape[axis])

    def fills_without(self, axes: Sequence[int]) -> list[Fill]:
        """The fills, of these axes unknown."""
        return [None if axis in axes else fill for axis, fill in enumerate(self.fills)]

    def settled(self) -> Value:
        """The value to be written to: no axis is the same all along."""
        return Value(self.array, self.aval, self.lasting_layout, self.fills)

    @property
    def lasting_layout(self) -> Layout:
        """The layout, where an axis that is the same all along is in one piece."""
        return tuple(factors or (size,) for factors, size in zip(self.layout, self.shape, strict=True))

    def copy(self, array: Any) -> Value:
        """Another array of which the same is known."""
        return Value(array, self.aval, self.layout, self.fills)


def make_value(array: Any, aval: Any, layout: Layout | None = None, fills: Sequence[Fill] | None = None) -> Value:
    """A value; of one whose layout isn't given, each axis is in one piece, and its padding is garbage."""
    shape = getattr(aval, "shape", ())
    return Value(array, aval, unmerged(shape) if layout is None else layout, tuple(fills or (None,) * len(shape)))


def identity(kind: str, dtype: Any) -> Fill:
    """What changes nothing in a reduction: 0 in a sum, the lowest value in a maximum.

    Args:
        kind: `sum`, `prod`, `max`, `min`, `and`, `or` or `xor`.
        dtype: Of the elements.
    """
    if kind in ("sum", "or", "xor", "prod"):
        return bool(kind == "prod") if dtype == np.bool_ else int(kind == "prod")
    if dtype == np.bool_:
        return kind in ("min", "and")
    if kind == "and":
        return -1 if jnp.issubdtype(dtype, jnp.signedinteger) else int(jnp.iinfo(dtype).max)
    sign = -1 if kind == "max" else 1
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return complex(sign * np.inf, sign * np.inf)
    if jnp.issubdtype(dtype, jnp.floating):
        # Some of 8 bits have no infinity.
        has_infinity = bool(np.isinf(np.asarray(np.inf, dtype)))
        return sign * (np.inf if has_infinity else float(cast(Any, jnp.finfo(dtype).max)))
    return int(jnp.iinfo(dtype).min if kind == "max" else jnp.iinfo(dtype).max)
