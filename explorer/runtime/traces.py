"""Symbolic traces, and comparison of two traces of one function."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple, TypeVar, cast

import jax
import numpy as np

from explorer._jax.symbolic import Undecided, at_sizes, undecided_equalities
from explorer._jax.traces import Literal, inner_jaxprs, user_stack
from explorer.capture.agreement import differ
from explorer.capture.readers.jaxpr import short_type
from explorer.capture.sources import place
from explorer.capture.trace_errors import users_place

# Functions print with their address, which differs in each trace.
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_MAX_TEXT = 100  # characters of an equation in a message

T = TypeVar("T")


def trace_with_symbols(
    trace: Callable[[], T], closed_of: Callable[[T], Any], sizes: Mapping[str, int]
) -> tuple[T | None, str, Sequence[Undecided]]:
    """Trace with symbolic sizes and check that concrete sizes can be substituted afterwards.

    Args:
        trace: Makes the symbolic trace.
        closed_of: Returns the trace's closed jaxpr.
        sizes: Concrete sizes to substitute.

    Returns:
        The trace, or None with the reason as `reason  at  place`, and equalities that hold for some sizes only.
    """
    try:
        with undecided_equalities() as undecided:
            traced = trace()
            at_sizes(closed_of(traced), sizes)
    except Exception as error:  # JAX's or the user's own: a trace with concrete sizes follows and shows which
        where, first = users_place(error), str(error).strip().partition("\n")[0] or type(error).__name__
        return None, f"{first}  at  {where}" if where else first, ()
    if not undecided:
        return traced, "", ()
    equality = undecided[0]
    why = f"`{equality.text}` holds for some sizes only  at  {place(equality.file, equality.line)}"
    return None, why, undecided


def derivatives_need_python(closed: Any) -> bool:
    """Return True if substituting sizes into a symbolic program may lose derivatives that a concrete trace has.

    It may if the program has a primitive `custom_…`, such as a custom derivative rule, or a `while` loop.
    """
    # Custom rules are Python that knows one trace only. A `fori_loop` over a symbolic size is a `while`, which has no
    # reverse-mode derivative; over a number it would be a scan.
    return any(e.primitive.name == "while" or e.primitive.name.startswith("custom_") for e in equations(closed))


class Change(NamedTuple):
    """First difference of two traces: the equation or constant before and now, and the user's line."""

    before: str
    now: str
    place: str


def change(before: Sequence[Any], now: Sequence[Any]) -> Change | None:
    """Return the first difference of two traces of one function; None if they are the same program.

    Args:
        before, now: Closed jaxprs: of the function, and of its derivative rules.

    Values computed from literals alone are compared as values: a size is a number in one trace and an equation in
    another. The user's callbacks aren't compared: they are new Python functions in each trace.
    """
    for old, new in zip_longest(chain.from_iterable(map(_steps, before)), chain.from_iterable(map(_steps, now))):
        if old is None or new is None or old.text != new.text or not _is_same(old.value, new.value):
            where = next((_place(step.traceback) for step in (new, old) if step is not None), "")
            return Change(_shown(old), _shown(new), where)
    return None


def disagreement(given: Any, single: Any, *, has_other_tree: bool = False) -> Change | None:
    """Return the first difference of a symbolic trace, given sizes, from a trace at these sizes; None if they agree.

    Programs that are written differently but compute the same numbers agree, unless their results differ in structure.
    """
    with jax.ensure_compile_time_eval():  # a trace may be under way
        other = change([given], [single])
        return other if other is not None and (has_other_tree or differ(given, single)) else None


class _Step(NamedTuple):
    """An equation, constant, input or output list of a program."""

    text: str
    value: Any = None
    traceback: Any = None


def _steps(closed: Any) -> Iterator[_Step]:
    names: dict[Any, str] = {}
    numbers: dict[Any, Any] = {}  # values of variables that depend on literals only

    def name(variable: Any) -> str:
        if isinstance(variable, Literal) or variable in numbers:
            return f"{_value(variable, numbers)}:{_type(variable)}"
        return names.setdefault(variable, f"{_type(variable)}#{len(names)}")

    def walk(closed: Any) -> Iterator[_Step]:
        jaxpr = getattr(closed, "jaxpr", closed)
        reader = _first_readers(jaxpr)
        for variable, value in zip(jaxpr.constvars, getattr(closed, "consts", ()), strict=False):
            yield _Step(f"a constant {name(variable)}", value, reader.get(variable))
        yield _Step(f"inputs {' '.join(map(name, jaxpr.invars))}")
        for equation in jaxpr.eqns:
            if _folds(equation, numbers):
                continue
            results, operands = (" ".join(map(name, part)) for part in (equation.outvars, equation.invars))
            parameters = _parameters(equation.params)
            yield _Step(
                f"{results} = {equation.primitive.name}{parameters} {operands}", None, equation.source_info.traceback
            )
            for inner in _inner(equation.params):
                yield from walk(inner)
        yield _Step(f"outputs {' '.join(map(name, jaxpr.outvars))}")

    return walk(closed)


def _value(operand: Any, numbers: Mapping[Any, Any]) -> Any:
    return operand.val if isinstance(operand, Literal) else numbers[operand]


def _folds(equation: Any, numbers: dict[Any, Any]) -> bool:
    """Return True if an equation computes a scalar from literals or `numbers`, and store its value in `numbers`."""
    is_known = all(isinstance(v, Literal) or v in numbers for v in equation.invars)
    if not is_known or not equation.invars or len(equation.outvars) != 1 or equation.outvars[0].aval.shape != ():
        return False
    if equation.effects or inner_jaxprs(equation.params):
        return False
    with jax.ensure_compile_time_eval():
        operands = [jax.numpy.asarray(_value(v, numbers), v.aval.dtype) for v in equation.invars]
        numbers[equation.outvars[0]] = equation.primitive.bind(*operands, **equation.params)
    return True


def _first_readers(jaxpr: Any) -> dict[Any, Any]:
    """Return the traceback of the first equation that reads each variable, by variable. A constant has no place of its
    own.
    """
    first: dict[Any, Any] = {}
    for equation in jaxpr.eqns:
        for variable in equation.invars:
            if not isinstance(variable, Literal):
                first.setdefault(variable, equation.source_info.traceback)
    return first


def equations(closed: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of the jaxprs in its parameters."""
    for equation in getattr(closed, "jaxpr", closed).eqns:
        yield equation
        for _, inner in inner_jaxprs(equation.params):
            yield from equations(inner)


def _inner(params: Mapping[str, Any]) -> Iterator[Any]:
    for value in params.values():
        items = cast(Sequence[Any], value) if isinstance(value, (tuple, list)) else (value,)
        yield from (item for item in items if _is_jaxpr(item))


def _is_jaxpr(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def _parameters(params: Mapping[str, Any]) -> str:
    texts = {key: _ADDRESS.sub("", str(value)) for key, value in params.items() if _is_data(value)}
    return f"[{' '.join(f'{key}={text}' for key, text in texts.items())}]" if texts else ""


def _is_data(value: Any) -> bool:
    """Return True for a parameter of an equation that determines its result: not None, a jaxpr, a callable, or a
    sequence with one.
    """
    if isinstance(value, (tuple, list)):
        return all(map(_is_data, cast(Sequence[Any], value)))
    return value is not None and not _is_jaxpr(value) and not isinstance(value, Callable)


def _type(variable: Any) -> str:
    short: Callable[..., str] | None = getattr(variable.aval, "str_short", None)
    return short(short_dtypes=True) if short else str(variable.aval)


def _is_same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    try:
        one, other = (_array_of(value) for value in (old, new))
    except (TypeError, ValueError):  # not an array, for example a mutable reference
        return False
    return one.shape == other.shape and one.dtype == other.dtype and one.tobytes() == other.tobytes()


def _array_of(value: Any) -> Any:
    is_key = isinstance(value, jax.Array) and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(value) if is_key else value)


def _shown(step: _Step | None) -> str:
    if step is None:
        return "nothing"
    text = " ".join(re.sub(r"#\d+", "", step.text).split())
    if step.value is not None and hasattr(step.value, "shape"):
        shown = " ".join(np.array2string(_array_of(step.value), threshold=6, edgeitems=2).split())
        text = f"a constant {short_type(step.value)} {shown}"
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def _place(traceback: Any) -> str:
    stack = user_stack(traceback)
    return place(stack[0].file, stack[0].line) if stack else ""
