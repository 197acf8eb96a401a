"""One run of the traced program on the passed arguments: which lines make NaN, infinity, and integers that wrap around.

The run is of the traced equations, by NumPy where NumPy can, so that nothing is compiled for it. None of the user's
Python runs: a program that calls back into Python, or writes to references, isn't run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from explorer._jax.evaluation import Evaluation, Place, Value, host
from explorer._jax.numpy_rules import NUMPY
from explorer.capture.safe_reading import is_a, is_plain, is_tracer
from explorer.pitfalls.equations import Equation, Program
from explorer.pitfalls.gradient_probes import quiet
from explorer.pitfalls.gradient_slices import ENDS, singularity

Key = tuple[int, ...]  # of a place
MAX_SECONDS = 0.5  # of one run; an operation that JAX has begun to compile is finished
_MAX_INDEXED = 1_000  # equations
_WRAPPING = frozenset(
    ("add", "sub", "mul", "neg", "integer_pow", "reduce_sum", "reduce_prod", "cumsum", "cumprod", "dot_general")
)
_INDEXING = ("gather", "dynamic_slice", "dynamic_update_slice")
# Their value may be finite where their derivative isn't. That of the others is infinite or NaN there: seen in the run.
_DECOMPOSITIONS = ("eigh", "eig", "svd")
_SINGULAR_WHERE_FINITE = (*ENDS, *_DECOMPOSITIONS)


@dataclass(frozen=True)
class Fault:
    """Equation that made something of ordinary operands: NaN, infinity, or an integer that wrapped around."""

    place: Place
    kind: str  # NaN, infinity, or the wrapped numbers: `10 - 20 is -10, and becomes 246`


@dataclass
class CheckedRun:
    """Result of a run: the faults, by the equation that made them."""

    program: Program
    values: Fault | None = None  # of the results; None if they are finite, or not finite because arguments aren't
    # Something on the way wasn't finite, or an operation was where its derivative isn't: the gradient may not be.
    is_singular: bool = False
    wraps: dict[Key, Fault] = field(default_factory=dict[Key, Fault])
    # The operands of equations that index, at their first run.
    indexed: dict[Key, tuple[Place, Sequence[Any]]] = field(default_factory=dict[Key, tuple[Place, Sequence[Any]]])

    def equation(self, place: Place) -> Equation:
        """Return the program's equation at a place."""
        body = self.program.main
        for caller, parameter in place.callers:
            outer = next(equation for equation in body.equations if equation.raw is caller)
            body = next(inner for inner in outer.inner if inner.parameter == parameter)
        return next(equation for equation in body.equations if equation.raw is place.equation)

    def _note_wrap(self, place: Place, operands: Sequence[Any], result: Any) -> None:
        numbers = "" if place.key in self.wraps else _wrapped(place.equation, operands, result)
        if numbers:
            self.wraps[place.key] = Fault(place, numbers)

    def observe(self, place: Place, operands: Sequence[Value], results: Sequence[Any]) -> Sequence[Any]:
        """Return, for each result, the fault that its NaN or infinity comes from.

        None for a finite result, and where an argument or a constant had it. Also notes wrapped integers and operands
        of indexing.
        """
        name, arrays = place.equation.primitive.name, [one.array for one in operands]
        if name in _WRAPPING:
            self._note_wrap(place, arrays, results[0])
        if _indexes(place) and len(self.indexed) < _MAX_INDEXED:
            self.indexed.setdefault(place.key, (place, arrays))
        marks = [_origin(place, operands, result) for result in results]
        self.is_singular = self.is_singular or any(mark is not None for mark in marks)
        if not self.is_singular and name in _SINGULAR_WHERE_FINITE:
            self.is_singular = _is_at_a_singularity(place.equation, arrays, results)
        return marks


def _indexes(place: Place) -> bool:
    name = place.equation.primitive.name
    if name == "eq":  # of labels and classes
        return any(caller.params.get("name") == "_one_hot" for caller, _ in place.callers)
    return name in _INDEXING or name.startswith("scatter")


def check_values(evidence: Any) -> CheckedRun | None:
    """Return the run of an evidence's program on its arguments.

    None if they aren't numbers, or the program can't be run in time.
    """
    values = _values(evidence)
    if values is None:
        return None
    run = CheckedRun(evidence.program)
    results = _run(evidence, run, evidence.jaxpr, values)
    if results is None:
        return None
    run.values = next((one.mark for one in results if one.mark is not None), None)
    return run


def check_gradient(evidence: Any, values_run: CheckedRun) -> CheckedRun | None:
    """Return the run of the gradient of a program's results by its arguments.

    None if it isn't run, because the values show no reason to, or because there is no gradient to take; and if it can't
    be run in time.
    """
    values = _values(evidence)
    if values is None or values_run.values is not None or not values_run.is_singular:
        return None
    if any("transpose" in equation.transform for equation in evidence.program.equations):  # it is a derivative itself
        return None
    try:
        with quiet(is_trace=True):
            closed, floats = _gradient(evidence.jaxpr, values)
    except Exception:  # an operation has no derivative
        return None
    run = CheckedRun(Program(closed), is_singular=True)
    results = _run(evidence, run, closed, [values[i] for i in floats])
    if results is None:
        return None
    run.values = next((one.mark for one in results if one.mark is not None), None)
    return run


def _run(evidence: Any, run: CheckedRun, closed: Any, values: Sequence[Value]) -> list[Value] | None:
    if any(getattr(equation.raw, "effects", ()) for equation in run.program.equations):
        return None
    seconds = min(MAX_SECONDS, evidence.deadline - time.thread_time())
    try:
        with quiet():
            return Evaluation(run.observe, seconds).run(closed, values)
    except Exception:  # no time is left, or an operation can't be run alone
        return None


def _values(evidence: Any) -> list[Value] | None:
    """Return the passed values in the order of the jaxpr; None if one of them isn't known or has no numbers here."""
    raw = evidence.program.main.raw
    leaves = evidence.leaves
    if len(leaves) != len(raw.invars):  # static arguments are among them
        passed = dict(evidence.passed)
        leaves = [passed.get(argument.path, ...) for argument in evidence.arguments]
    if evidence.jaxpr is None or len(leaves) != len(raw.invars):
        return None
    values = [_value(leaf, variable.aval) for leaf, variable in zip(leaves, raw.invars, strict=True)]
    return None if any(value is None for value in values) else [value for value in values if value is not None]


def _value(leaf: Any, aval: Any) -> Value | None:
    is_array = is_a(leaf, np.ndarray, np.generic, jax.Array) and not is_tracer(leaf)
    if not is_array and not (is_plain(leaf) and type(leaf) in (bool, int, float, complex)):
        return None
    if is_a(leaf, jax.Array) and (leaf.is_deleted() or len(leaf.sharding.device_set) > 1):
        return None
    if jnp.issubdtype(aval.dtype, jax.dtypes.extended):
        return Value(host(leaf))
    with np.errstate(all="ignore"):
        array = np.asarray(leaf).astype(aval.dtype, copy=False)
    return Value(array) if array.shape == tuple(aval.shape) else None


def _gradient(closed: Any, values: Sequence[Value]) -> tuple[Any, list[int]]:
    """Return the jaxpr of the gradient of the sum of all results, and the positions of the arguments that it takes."""
    floats = [i for i, value in enumerate(values) if jnp.issubdtype(value.array.dtype, jnp.inexact)]
    function = cast(Any, jaxpr_as_fun)(closed)

    def pullback(*chosen: Any) -> Any:
        def results(*inexact: Any) -> Any:
            every: list[Any] = [value.array for value in values]
            for i, value in zip(floats, inexact, strict=True):
                every[i] = value
            return [out for out in function(*every) if jnp.issubdtype(out.dtype, jnp.inexact)]

        outputs, back = cast(tuple[Any, Any], jax.vjp(results, *chosen))
        return back([jnp.ones_like(out) for out in outputs])

    return jax.make_jaxpr(pullback)(*(values[i].array for i in floats)), floats


def _origin(place: Place, operands: Sequence[Value], result: Any) -> Fault | None:
    """Return the fault behind a result that isn't finite; None if it is finite, or arguments or constants weren't."""
    if not _is_float(result) or np.isfinite(result).all():
        return None
    earlier = next((one.mark for one in operands if one.mark is not None), None)
    if earlier is not None:
        return earlier
    is_nan = bool(np.isnan(result).any())
    return None if _is_given(operands, is_nan) else Fault(place, "NaN" if is_nan else "infinity")


def _is_given(operands: Sequence[Value], is_nan: bool) -> bool:
    """Return True if an operand has a NaN already, or for a result that isn't NaN an infinity.

    An infinity that was passed or written, such as a mask's, is no fault. A NaN that is made of infinities is one.
    """
    given = [one.array for one in operands if _is_float(one.array) and not np.isfinite(one.array).all()]
    return bool(given) and (not is_nan or any(np.isnan(array).any() for array in given))


def _is_at_a_singularity(equation: Any, operands: Sequence[Any], results: Sequence[Any]) -> bool:
    if equation.primitive.name in _DECOMPOSITIONS:  # equal values have no vectors of their own
        lines = (np.sort(result.ravel()) for result in results if result.ndim < operands[0].ndim)
        return any((np.diff(line) == 0).any() for line in lines)
    where = singularity(Equation(equation, cast(Any, None)))
    return where is not None and not np.all(where.is_regular(*operands))


def _is_float(array: Any) -> bool:
    return type(array) is np.ndarray and jnp.issubdtype(array.dtype, jnp.inexact)


def _wrapped(equation: Any, operands: Sequence[Any], result: Any) -> str:
    """Return an example of a number that wrapped around, `10 - 20 is -10, and becomes 246`; empty if none did, or for a
    dtype that is not checked.
    """
    name = equation.primitive.name
    if not issubclass(type(result), np.ndarray) or result.dtype.kind not in "iu" or result.dtype.itemsize > 4:
        return ""
    if result.dtype.kind == "u" and result.dtype.itemsize == 4 and name not in ("sub", "neg"):
        return ""  # sums and products of uint32 wrap in hashes and generators of random numbers, and are meant to
    params = dict(equation.params) | {"preferred_element_type": None}
    exact = np.asarray(NUMPY[name](params, *(operand.astype(np.float64) for operand in operands)))
    # A wrapped number is off by a multiple of 2**bits, a rounded float64 by far less.
    places = np.argwhere(np.abs(exact - result) >= 2.0 ** (8 * result.dtype.itemsize - 1))
    if not len(places):
        return ""
    at = tuple(places[0])
    one, got = f"{exact[at]:,.0f}", f"{result[at]:,}"
    if name in _SIGNS and all(operand.shape == result.shape or not operand.shape for operand in operands):
        left, right = (operand[at] if operand.shape else operand[()] for operand in operands)
        return f"{left:,} {_SIGNS[name]} {right:,} is {one}, and becomes {got}"
    return f"{one} becomes {got}"


_SIGNS = {"add": "+", "sub": "-", "mul": "·"}
