"""Operations whose derivative isn't finite everywhere: where that is, and a value to put there instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from explorer.pitfalls.equations import Equation, is_literal


@dataclass(frozen=True)
class Singularity:
    """Where an operation has no finite derivative.

    Args:
        name: In a sentence.
        operand: The number of the operand that it depends on.
        test: True where the derivative is finite: Python, with `{x}` for the operand and `{y}` for the first one.
        safe: An operand at which value and derivative are finite.
        limit: The operation's own value where the test fails, if that is finite; Python, empty if it isn't.
        is_kept: Whether the operation has the same value at `safe` as where the test fails.
        overflows: Whether it is the size of the result, not the operand, that is out of range.
    """

    name: str
    operand: int = 0
    test: str = "{x} > 0"
    safe: str = "1"
    limit: str = ""
    is_kept: bool = False
    overflows: bool = False

    @property
    def needs_positive(self) -> bool:
        """Whether a positive operand is enough for a finite derivative."""
        return self.test in ("{x} > 0", "{x} > -1", "{x} != 0")

    def holds(self, operand: Any, first: Any) -> Any:
        """The test of an operand, element by element."""
        return _TESTS[self.test](operand, first)

    def is_regular(self, *operands: Any) -> Any:
        """Where the derivative is finite, element by element; of what overflows, where the operand isn't large."""
        operand = operands[self.operand]
        return abs(operand) < _LARGE if self.overflows else self.holds(operand, operands[0])

    def at_limit(self, operand: Any) -> Any:
        return _LIMITS[self.limit](operand)


_LARGE = 80  # exp of more than 88.7 is infinite in float32
_INSIDE = "abs({x}) < 1"
_OVERFLOW: dict[str, Any] = {"test": "", "overflows": True}
SINGULAR: dict[str, Singularity] = {
    "log": Singularity("a logarithm"),
    "log2": Singularity("a logarithm"),  # from JAX 0.12 on one operation; log10 still divides a logarithm
    "log1p": Singularity("log1p", test="{x} > -1", safe="0"),
    "sqrt": Singularity("a root", limit="0"),
    "rsqrt": Singularity("a reciprocal root"),
    "cbrt": Singularity("a root", test="{x} != 0", limit="0"),
    "div": Singularity("a division", 1, "{x} != 0"),
    "pow": Singularity("a power", limit="0"),
    "integer_pow": Singularity("a reciprocal", test="{x} != 0"),
    "asin": Singularity("arcsin", test=_INSIDE, safe="0", limit="jnp.sign({x}) * jnp.pi / 2"),
    "acos": Singularity("arccos", test=_INSIDE, safe="0", limit="jnp.where({x} > 0, 0, jnp.pi)"),
    "atanh": Singularity("arctanh", test=_INSIDE, safe="0"),
    "acosh": Singularity("arccosh", test="{x} > 1", safe="2", limit="0"),
    "atan2": Singularity("arctan2", 1, "({y} != 0) | ({x} != 0)", is_kept=True),
    "erf_inv": Singularity("erfinv", test=_INSIDE, safe="0"),
    "lgamma": Singularity("gammaln"),
    "digamma": Singularity("digamma"),
    "exp": Singularity("exp", **_OVERFLOW),
    "exp2": Singularity("exp2", **_OVERFLOW),
    "expm1": Singularity("expm1", **_OVERFLOW),
    "sinh": Singularity("sinh", **_OVERFLOW),
    "cosh": Singularity("cosh", **_OVERFLOW),
}
INFINITE = "an infinite factor"
_NEVER = "False"  # such a derivative is infinite whatever the operand is: no other operand helps
_TESTS: dict[str, Callable[[Any, Any], Any]] = {
    _NEVER: lambda x, _: jnp.zeros_like(x, bool),
    "{x} > 0": lambda x, _: x > 0,
    "{x} > -1": lambda x, _: x > -1,
    "{x} > 1": lambda x, _: x > 1,
    "{x} != 0": lambda x, _: x != 0,
    _INSIDE: lambda x, _: abs(x) < 1,
    "({y} != 0) | ({x} != 0)": lambda x, y: (y != 0) | (x != 0),
}
_LIMITS: dict[str, Callable[[Any], Any]] = {
    "0": jnp.zeros_like,
    "jnp.sign({x}) * jnp.pi / 2": lambda x: jnp.sign(x) * jnp.pi / 2,
    "jnp.where({x} > 0, 0, jnp.pi)": lambda x: jnp.where(x > 0, 0, jnp.pi),
}
# At the value 0 of a sum of squares the root's derivative is infinite, and that of the squares 0: the product is NaN.
ENDS = ("sqrt", "pow", "acos", "asin", "atan2", "cbrt", "acosh")


def _is_infinite(equation: Equation, i: int, operand: Any) -> bool:
    """Whether an operand is a factor that is infinite: `x * inf`, or `x / 0`."""
    if not is_literal(operand) or np.ndim(operand.val) or np.asarray(operand.val).dtype.kind != "f":
        return False
    return not operand.val if equation.op == "div" and i == 1 else equation.op == "mul" and bool(np.isinf(operand.val))


def singularity(equation: Equation) -> Singularity | None:
    """Where an equation has no finite derivative; None if it has one everywhere."""
    where = SINGULAR.get(equation.op)
    if equation.op in ("mul", "div"):
        infinite = next((i for i, operand in enumerate(equation.inputs) if _is_infinite(equation, i, operand)), None)
        if infinite is not None:
            return Singularity(INFINITE, 1 - infinite, _NEVER)
    if equation.op == "integer_pow" and equation.params["y"] >= 0:
        return None
    if equation.op == "pow" and is_literal(equation.inputs[1]):
        exponent = float(equation.inputs[1].val)
        if exponent >= 1 or exponent == 0:
            return None
    return where
