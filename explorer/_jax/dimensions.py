"""What a symbolic dimension is made of: `2*b*s - floordiv(s, 2)` as plain data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jax import export
from jax.errors import InconclusiveDimensionOperation


class Factor(NamedTuple):
    """A symbol, or an operation of other dimensions: `floordiv`, `mod`, `max`, `min`."""

    symbol: str | None
    operation: str | None
    operands: tuple[Polynomial, ...]
    exponent: int


class Term(NamedTuple):
    """An integer times a product of factors."""

    coefficient: int
    factors: tuple[Factor, ...]


Polynomial = tuple[Term, ...]


def read_dimension(dimension: Any) -> Polynomial:
    """The sum of terms that a dimension is; there is no public way to ask for it.

    Raises:
        AttributeError: This JAX keeps its dimensions otherwise.
    """
    if isinstance(dimension, int):
        return (Term(dimension, ()),)
    return tuple(
        Term(int(coefficient), tuple(_factor(factor, exponent) for factor, exponent in term._factors))
        for term, coefficient in dimension._sorted_terms
    )


def bounds_of(dimension: Any) -> tuple[int, int | None]:
    """The smallest size that a symbolic dimension is known to have, and the largest; None if that isn't known."""
    least = _last(0, _FAR, lambda size: dimension >= size)
    if not _is_surely(lambda: dimension <= _FAR):
        return least, None
    return least, -_last(-_FAR, -least + 1, lambda size: dimension <= -size)


def is_at_least(dimension: Any, number: int) -> bool:
    """True if a size is surely no smaller than a number."""
    return _is_surely(lambda: dimension >= number)


def size_where(dimension: Any, equal_to: Any) -> tuple[str, int] | None:
    """The symbol and the one size of it at which a dimension equals a number; None if more than that decides.

    Example:
        >>> size_where(*export.symbolic_shape("2*b - 1"), 5)
        ('b', 3)
    """
    if not isinstance(equal_to, int | float) or not export.is_symbolic_dim(dimension):
        return None
    polynomial = read_dimension(dimension)
    varying = [term for term in polynomial if term.factors]
    constant = sum(term.coefficient for term in polynomial if not term.factors)
    if len(varying) != 1 or len(varying[0].factors) != 1:
        return None
    factor = varying[0].factors[0]
    size, rest = divmod(equal_to - constant, varying[0].coefficient)
    if factor.symbol is None or factor.exponent != 1 or rest:
        return None
    return factor.symbol, int(size)


_FAR = 2**31


def _last(holds: int, fails: int, test: Callable[[int], Any]) -> int:
    """The last number for which a test holds, between one for which it does and one for which it doesn't."""
    while fails - holds > 1:
        middle = (holds + fails) // 2
        holds, fails = (middle, fails) if _is_surely(partial(test, middle)) else (holds, middle)
    return holds


def _is_surely(test: Callable[[], Any]) -> bool:
    try:
        return bool(test())
    except InconclusiveDimensionOperation:
        return False


def _factor(factor: Any, exponent: int) -> Factor:
    return Factor(factor.var, factor.operation, tuple(map(read_dimension, factor.operands)), int(exponent))
