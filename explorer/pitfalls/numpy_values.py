"""NumPy's numbers that a function's text spells out: `np.int64(3e9)`, `256 ** np.arange(5)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from explorer.capture.safe_reading import is_a, is_plain
from explorer.pitfalls.function_source import FunctionSource

_MOST = 4_096  # elements
_LARGEST = 2**64  # of Python's own numbers, and no power beyond it
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
    """What an expression of numbers and NumPy's functions is; None for other expressions, and for plain numbers.

    Nothing but NumPy runs, on numbers that the text has.
    """
    try:
        with np.errstate(all="ignore"):
            value = _value(function, node)
    except (ArithmeticError, TypeError, ValueError):  # such as NumPy refuses too
        return None
    return value if is_a(value, np.generic, np.ndarray) else None


def _value(function: FunctionSource, node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.Name() | ast.Attribute():
            value = function.value(node)
            # An array from outside is a constant of the program, which `truncation` looks at by itself.
            return value if is_a(value, np.generic) or (is_plain(value) and type(value) in (int, float)) else None
        case ast.UnaryOp(op=sign, operand=inner) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_value(function, inner))
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _combine(_OPERATORS[type(sign)], _value(function, left), _value(function, right))
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) <= _MOST:
            values = [_value(function, item) for item in items]
            return None if any(value is None for value in values) else values
        case ast.Call(args=arguments, keywords=[]) if (make := _MAKERS.get(function.callee(node))) is not None:
            return _make(make, [_value(function, argument) for argument in arguments])
        case _:
            return None


def _combine(combine: Callable[..., Any], left: Any, right: Any) -> Any:
    plain = [abs(value) for value in (left, right) if type(value) in (int, float)]
    if left is None or right is None or any(value > _LARGEST for value in plain):
        return None
    if len(plain) == 2 and combine in (operator.pow, operator.lshift) and plain[1] > 64:
        return None
    return combine(left, right)


def _make(make: Callable[..., Any], values: list[Any]) -> Any:
    if not values or any(value is None for value in values):
        return None
    if make is np.arange and not all(type(value) is int and abs(value) <= _MOST for value in values):
        return None
    return make(*values)
