"""64-bit numbers that become 32-bit ones, because jax_enable_x64 is off."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import class_name, is_a, is_plain
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file
from explorer.model.text import root_of
from explorer.pitfalls.constant_values import ConstantValues
from explorer.pitfalls.equations import Equation, Program
from explorer.pitfalls.evidence import Evidence, parameter_location, reachable_values, traced_in, traced_names
from explorer.pitfalls.function_source import (
    FunctionSource,
    expression_on_line,
    frame_location,
    last_name,
    span_location,
)
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rule_large_constant import same_array

_WARNING = re.compile(r"requested dtype (\S+)(?: requested in (\w+))? is not available,? .*truncated to dtype (\w+)")
_OVERFLOW = re.compile(r"argument path is (\S+)\. Got")
_NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
_SCALARS = ("array", "asarray", "int32", "uint32", "float32")
_INTEGERS = ("int8", "int16", "int32", "uint8", "uint16", "uint32")
_MAX_ELEMENTS = 1_000_000  # elements looked at
_X64 = 'jax.config.update("jax_enable_x64", True) at the start of the program, for all of it'


@rule("truncation", "EX014", "warning", "default_dtypes.html", passive=True)
def truncation(evidence: Evidence) -> Iterator[Finding]:
    """JAX computes with 32 bits by default: 64-bit numbers lose digits, and large ones change their value."""
    yield from _cast(evidence)
    yield from _cast_in_text(evidence)
    if jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue] - made by JAX when it is imported
        return
    yield from _named(evidence)
    yield from _refused(evidence)
    yield from _narrowed(evidence)
    yield from _spelled_out(evidence)


def _named(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for 64-bit dtypes that the function names, from JAX's warnings."""
    warnings = list(evidence.warnings)
    step = evidence.failed_step
    if step is not None and issubclass(type(evidence.error), Warning):  # warnings are errors here
        warnings.append((str(evidence.error), step.file, step.span.line))
    reported: set[tuple[str, str, int]] = set()
    for message, file, line in warnings:
        match = _WARNING.search(message)
        if match is None or is_library_file(file) or (match[1], file, line) in reported:
            continue
        reported.add((match[1], file, line))
        yield truncation.finding(
            f"{evidence.name} asks for {match[1]} and gets {match[3]}",
            evidence=f"JAX warned in {match[2] or 'the trace'}: jax_enable_x64 is off",
            fix=f"jnp.{match[3]}, or {_X64}",
            **span_location(file, expression_on_line(file, line, lambda node, dtype=match[1]: _names(node, dtype))),
        )


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for Python integers beyond 32 bits, which JAX refuses."""
    error, step = evidence.error, evidence.failed_step
    match = _OVERFLOW.search(str(error))
    if not issubclass(type(error), OverflowError) or (match is None and "too large to convert" not in str(error)):
        return
    # A path that is no argument of this function belongs to an operation in it.
    roots = {root_of(path) for path, _ in evidence.passed}
    path = match[1] if match is not None and root_of(match[1]) in roots else ""
    at_step = span_location(step.file, step.span) if step is not None else {}
    yield truncation.finding(
        f"{evidence.name} can't be called: {f'`{path}` is' if path else 'it computes with'} a whole number that "
        "32 bits can't hold",
        evidence=f"the trace ended with {type(error).__name__}; jax_enable_x64 is off",
        fix=f"a smaller number or a float, or {_X64}",
        severity="error",
        **(parameter_location(evidence, path) if path else at_step),
    )


def _narrowed(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for 64-bit NumPy arrays and numbers, passed or from outside, whose values JAX narrows silently."""
    yield from _narrowed_arguments(evidence)
    has_consts = any(body.consts for body in evidence.program.bodies)
    for path, value in reachable_values(evidence).items() if has_consts else ():
        loss = _loss(value)
        place = _first_use(evidence.program, value) if loss is not None else None
        if loss is not None and place is not None:
            yield _finding(evidence, f"`{path}`, from outside,", value, *loss, place)


def _narrowed_arguments(evidence: Evidence) -> Iterator[Finding]:
    lost: dict[tuple[str, str], list[tuple[str, Any, tuple[str, str]]]] = {}
    for path, value in evidence.passed:
        loss = _loss(value)
        if loss is not None:
            lost.setdefault((root_of(path), loss[0]), []).append((path, value, loss))
    for several in lost.values():  # one for an argument: a tree of a hundred arrays was made at one place
        path, value, loss = several[0]
        more = f", as {len(several) - 1} more of `{root_of(path)}`," if len(several) > 1 else ""
        yield _finding(evidence, f"`{path}`{more}", value, *loss, parameter_location(evidence, path))


def _spelled_out(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for NumPy numbers in expressions with JAX arrays: `x + np.int64(3e9)`."""
    for function in evidence.functions:
        # Fewer digits of a constant are expected with 32 bits: report wrong values only.
        lost = [
            (part, others, value, loss)
            for node in function.nodes
            for part, others in _operands(function, node)
            if (value := numpy_value(function, part)) is not None
            if (loss := _loss(value)) is not None and loss[0] == "error"
        ]
        traced = traced_names(evidence, function) if lost else {}
        for part, others, value, loss in lost:
            if function.reached(part) and (others is None or any(traced_in(other, traced) for other in others)):
                place = span_location(function.file, Span.of(part))
                yield _finding(evidence, f"`{function.short(part)}`", value, *loss, place)


def _operands(function: FunctionSource, node: Any) -> Iterator[tuple[ast.expr, list[ast.expr] | None]]:
    """Yield an operator's operands, each with the others; the arguments of a JAX call, each with None."""
    if isinstance(node, ast.Call):
        yield from ((part, None) for part in node.args if function.callees[node].startswith("jax."))
    if not isinstance(node, (ast.BinOp, ast.Compare)):
        return
    parts: list[ast.expr] = [node.left, *(node.comparators if isinstance(node, ast.Compare) else [node.right])]
    yield from ((part, [other for other in parts if other is not part]) for part in parts)


def _cast(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for constants that their new dtype can't hold: `jnp.full((3,), 300).astype(jnp.uint8)`."""
    constants = ConstantValues(evidence.program)
    reported: set[Frame] = set()
    for equation in evidence.program.by_op.get("convert_element_type", ()):
        lost = _lost_in_cast(equation, constants)
        frame = evidence.program.frame(equation) if lost is not None else None
        if lost is not None and frame is not None and frame not in reported:
            reported.add(frame)
            was = equation.inputs[0].aval.str_short()
            yield _cast_finding(equation.params["new_dtype"], was, *lost, frame_location(frame))


def _lost_in_cast(equation: Equation, constants: ConstantValues) -> tuple[Any, str] | None:
    dtype = equation.params["new_dtype"]
    if getattr(dtype, "kind", "") not in "iu":
        return None
    value = constants.value(equation.body, equation.inputs[0])
    return None if value is None or value.dtype.kind not in "iuf" else _outside(value, dtype)


def _cast_in_text(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for `jnp.array(300).astype(jnp.int8)`, which JAX casts without an equation."""
    for function in evidence.functions:
        for node in function.calls:
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Call(args=[made]) as maker, attr="astype"), args=[to]):
                    lost = _lost_in_text(function, maker, made, to)
                case _:
                    continue
            if lost is not None and function.reached(node):
                dtype, first, got = lost
                place = span_location(function.file, Span.of(node))
                yield _cast_finding(dtype, function.short(maker), first, got, place)


def _lost_in_text(
    function: FunctionSource, maker: ast.Call, made: ast.expr, to: ast.expr
) -> tuple[np.dtype[Any], Any, str] | None:
    number, named = function.value(made), function.value(to)
    is_number = function.callees[maker].startswith("jax.") and last_name(maker.func) in _SCALARS
    name = named if type(named) is str else class_name(named).rpartition(".")[2] if is_a(named, type) else ""
    if not is_number or name not in _INTEGERS or type(number) not in (int, float) or abs(number) > 2**31:
        return None
    lost = _outside(np.asarray(number), np.dtype(name))
    return None if lost is None else (np.dtype(name), *lost)


def _cast_finding(dtype: np.dtype[Any], was: str, first: Any, got: str, place: dict[str, Any]) -> Finding:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return truncation.finding(
        f"{first:,} is cast to {dtype.name}, which has numbers from {low:,} to {high:,}: it becomes {got}",
        evidence=f"a constant {was}; JAX casts without a warning",
        fix=f"a type that holds {first:,}, or jnp.clip(…, {low}, {high}) before the cast",
        # -1 is a common way to set all bits.
        severity="note" if first == -1 else None,
        **place,
    )


def _outside(value: np.ndarray[Any, Any], dtype: np.dtype[Any]) -> tuple[Any, str] | None:
    limits = np.iinfo(dtype)
    outside = value[(value < limits.min) | (value > limits.max)] if value.size <= _MAX_ELEMENTS else value[:0]
    if not outside.size:
        return None
    first = outside.ravel()[0]
    # An out-of-range float converts differently on each hardware; an integer wraps around.
    got = f"{first.astype(dtype):,}" if value.dtype.kind in "iu" else "another number on each kind of hardware"
    return first, got


def _first_use(program: Program, value: Any) -> dict[str, Any] | None:
    consts = (
        (body, name) for body in program.bodies for name, const in body.consts.items() if same_array(const, value)
    )
    for body, constant in consts:
        uses = (equation for equation in body.equations if any(operand is constant for operand in equation.inputs))
        use = next(uses, None)
        return {} if use is None else frame_location(program.called_from(use))
    return None


def _finding(evidence: Evidence, what: str, value: Any, severity: str, lost: str, place: dict[str, Any]) -> Finding:
    narrow = _NARROW[value.dtype.name]
    return truncation.finding(
        f"{what} is {value.dtype.name} and becomes {narrow} in {evidence.name}: {lost}",
        evidence=f"NumPy's {value.dtype.name}{list(value.shape)}; jax_enable_x64 is off, and JAX doesn't warn here",
        fix=f"numbers that {narrow} holds, or {_X64}"
        if severity == "error"
        else f".astype(np.{narrow}) shows that it is intended, or {_X64}",
        severity=severity,
        **place,
    )


def _loss(value: Any) -> tuple[str, str] | None:
    if (
        not (type(value) is np.ndarray or issubclass(type(value), np.generic))
        or value.dtype.name not in _NARROW
        or not value.size
    ):
        return None
    some = np.asarray(value).ravel()[:_MAX_ELEMENTS]
    with np.errstate(all="ignore"):
        narrow = some.astype(_NARROW[value.dtype.name])
        differ = (narrow.astype(some.dtype) != some) & ~np.isnan(some)
    if not differ.any():
        return None
    first = some[differ][0]
    got = narrow[differ][0]
    if some.dtype.kind in "iu":
        return "error", f"{first:,} becomes {got:,}"
    if not np.isfinite(narrow[np.isfinite(some)]).all():
        return "error", "numbers beyond 3.4e38 become infinite"
    if some.dtype.kind == "f" and (differ & (some == np.floor(some))).any():
        whole = differ & (some == np.floor(some))
        return "warning", f"{some[whole][0]:.17g} becomes {narrow[whole][0]:.17g}"
    return "note", "7 digits are left of 16"


def _names(call: ast.expr, dtype: str) -> bool:
    wanted = (dtype, {"float64": "float", "int64": "int"}.get(dtype, dtype))
    parts = ast.walk(call) if isinstance(call, ast.Call) else ()
    return any((last_name(part) or getattr(part, "value", None)) in wanted for part in parts)


_MAX_ITEMS = 4_096  # elements
_MAX_NUMBER = 2**64  # of Python's own numbers, and no power beyond it
_MAKERS: dict[str, Callable[..., Any]] = {
    "numpy.int64": np.int64,
    "numpy.uint64": np.uint64,
    "numpy.float64": np.float64,
    "numpy.array": np.array,
    "numpy.asarray": np.asarray,
    "numpy.arange": np.arange,
}
_OPERATORS: dict[type[ast.operator | ast.unaryop], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.USub: operator.neg,
}


def numpy_value(function: FunctionSource, node: ast.expr) -> Any:
    """Return the NumPy value of an expression of numbers and NumPy functions; None for others, and for plain numbers.

    Only NumPy runs, on numbers in the text.
    """
    try:
        with np.errstate(all="ignore"):
            value = _value(function, node)
    except (ArithmeticError, TypeError, ValueError):  # such as NumPy refuses too
        return None
    return value if value is not None and issubclass(type(value), (np.generic, np.ndarray)) else None


def _value(function: FunctionSource, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name() | ast.Attribute():
            value = function.value(node)
            # Arrays from outside are constants of the program: `_narrowed` checks them.
            return (
                value
                if issubclass(type(value), np.generic) or (is_plain(value) and type(value) in (int, float))
                else None
            )
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(function, inner))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _combine(_OPERATORS[type(sign)], _value(function, left), _value(function, right))
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) <= _MAX_ITEMS:
            values = [_value(function, item) for item in items]
            return None if any(value is None for value in values) else values
        case ast.Call(args=arguments, keywords=[]) if (make := _MAKERS.get(function.callees[node])) is not None:
            return _make(make, [_value(function, argument) for argument in arguments])
        case _:
            return None


def _combine(combine: Callable[..., Any], left: Any, right: Any) -> Any:
    plain = [abs(value) for value in (left, right) if type(value) in (int, float)]
    if left is None or right is None or any(value > _MAX_NUMBER for value in plain):
        return None
    if len(plain) == 2 and combine in (operator.pow, operator.lshift) and plain[1] > 64:
        return None
    return combine(left, right)


def _make(make: Callable[..., Any], values: list[Any]) -> Any:
    if not values or any(value is None for value in values):
        return None
    if make is np.arange and not all(type(value) is int and abs(value) <= _MAX_ITEMS for value in values):
        return None
    return make(*values)
