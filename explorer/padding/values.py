"""Values of a padded program: arrays of a bucket's size, and what is known of them; and the rules by primitive."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import jax.numpy as jnp
import numpy as np

from explorer.padding.sizes import Factors, Refused, is_symbolic

if TYPE_CHECKING:
    from explorer.padding.interpreter import Call

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
    """An array of a bucket's size."""

    array: Any  # the elements; those at valid positions are the unpadded function's
    aval: Any  # its symbolic type
    layout: Layout  # how the valid positions lie on each axis
    fills: tuple[Fill, ...]  # what the padded positions of each axis hold
    bare: tuple[Any, tuple[Fill, ...]] | None = None  # the array and its fills before any mask; None if there was none
    filled: dict[Any, Any] = field(default_factory=dict[Any, Any])  # masked arrays, by fill and axes: each is made once
    # of a maximum the array that it is of, and along which axes; of what else it is the same all along
    greatest_of: tuple[Any, frozenset[int]] | None = None
    # by axis, what fills it where not all valid elements of the same reduction are NaN; `softmax` has such
    or_nan: dict[int, Fill] = field(default_factory=dict[int, Fill])
    wished: Fill = None  # what the first mask filled it with

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


class Rule(NamedTuple):
    """How a primitive is computed on padded values."""

    apply: Callable[[Call], Sequence[Value]]  # gives the results of an equation
    parameters: frozenset[str]  # those that it takes into account, or that may have any value
    absent: frozenset[str]  # those that it takes only where they say nothing: None, False or empty
    # whether it takes sizes that get smaller as a named one grows. The largest of such a size in a bucket isn't the
    # size at the bucket, and two of them may not add up to that of their sum.
    shrinks: bool


RULES: dict[str, Rule] = {}

Apply = Callable[["Call"], "Value | Sequence[Value]"]


def rule(names: str, parameters: str = "", absent: str = "", *, shrinks: bool = False) -> Callable[[Apply], Apply]:
    """Register a rule for primitives; of any parameter not named here the equation is refused."""

    def register(apply: Apply) -> Apply:
        def results(call: Call) -> Sequence[Value]:
            result = apply(call)
            return result if isinstance(result, (list, tuple)) else [result]  # pyright: ignore[reportReturnType]

        for name in names.split():
            RULES[name] = Rule(results, frozenset(parameters.split()), frozenset(absent.split()), shrinks)
        return apply

    return register


def check_parameters(name: str, rule: Rule, params: dict[str, Any]) -> None:
    """Refuse what a rule doesn't know of.

    Raises:
        Refused: The equation has a parameter that the rule doesn't take, or not with this value.
    """
    for key, value in params.items():
        if key in rule.absent and not _is_absent(value):
            raise Refused(f"`{name}` with {key}={value} isn't known to be exact")
        if key not in rule.absent and key not in rule.parameters:
            raise Refused(f"`{name}` has a parameter `{key}` that isn't known here")


def _is_absent(value: Any) -> bool:
    # An array that isn't sharded may have a sharding, of a mesh without axes.
    return value in (None, False, ()) or getattr(getattr(value, "mesh", None), "empty", False)
