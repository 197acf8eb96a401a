"""One walk over a symbolic jaxpr that is both the proof and the program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import chain
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.extend.core import Literal

from explorer._jax.resharded import at_equation, bind_with, variable_of
from explorer._jax.symbolic import read_dimension
from explorer.padding.sizes import Factors, Refused, Sizes, at_bucket, grows, mentions_symbols, symbols_of
from explorer.padding.values import RULES, UNIFORM, Fill, Layout, Value, check_parameters, make_value

Notes = dict[Any, dict[str, str]]
# Those that have 0, 1, -1 and the infinities, as not all of 8 bits and fewer do.
_FLOATS = frozenset(map(np.dtype, (jnp.float64, jnp.float32, jnp.float16, jnp.bfloat16)))
# Between a maximum and what it is subtracted from: of those rules too that have no padded axis left.
_OF_MAXIMUM = frozenset(("broadcast_in_dim", "max", "stop_gradient"))
HINT_OPAQUE = 'compile with dynamic="specialise", or keep this operation out of the compiled function'


class Tally:
    """What a walk did, shared by all of its loops and branches."""

    def __init__(self, *, collects: bool, notes: Notes | None = None) -> None:
        self.collects = collects
        self._notes = notes
        self.rules: Counter[str] = Counter()
        self.masks = 0
        self.relayouts = 0
        # The equations that are being walked, each within the one before.
        self.path: list[Any] = []
        # By the path to an equation, whose equations are kept: a loop's body is walked more than once.
        self.refused: dict[tuple[int, ...], tuple[list[Any], Refused]] = {}

    def note(self, value: Value) -> Value:
        """Remember which axes of a value are padded, with what."""
        if value.padded_axes:
            axes, fills = value.padded_axes, value.fills
            self._note(value.array, "padded", [f"{axis}={value.shape[axis]}" for axis in axes])
            self._note(value.array, "padding", [f"{axis}={_fill_text(fills[axis])}" for axis in axes])
        return value

    def note_mask(self, array: Any, fill: Fill, axes: Sequence[int]) -> Any:
        """Remember that an array is masked."""
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
    """Runs symbolic jaxprs on arrays of a bucket's size."""

    def __init__(self, sizes: Sizes, tally: Tally) -> None:
        self.sizes = sizes
        self.tally = tally

    def inner(self) -> Interpreter:
        """For the body of a loop or a branch, which is a trace of its own."""
        return Interpreter(self.sizes.inner(), self.tally)

    def run(self, closed: Any, operands: Sequence[Value]) -> list[Value]:
        """The results of a jaxpr, closed or not.

        Raises:
            Refused: An equation can't be computed exactly, and the walk doesn't collect.
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
        """The same value with its positions laid out otherwise, by a gather where they must move."""
        array, fills = value.array, list(value.fills)
        for axis, (old, new) in enumerate(zip(value.layout, layout, strict=True)):
            if old not in (new, UNIFORM) and new != UNIFORM:
                array = jnp.take(array, self.sizes.positions(new, old), axis=axis, mode="clip")
                self.tally.relayouts += 1
                fills[axis] = None
        return Value(array, value.aval, layout, tuple(fills))

    def unmerged(self, value: Value, axes: Sequence[int] | None = None) -> Value:
        """The value with the valid positions of `axes`, or of all, in one piece."""
        axes = range(value.rank) if axes is None else axes
        layout = tuple((value.shape[a],) if a in axes else factors for a, factors in enumerate(value.layout))
        return value if layout == value.layout else self.in_layout(value, layout)

    def aligned(self, values: Sequence[Value], axes: Sequence[Sequence[int]]) -> list[Value]:
        """Values whose given axes, pair by pair of the same size, have one layout."""
        layouts: list[list[Factors]] = [list(value.layout) for value in values]
        for together in cast(Iterable[tuple[int, ...]], zip(*axes, strict=True)):
            # A merged layout is one that a later reshape takes apart for nothing.
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
    """One equation and its operands, as its rule sees it."""

    def __init__(self, equation: Any, interpreter: Interpreter, inputs: list[Value]) -> None:
        self.equation = equation
        self.interpreter = interpreter
        self.inputs = inputs
        self.sizes = interpreter.sizes

    @property
    def name(self) -> str:
        return self.equation.primitive.name

    @property
    def params(self) -> Mapping[str, Any]:
        """Its parameters, whose sizes are symbolic."""
        return self.equation.params

    @property
    def avals(self) -> list[Any]:
        """The symbolic types of its results."""
        return [variable.aval for variable in self.equation.outvars]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The symbolic shape of its first result."""
        return self.avals[0].shape

    def bind(self, *arrays: Any, **changed: Any) -> Any:
        """What the primitive gives for these arrays at the bucket's sizes, with some parameters changed."""
        results = bind_with(self.equation, {**at_bucket(self.params, self.sizes), **changed}, arrays)
        return results if self.equation.primitive.multiple_results else results[0]

    def value(
        self, array: Any, layout: Layout | None = None, fills: Sequence[Fill] | None = None, at: int = 0
    ) -> Value:
        """A result of the equation."""
        return make_value(array, self.avals[at], layout, fills)

    def in_one_piece(self, value: Value, axes: Sequence[int]) -> Layout:
        """The layout of an operand for the first result, whose `axes` have another size, in one piece."""
        return tuple((self.shape[axis],) if axis in axes else factors for axis, factors in enumerate(value.layout))

    def values(self, arrays: Sequence[Any], layout: Layout | None = None) -> list[Value]:
        """Its results, all of one layout."""
        return [make_value(a, aval, layout) for a, aval in zip(arrays, self.avals, strict=True)]

    def in_layout(self, value: Value, layout: Layout) -> Value:
        return self.interpreter.in_layout(value, layout)

    def unmerged(self, value: Value, axes: Sequence[int] | None = None) -> Value:
        return self.interpreter.unmerged(value, axes)

    def aligned(self, values: Sequence[Value], axes: Sequence[Sequence[int]]) -> list[Value]:
        return self.interpreter.aligned(values, axes)

    def masked(self, value: Value, fill: Fill, axes: Sequence[int] | None = None) -> Any:
        """The array with its padded positions along `axes` filled.

        The value is filled from then on, for who reads it later too: an array that is written twice, with and without a
        mask, would cost its computation twice.
        """
        axes = [axis for axis in value.padded_axes if axes is None or axis in axes]
        if axes and value.wished is None:
            value.wished = fill
        if all(_same(value.fills[axis], fill) for axis in axes):
            return value.array
        if any(value.layout[axis] == UNIFORM for axis in axes):  # which it wouldn't be any more
            return self._select(value, (value.array, value.fills), fill, axes)
        return self._filled(value, fill, axes)

    def _filled(self, value: Value, fill: Fill, axes: Sequence[int]) -> Any:
        # From the bare array: of one mask over another XLA would compute both.
        bare, fills = value.bare = value.bare or (value.array, value.fills)
        missing = tuple(axis for axis in axes if not _same(fills[axis], fill))
        if (fill, missing) not in value.filled:
            value.filled[fill, missing] = self._select(value, (bare, fills), fill, missing) if missing else bare
        value.array = value.filled[fill, missing]
        value.fills = tuple(_after_mask(old, fill, axis, missing) for axis, old in enumerate(fills))
        value.or_nan = {}  # was true of the array before
        return self.interpreter.tally.note(value).array

    def _select(self, value: Value, filled: tuple[Any, Sequence[Fill]], fill: Fill, axes: Sequence[int]) -> Any:
        array, fills = filled
        shape, dtype = self.sizes.shape(value.shape), value.aval.dtype
        masks = [(axis, self.sizes.mask(value.layout[axis] or (value.shape[axis],))) for axis in axes]
        if _is_infinite(fill, dtype) and all(_is_finite(fills[axis]) for axis in axes):
            # XLA's library for CPUs, which has a softmax in one pass, takes sums in but no select: 1.1× instead of 1.7×
            # (2048², jax 0.10.2). What is added to the valid is -0.0, which alone changes no number, 0.0 neither.
            for axis, mask in masks:
                kept, gone = (lax.full(mask.shape, number, dtype) for number in (-0.0, cast(float, fill)))
                row = lax.select(mask, kept, gone)
                array = lax.add(array, lax.broadcast_in_dim(row, shape, (axis,)))
            return self.interpreter.tally.note_mask(array, fill, axes)
        both = [lax.broadcast_in_dim(mask, shape, (axis,)) for axis, mask in masks]
        chosen = lax.select(reduce(lax.bitwise_and, both), array, lax.full(shape, cast(Any, fill), dtype))
        return self.interpreter.tally.note_mask(chosen, fill, axes)


def _after_mask(old: Fill, fill: Fill, axis: int, masked: Sequence[int]) -> Fill:
    """What an axis is filled with: at a corner, padded along two, a mask writes over what the other was filled with."""
    if axis in masked:
        return fill
    return old if not masked or _same(old, fill) else None


def _is_infinite(fill: Fill, dtype: Any) -> bool:
    return jnp.issubdtype(dtype, jnp.floating) and fill in (np.inf, -np.inf)


def _is_finite(fill: Fill) -> bool:
    return fill is not None and bool(np.isfinite(fill))


def _same(one: Fill, other: Fill) -> bool:
    return one is not None and one == other


def _converted(equation: Any, inputs: Sequence[Value]) -> list[Any]:
    """A number in another dtype, as `jnp.where` and `jnp.pad` first make of what fills: it stays one that is known."""
    if equation.primitive.name != "convert_element_type":
        return []
    (value,), dtype = inputs, equation.outvars[0].aval.dtype
    return [np.asarray(value.array).astype(dtype)] if _is_exact(scalar_fill(value), dtype) else []


def _is_exact(number: Fill, dtype: Any) -> bool:
    """Whether a dtype has exactly this number, so that NumPy and any compiler convert it alike."""
    if dtype in _FLOATS:
        return number in (0, 1, -1, np.inf, -np.inf)
    return number in (0, 1) and (dtype == np.bool_ or jnp.issubdtype(dtype, jnp.integer))


def scalar_fill(value: Value) -> Fill:
    """The number that a value is, if it is a known scalar."""
    number: Any = value.array
    if value.rank or isinstance(number, Tracer):
        return None
    with suppress(TypeError, ValueError):
        return cast(Fill, number.item() if hasattr(number, "item") else number)
    return None
