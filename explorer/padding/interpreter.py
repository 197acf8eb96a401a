"""Values of a padded program, the registry of rules, and the walk that is both the proof and the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer

from explorer._jax.numbering import at_equation, variable_of
from explorer._jax.symbolic import read_dimension
from explorer._jax.traces import Literal, bind_with
from explorer.padding.sizes import Factors, Refused, Sizes, at_bucket, grows, is_symbolic, mentions_symbols, symbols_of

# The factors of each axis: (b, s) for a merged axis whose valid positions are at i_b * bucket(s) + i_s. An axis that
# was never merged has one factor, and its valid positions come first. UNIFORM: all elements are equal.
Layout = tuple[Factors, ...]
UNIFORM: Factors = ()

# The number at all padded positions of an axis; None if it is unknown, which includes NaN and infinities.
Fill = complex | float | int | bool | None


@dataclass(slots=True, eq=False)
class Value:
    array: Any  # equal to the unpadded function's array at valid positions
    aval: Any  # the symbolic type
    layout: Layout
    fills: tuple[Fill, ...]  # by axis
    bare: tuple[Any, tuple[Fill, ...]] | None = None  # array and fills before the first mask
    filled: dict[Any, Any] = field(default_factory=dict[Any, Any])  # masked arrays, by fill and axes
    # For a maximum: the reduced array and the reduced axes, along which the maximum is uniform once it is broadcast.
    greatest_of: tuple[Any, frozenset[int]] | None = None
    # By axis, the fill unless all valid elements of the same reduction are NaN, as in softmax.
    or_nan: dict[int, Fill] = field(default_factory=dict[int, Fill])
    mask_fill: Fill = None  # fill of the first mask

    @property
    def shape(self) -> tuple[Any, ...]:
        return getattr(self.aval, "shape", ())

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def padded_axes(self) -> list[int]:
        return [axis for axis, size in enumerate(self.shape) if is_symbolic(size)]

    def is_padded(self, axis: int) -> bool:
        return is_symbolic(self.shape[axis])

    def fills_without(self, axes: Sequence[int]) -> list[Fill]:
        return [None if axis in axes else fill for axis, fill in enumerate(self.fills)]

    def settled(self) -> Value:
        """Return the value without uniform axes, so that it can be written to.

        Along a uniform axis all elements are equal. Its layout becomes that of an axis in one piece.
        """
        layout = tuple(factors or (size,) for factors, size in zip(self.layout, self.shape, strict=True))
        return Value(self.array, self.aval, layout, self.fills)

    def copy(self, array: Any) -> Value:
        return Value(array, self.aval, self.layout, self.fills)


def make_value(array: Any, aval: Any, layout: Layout | None = None, fills: Sequence[Fill] | None = None) -> Value:
    """Return the `Value` of an array; by default each axis is in one piece and its padding unknown."""
    shape = getattr(aval, "shape", ())
    return Value(
        array,
        aval,
        tuple((size,) for size in shape) if layout is None else layout,
        tuple(fills or (None,) * len(shape)),
    )


def longest_layout(values: Sequence[Value]) -> Layout:
    """Return the layout that the values have in common.

    An axis that is uniform in some of them has the factors of the others.
    """
    return tuple(max(factors, key=len) for factors in zip(*(value.layout for value in values), strict=True))


def identity(kind: str, dtype: Any) -> Fill:
    """Return the neutral element of `sum`, `prod`, `max`, `min`, `and`, `or` or `xor`.

    That is 0 for `sum` and 1 for `prod`; for `max` -inf, or the lowest number of a dtype without infinities.
    """
    if dtype == np.bool_:
        return kind in ("prod", "min", "and")
    if kind in ("sum", "or", "xor", "prod"):
        return int(kind == "prod")
    if kind == "and":
        return -1 if jnp.issubdtype(dtype, jnp.signedinteger) else int(jnp.iinfo(dtype).max)
    sign = -1 if kind == "max" else 1
    if jnp.issubdtype(dtype, jnp.complexfloating):
        return complex(sign * np.inf, sign * np.inf)
    if jnp.issubdtype(dtype, jnp.floating):
        # Some types of 8 bits have no infinity.
        has_infinity = bool(np.isinf(np.asarray(np.inf, dtype)))
        return sign * (np.inf if has_infinity else float(cast(Any, jnp.finfo(dtype).max)))
    return int(jnp.iinfo(dtype).min if kind == "max" else jnp.iinfo(dtype).max)


Notes = dict[Any, dict[str, str]]
# Types with 0, 1, -1 and the infinities; some types of 8 bits and fewer lack them.
_FLOATS = frozenset(map(np.dtype, (jnp.float64, jnp.float32, jnp.float16, jnp.bfloat16)))
# Operations between a maximum and its subtraction in softmax. Their rules run even if no padded axis is left.
_OF_MAXIMUM = frozenset(("broadcast_in_dim", "max", "stop_gradient"))
HINT_OPAQUE = 'compile with dynamic="specialise", or keep this operation out of the compiled function'


class Tally:
    """Record of a walk, shared by its loops and branches."""

    def __init__(self, *, collects: bool, notes: Notes | None = None) -> None:
        self.collects = collects
        self._notes = notes
        self.rules: Counter[str] = Counter()
        self.masks = 0
        self.relayouts = 0
        self.path: list[Any] = []  # the current equation, inside the loops and calls around it
        # By ids of the path, which is kept alive with it. A loop's body is walked more than once, but refused once.
        self.refused: dict[tuple[int, ...], tuple[list[Any], Refused]] = {}

    def note(self, value: Value) -> Value:
        if value.padded_axes:
            axes, fills = value.padded_axes, value.fills
            self._note(value.array, "padded", [f"{axis}={value.shape[axis]}" for axis in axes])
            self._note(value.array, "padding", [f"{axis}={_fill_text(fills[axis])}" for axis in axes])
        return value

    def note_mask(self, array: Any, fill: Fill, axes: Sequence[int]) -> Any:
        self.masks += 1
        self._note(array, "mask", [f"{axis}={_fill_text(fill)}" for axis in axes])
        return array

    def _note(self, array: Any, key: str, parts: Iterable[str]) -> None:
        variable = variable_of(array) if self._notes is not None else None
        if variable is not None and self._notes is not None:
            self._notes.setdefault(variable, {})[key] = ",".join(parts)


def _fill_text(fill: Fill) -> str:
    return "anything" if fill is None else f"{fill}"


class Interpreter:
    def __init__(self, sizes: Sizes, tally: Tally) -> None:
        self.sizes = sizes
        self.tally = tally

    def inner(self) -> Interpreter:
        """Return an interpreter for the body of a loop or branch, which is a separate trace."""
        return Interpreter(self.sizes.inner(), self.tally)

    def run(self, closed: Any, operands: Sequence[Value]) -> list[Value]:
        """Return the results of a jaxpr, closed or not.

        Raises:
            Refused: An equation isn't exact and the tally doesn't collect refusals.
        """
        jaxpr = getattr(closed, "jaxpr", closed)
        environment: dict[Any, Value] = {}

        def read(atom: Any) -> Value:
            if isinstance(atom, Literal):
                return make_value(atom.val, atom.aval)
            return environment[atom]

        constants = getattr(closed, "consts", ())
        environment.update({v: make_value(c, v.aval) for v, c in zip(jaxpr.constvars, constants, strict=False)})
        environment.update(zip(jaxpr.invars, operands, strict=True))
        for equation in jaxpr.eqns:
            self.tally.path.append(equation)
            with at_equation(equation):
                results = self._equation(equation, [read(atom) for atom in equation.invars])
            self.tally.path.pop()
            environment.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, inputs: list[Value]) -> Sequence[Value]:
        try:
            results = self._apply(equation, inputs)
            for variable, result in zip(equation.outvars, results, strict=True):
                expected = self.sizes.shape(getattr(variable.aval, "shape", ()))
                assert tuple(jnp.shape(result.array)) == expected, (equation.primitive.name, result.array, expected)
        except Refused as refused:
            error = refused
        except Exception as fault:
            if not self.tally.collects:
                raise
            text = str(fault).strip().partition("\n")[0]
            error = Refused(f"its rule fails: {type(fault).__name__}: {text}")
        else:
            return [self.tally.note(result) for result in results]
        if not self.tally.collects:
            raise error
        path = list(self.tally.path)
        self.tally.refused.setdefault(tuple(map(id, path)), (path, error))
        return [self._placeholder(variable.aval) for variable in equation.outvars]

    def _apply(self, equation: Any, inputs: list[Value]) -> Sequence[Value]:
        name, params = equation.primitive.name, equation.params
        avals = [variable.aval for variable in equation.outvars]
        is_of_maximum = name in _OF_MAXIMUM and any(value.greatest_of is not None for value in inputs)
        is_padded = any(value.padded_axes for value in inputs) or mentions_symbols(avals) or mentions_symbols(params)
        if not (is_padded or is_of_maximum):
            arrays = _converted(equation, inputs) or bind_with(equation, params, [value.array for value in inputs])
            return [make_value(array, aval) for array, aval in zip(arrays, avals, strict=True)]
        if name not in RULES:
            raise Refused(f"`{name}` has no rule for padded axes", HINT_OPAQUE)
        check_parameters(name, RULES[name], params)
        if not RULES[name].shrinks:
            _check_sizes([*(value.aval for value in inputs), *avals])
        self.tally.rules[name] += 1
        return RULES[name].apply(Call(equation, self, inputs))

    # Layouts -----------------------------------------------------------------------------------------------------

    def in_layout(self, value: Value, layout: Layout) -> Value:
        """Return the value in another layout, gathering the axes whose positions move."""
        array, fills = value.array, list(value.fills)
        for axis, (old, new) in enumerate(zip(value.layout, layout, strict=True)):
            if old not in (new, UNIFORM) and new != UNIFORM:
                array = jnp.take(array, self.sizes.positions(new, old), axis=axis, mode="clip")
                self.tally.relayouts += 1
                fills[axis] = None
        return Value(array, value.aval, layout, tuple(fills))

    def unmerged(self, value: Value, axes: Sequence[int] | None = None) -> Value:
        axes = range(value.rank) if axes is None else axes
        layout = tuple((value.shape[a],) if a in axes else factors for a, factors in enumerate(value.layout))
        return value if layout == value.layout else self.in_layout(value, layout)

    def aligned(self, values: Sequence[Value], axes: Sequence[Sequence[int]]) -> list[Value]:
        """Return the values with one layout along the given axes, which correspond one to one."""
        layouts: list[list[Factors]] = [list(value.layout) for value in values]
        for together in cast(Iterable[tuple[int, ...]], zip(*axes, strict=True)):
            # Prefer the merged layout: a later reshape can split it without moving elements.
            chosen: Factors = max((layout[axis] for layout, axis in zip(layouts, together, strict=True)), key=len)
            for layout, axis in zip(layouts, together, strict=True):
                layout[axis] = chosen
        return [
            value if tuple(layout) == value.layout else self.in_layout(value, tuple(layout))
            for value, layout in zip(values, layouts, strict=True)
        ]

    def _placeholder(self, aval: Any) -> Value:
        shape = self.sizes.shape(getattr(aval, "shape", ()))
        with suppress(TypeError, ValueError, NotImplementedError):
            return make_value(lax.full(shape, 0, aval.dtype), aval)
        return make_value(jnp.broadcast_to(jax.random.key(0), shape), aval)


def _check_sizes(avals: Sequence[Any]) -> None:
    sizes = chain.from_iterable(getattr(aval, "shape", ()) for aval in avals)
    for size in (size for size in sizes if not grows(size)):
        symbols = ", ".join(sorted(symbols_of(read_dimension(size))))
        raise Refused(
            f"the size `{size}` may get smaller as {symbols} grows, so that no bucket holds it",
            f"declare `{size}` as a dimension of its own",
        )


class Call:
    def __init__(self, equation: Any, interpreter: Interpreter, inputs: list[Value]) -> None:
        self.equation = equation
        self.interpreter = interpreter
        self.inputs = inputs
        self.sizes = interpreter.sizes
        self.in_layout, self.unmerged, self.aligned = interpreter.in_layout, interpreter.unmerged, interpreter.aligned

    @property
    def name(self) -> str:
        return self.equation.primitive.name

    @property
    def params(self) -> Mapping[str, Any]:
        return self.equation.params

    @property
    def avals(self) -> list[Any]:
        return [variable.aval for variable in self.equation.outvars]

    @property
    def shape(self) -> tuple[Any, ...]:
        return self.avals[0].shape

    def bind(self, *arrays: Any, **changed: Any) -> Any:
        """Return the primitive's result or results for arrays of the bucket's shapes, with some parameters changed."""
        results = bind_with(self.equation, {**at_bucket(self.params, self.sizes), **changed}, arrays)
        return results if self.equation.primitive.multiple_results else results[0]

    def value(
        self, array: Any, layout: Layout | None = None, fills: Sequence[Fill] | None = None, at: int = 0
    ) -> Value:
        return make_value(array, self.avals[at], layout, fills)

    def in_one_piece(self, value: Value, axes: Sequence[int]) -> Layout:
        """Return an operand's layout for the first result, whose `axes` have other sizes and are in one piece."""
        return tuple((self.shape[axis],) if axis in axes else factors for axis, factors in enumerate(value.layout))

    def values(self, arrays: Sequence[Any], layout: Layout | None = None) -> list[Value]:
        return [make_value(a, aval, layout) for a, aval in zip(arrays, self.avals, strict=True)]

    def masked(self, value: Value, fill: Fill, axes: Sequence[int] | None = None) -> Any:
        """Return the array with its padded positions along `axes` filled.

        The value keeps the masked array, so that later readers don't compute the array once with and once without mask.
        """
        axes = [axis for axis in value.padded_axes if axes is None or axis in axes]
        if axes and value.mask_fill is None:
            value.mask_fill = fill
        if all(_same(value.fills[axis], fill) for axis in axes):
            return value.array
        if any(value.layout[axis] == UNIFORM for axis in axes):  # don't cache: a masked axis isn't uniform
            return self._select(value, (value.array, value.fills), fill, axes)
        return self._filled(value, fill, axes)

    def _filled(self, value: Value, fill: Fill, axes: Sequence[int]) -> Any:
        # Mask the bare array: XLA would compute both masks if one were applied to the other.
        bare, fills = value.bare = value.bare or (value.array, value.fills)
        missing = tuple(axis for axis in axes if not _same(fills[axis], fill))
        if (fill, missing) not in value.filled:
            value.filled[fill, missing] = self._select(value, (bare, fills), fill, missing) if missing else bare
        value.array = value.filled[fill, missing]
        value.fills = tuple(_after_mask(old, fill, axis, missing) for axis, old in enumerate(fills))
        value.or_nan = {}  # held for the array before the mask only
        return self.interpreter.tally.note(value).array

    def _select(self, value: Value, filled: tuple[Any, Sequence[Fill]], fill: Fill, axes: Sequence[int]) -> Any:
        array, fills = filled
        shape, dtype = self.sizes.shape(value.shape), value.aval.dtype
        masks = [(axis, self.sizes.mask(value.layout[axis] or (value.shape[axis],))) for axis in axes]
        is_infinite = jnp.issubdtype(dtype, jnp.floating) and fill in (np.inf, -np.inf)
        if is_infinite and all(fills[axis] is not None and np.isfinite(cast(Any, fills[axis])) for axis in axes):
            # XLA's CPU library fuses sums into its one-pass softmax, but no select: 1.1× instead of 1.7× (2048²,
            # jax 0.10.2). Valid positions get -0.0 added, which changes no number; 0.0 would turn -0.0 into 0.0.
            for axis, mask in masks:
                gone = lax.full(mask.shape, cast(float, fill), dtype)
                row = lax.select(mask, lax.full(mask.shape, -0.0, dtype), gone)
                array = lax.add(array, lax.broadcast_in_dim(row, shape, (axis,)))
            return self.interpreter.tally.note_mask(array, fill, axes)
        both = [lax.broadcast_in_dim(mask, shape, (axis,)) for axis, mask in masks]
        chosen = lax.select(reduce(lax.bitwise_and, both), array, lax.full(shape, cast(Any, fill), dtype))
        return self.interpreter.tally.note_mask(chosen, fill, axes)


def _after_mask(old: Fill, fill: Fill, axis: int, masked: Sequence[int]) -> Fill:
    """Return the fill of `axis` after the padding of the axes in `masked` was overwritten by `fill`.

    None if the padding of `axis` now has two numbers: a mask along another axis overwrites its corners.
    """
    if axis in masked:
        return fill
    return old if not masked or _same(old, fill) else None


def _same(one: Fill, other: Fill) -> bool:
    return one is not None and one == other


def _converted(equation: Any, inputs: Sequence[Value]) -> list[Any]:
    """Return a list of a known 0, ±1 or ±infinity in its new dtype, so that it stays known; [] for others.

    Of integers and booleans, only 0 and 1. `jnp.pad` converts its scalar.
    """
    if equation.primitive.name != "convert_element_type":
        return []
    (value,), dtype = inputs, equation.outvars[0].aval.dtype
    return [np.asarray(value.array).astype(dtype)] if _is_exact(scalar_fill(value), dtype) else []


def _is_exact(number: Fill, dtype: Any) -> bool:
    if dtype in _FLOATS:
        return number in (0, 1, -1, np.inf, -np.inf)
    return number in (0, 1) and (dtype == np.bool_ or jnp.issubdtype(dtype, jnp.integer))


def scalar_fill(value: Value) -> Fill:
    number: Any = value.array
    if value.rank or isinstance(number, Tracer):
        return None
    with suppress(TypeError, ValueError):
        return cast(Fill, number.item() if hasattr(number, "item") else number)
    return None


class Rule(NamedTuple):
    apply: Callable[[Call], Sequence[Value]]
    parameters: frozenset[str]  # parameters with any value
    absent: frozenset[str]  # parameters that must be None, False or empty
    # True if it supports sizes that shrink as a dimension grows. The maximum of such a size isn't reached at the
    # bucket's sizes, and the maximum of a sum may be smaller than the sum of the maxima.
    shrinks: bool


RULES: dict[str, Rule] = {}

Apply = Callable[[Call], Value | Sequence[Value]]


def rule(names: str, parameters: str = "", absent: str = "", *, shrinks: bool = False) -> Callable[[Apply], Apply]:
    """Return a decorator that registers a rule for primitives; equations with other parameters are refused."""

    def register(apply: Apply) -> Apply:
        def results(call: Call) -> Sequence[Value]:
            result = apply(call)
            return result if isinstance(result, (list, tuple)) else [result]  # pyright: ignore[reportReturnType]

        for name in names.split():
            RULES[name] = Rule(results, frozenset(parameters.split()), frozenset(absent.split()), shrinks)
        return apply

    return register


def check_parameters(name: str, rule: Rule, params: dict[str, Any]) -> None:
    """Raise `Refused` if the equation has a parameter, or a parameter's value, that the rule doesn't support."""
    for key, value in params.items():
        if key in rule.absent:
            # The sharding of an unsharded array may be that of a mesh without axes.
            if value not in (None, False, ()) and not getattr(getattr(value, "mesh", None), "empty", False):
                raise Refused(f"`{name}` with {key}={value} isn't known to be exact")
        elif key not in rule.parameters:
            raise Refused(f"`{name}` has a parameter `{key}` that isn't known here")
