"""Which values that a trace read or wrote are in the program that it made, and which only Python had a use for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import is_a, is_exactly
from explorer.model.graph import Frame
from explorer.pitfalls.equations import is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.rules.large_constant import same_array

_MOST = 8  # items of a container


def is_private(path: str) -> bool:
    """Whether the author keeps a value to themselves: a name of its path starts with an underscore.

    Example:
        >>> is_private("self._state.depth"), is_private("self.rate"), is_private("__version__")
        (True, False, False)
    """
    names = path.replace("[", ".").split(".")
    return any(name.startswith("_") and not name.startswith("__") for name in names)


def reaches_program(evidence: Evidence, function: FunctionSource, *values: Any) -> bool:
    """True if a program has one of some values as a constant, or the function computes with one of them as a number.

    What decides an `if`, is counted or names something isn't there: then this is False, though it mattered to Python.
    """
    return any(_is_in(evidence, function, part) for value in values for part in _parts(value))


def _parts(value: Any, depth: int = 0) -> Iterator[Any]:
    if is_exactly(value, list, tuple, dict):
        items: Any = dict[Any, Any].values(value) if is_exactly(value, dict) else value
        for item in islice(items, _MOST) if depth < 3 else ():
            yield from _parts(item, depth + 1)
    else:
        yield value


def _is_in(evidence: Evidence, function: FunctionSource, value: Any) -> bool:
    if is_a(value, np.ndarray, jax.Array):
        return any(const is value or same_array(const, value) for const in _constants(evidence))
    if type(value) not in (int, float, complex):  # True and False decide what Python does
        return False
    return any(
        is_literal(atom) and _is_number(atom, value) and _is_of(evidence.program.stack(equation), function)
        for equation in evidence.program.equations
        for atom in equation.inputs
    )


def _constants(evidence: Evidence) -> Iterator[Any]:
    return (const for body in evidence.program.bodies for const in body.consts.values())


def _is_number(literal: Any, value: complex) -> bool:
    is_scalar = literal.aval.shape == () and getattr(literal.aval.dtype, "kind", "") in "iufc"
    return is_scalar and bool(np.isclose(np.asarray(literal.val).item(), value, rtol=1e-6))


def _is_of(stack: Sequence[Frame], function: FunctionSource) -> bool:
    """Whether an equation was made by a function, or by what that called."""
    first, last = function.node.lineno, getattr(function.node, "end_lineno", 0) or 0
    return any(frame.file == function.file and first <= frame.line <= last for frame in stack)
