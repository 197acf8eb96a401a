"""Evaluation of a traced program equation by equation, on values, within a budget of time and memory.

Each value has a mark, which the caller computes: that is how a NaN is followed to the line that made it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

import jax
import numpy as np

from explorer._jax.numpy_rules import NUMPY
from explorer._jax.traces import bind_equation, inner_jaxprs, scan_inputs

MAX_BYTES = 256_000_000  # of all values of one jaxpr: those of a scan's body are gone after each turn


class Unaffordable(Exception):
    """The evaluation would take more time or memory than it may."""


class Value(NamedTuple):
    """Array of a variable of the jaxpr, and the mark that the observer returned for it."""

    array: Any  # NumPy's; JAX's for types that NumPy doesn't have, such as keys
    mark: Any = None  # of the caller's observer; None for none


@dataclass(frozen=True)
class Place:
    """Equation that runs, and the equations whose inner jaxprs it is in."""

    equation: Any  # JAX's
    callers: tuple[tuple[Any, str], ...] = ()  # outermost first, each with the parameter that has the inner jaxpr

    @property
    def key(self) -> tuple[int, ...]:
        """Ids of the equation and its callers: a jaxpr that is called twice has the same equations at two places."""
        return (id(self.equation), *(id(caller) for caller, _ in self.callers))


# Takes the place, the operands and the results of an equation that has run, and returns the marks of the results.
Observer = Callable[[Place, Sequence[Value], Sequence[Any]], Sequence[Any]]


@dataclass
class Evaluation:
    """Evaluation of jaxprs, one equation after the other, limited to `seconds` of the thread's time.

    NumPy computes what it can: JAX would compile each operation for each shape, some tens of milliseconds.
    """

    observe: Observer  # called after each equation that has no inner jaxpr
    # The run ends with Unaffordable after this time of the thread: that of a clock depends on what else is running.
    seconds: float
    ends: float = field(init=False)
    _sizes: dict[int, int] = field(default_factory=dict[int, int])

    def __post_init__(self) -> None:
        self.ends = time.thread_time() + self.seconds

    def run(self, closed: Any, values: Sequence[Value]) -> list[Value]:
        """Return the results of a closed jaxpr, each array with the mark that the observer gave it.

        Raises:
            Unaffordable: There is no time or memory left.
            Exception: An equation can't be run alone.
        """
        consts = [Value(host(const)) for const in closed.consts]
        with np.errstate(all="ignore"):
            return self._run(getattr(closed, "jaxpr", closed), consts, values, ())

    def _run(self, jaxpr: Any, consts: Sequence[Value], values: Sequence[Value], callers: Any) -> list[Value]:
        # Once per jaxpr: a loop runs its body's, which its equation keeps alive, in each iteration.
        size = self._sizes.get(id(jaxpr))
        if size is None:
            size = self._sizes[id(jaxpr)] = _bytes(jaxpr)
        if size > MAX_BYTES:
            raise Unaffordable("memory")
        values_of: dict[Any, Value] = {}
        values_of.update(zip(jaxpr.constvars, consts, strict=True))
        values_of.update(zip(jaxpr.invars, values, strict=True))

        def read(atom: Any) -> Value:
            return Value(np.asarray(atom.val, atom.aval.dtype)) if hasattr(atom, "val") else values_of[atom]

        for equation in jaxpr.eqns:
            if time.thread_time() > self.ends:
                raise Unaffordable("time")
            results = self._step(Place(equation, callers), [read(atom) for atom in equation.invars])
            values_of.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _step(self, place: Place, operands: Sequence[Value]) -> list[Value]:
        equation, name = place.equation, place.equation.primitive.name
        if name not in NUMPY:
            if name in _LOOPS:
                return list(_LOOPS[name](self, place, operands))
            inner = inner_jaxprs(equation.params)
            if len(inner) == 1 and len(inner[0][1].invars) == len(operands):
                return self._inner(place, 0, operands)
        arrays = [operand.array for operand in operands]
        results = _by_numpy(equation, arrays) if name in NUMPY else None
        results = _by_jax(equation, arrays) if results is None else results
        marks = self.observe(place, operands, results)
        return [Value(result, mark) for result, mark in zip(results, marks, strict=True)]

    def _inner(self, place: Place, number: int, operands: Sequence[Value], key: str = "") -> list[Value]:
        """Run one of the inner jaxprs of an equation, by its number or by its parameter, and return its results."""
        inner = inner_jaxprs(place.equation.params)
        parameter, jaxpr = next(one for one in inner if one[0] == key) if key else inner[number]
        consts = [Value(host(const)) for const in _consts(place.equation.params, parameter)]
        return self._run(jaxpr, consts, operands, (*place.callers, (place.equation, parameter)))

    def _scan(self, place: Place, operands: Sequence[Value]) -> Iterator[Value]:
        params = place.equation.params
        own, carried = scan_inputs(params)
        consts, carry, slices = operands[:own], [*operands[own : own + carried]], operands[own + carried :]
        turns: list[list[Value]] = []
        for i in reversed(range(params["length"])) if params["reverse"] else range(params["length"]):
            turn = [Value(host(one.array[i]), one.mark) for one in slices]
            results = self._inner(place, 0, [*consts, *carry, *turn])
            carry, stacked = results[:carried], results[carried:]
            turns.append(stacked)
        yield from carry
        turns = turns[::-1] if params["reverse"] else turns
        for number, out in enumerate(place.equation.outvars[carried:]):
            each = [turn[number] for turn in turns]
            mark = next((one.mark for one in each if one.mark is not None), None)
            yield Value(_stack([one.array for one in each], out.aval), mark)

    def _while(self, place: Place, operands: Sequence[Value]) -> list[Value]:
        tested, own = (place.equation.params[name] for name in ("cond_nconsts", "body_nconsts"))
        test, body, carry = operands[:tested], operands[tested : tested + own], [*operands[tested + own :]]
        while self._inner(place, 0, [*test, *carry], "cond_jaxpr")[0].array.all():
            carry = self._inner(place, 0, [*body, *carry], "body_jaxpr")
        return carry

    def _cond(self, place: Place, operands: Sequence[Value]) -> list[Value]:
        count = len(place.equation.params["branches"])
        return self._inner(place, max(0, min(int(operands[0].array), count - 1)), operands[1:])

    def _linear_solve(self, place: Place, operands: Sequence[Value]) -> list[Value]:
        lengths = place.equation.params["const_lengths"]
        start = lengths.matvec + lengths.vecmat
        given = [*operands[start : start + lengths.solve], *operands[sum(lengths) :]]
        return self._inner(place, 0, given, "jaxprs[2]")


_LOOPS: dict[str, Callable[..., Any]] = {
    "scan": Evaluation._scan,  # pyright: ignore[reportPrivateUsage] - of this module
    "while": Evaluation._while,  # pyright: ignore[reportPrivateUsage]
    "cond": Evaluation._cond,  # pyright: ignore[reportPrivateUsage]
    "custom_linear_solve": Evaluation._linear_solve,  # pyright: ignore[reportPrivateUsage]
}


def _by_jax(equation: Any, arrays: Sequence[Any]) -> list[Any]:
    given = [_device(array, atom.aval) for array, atom in zip(arrays, equation.invars, strict=True)]
    return [host(result) for result in bind_equation(equation, given)]


def _by_numpy(equation: Any, arrays: Sequence[Any]) -> list[Any] | None:
    """Return an equation's results; None if NumPy can't compute them, or computes another shape."""
    avals = [out.aval for out in equation.outvars]
    if not all(isinstance(array, np.ndarray) for array in arrays) or not all(map(_has_numbers, avals)):
        return None
    try:
        result = NUMPY[equation.primitive.name](equation.params, *arrays)
    except (NotImplementedError, ArithmeticError, ValueError, TypeError, IndexError, KeyError):
        return None
    return _as_declared(cast(tuple[Any, ...], result) if type(result) is tuple else (result,), avals)


def _as_declared(results: Sequence[Any], avals: Sequence[Any]) -> list[Any] | None:
    """Return results with the dtypes of avals; None if their shapes differ."""
    arrays: list[Any] = [np.asarray(result) for result in results]
    if [array.shape for array in arrays] != [tuple(aval.shape) for aval in avals]:
        return None
    kinds = [np.uint64 if _is_key(aval) else aval.dtype for aval in avals]
    return [array.astype(kind, copy=False) for array, kind in zip(arrays, kinds, strict=True)]


def _is_key(value: Any) -> bool:
    return hasattr(value, "dtype") and jax.numpy.issubdtype(value.dtype, jax.dtypes.extended)


def _has_numbers(aval: Any) -> bool:
    if _is_key(aval):
        return _is_threefry(aval.dtype)
    return getattr(getattr(aval, "dtype", None), "kind", "") in "biufcV"


def _is_threefry(dtype: Any) -> bool:
    """Return True for the dtype of keys whose random numbers `numpy_rules` computes as JAX does now."""
    is_partitionable = getattr(jax.config, "jax_threefry_partitionable", False)
    return is_partitionable and str(dtype) == "key<fry>"


def host(array: Any) -> Any:
    """Return an array as NumPy's; a threefry key as a uint64 of its two words, another key as it is."""
    if not _is_key(array):
        return np.asarray(array)
    words = np.asarray(jax.random.key_data(array)) if _is_threefry(array.dtype) else None
    return array if words is None else np.asarray(NUMPY["random_wrap"]({}, words))


def _device(array: Any, aval: Any) -> Any:
    if type(array) is not np.ndarray:
        return array
    words: Any = NUMPY["random_unwrap"]({}, array) if _is_key(aval) else array
    made: Any = jax.numpy.asarray(words)
    return cast(Any, jax.random.wrap_key_data)(made) if _is_key(aval) else made


def _consts(params: dict[str, Any], parameter: str) -> Sequence[Any]:
    """Return the constants of the jaxpr that is a parameter, as `jaxpr` or `branches[0]`; empty if it is open."""
    name, _, index = parameter.partition("[")
    value = params[name][int(index[:-1])] if index else params[name]
    return getattr(value, "consts", ())


def _stack(arrays: Sequence[Any], aval: Any) -> Any:
    if not arrays:
        return np.zeros(aval.shape, aval.dtype)
    return np.stack(arrays) if isinstance(arrays[0], np.ndarray) else jax.numpy.stack(arrays)


def _bytes(jaxpr: Any) -> int:
    avals = (out.aval for equation in jaxpr.eqns for out in equation.outvars)
    return sum(math.prod(aval.shape) * getattr(aval.dtype, "itemsize", 8) for aval in avals if hasattr(aval, "shape"))
