"""What a symbolic dimension is made of: `2*b*s - floordiv(s, 2)` as plain data."""

from __future__ import annotations

from typing import Any, NamedTuple


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


def _factor(factor: Any, exponent: int) -> Factor:
    return Factor(factor.var, factor.operation, tuple(map(read_dimension, factor.operands)), int(exponent))
