"""Sizes of dimensions: the bucket's, which are numbers, and the true ones, which the program gets when it runs."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from typing import Any, cast

import jax.numpy as jnp
import numpy as np
from jax import export, lax

from explorer._jax.symbolic import Factor, Polynomial, read_dimension


class Refused(Exception):
    """Error: an equation can't be computed exactly on padded values."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


# The sizes of an axis's factors, the outermost first: one for a plain axis, several for merged axes.
Factors = tuple[Any, ...]

_MAX_INT32 = 2**31 - 1
_MAX_TRIED = 4_000_000  # sizes evaluated to find the largest, in 0.1 s


is_symbolic: Callable[[Any], bool] = export.is_symbolic_dim


class Sizes:
    """Sizes of one bucket and of one call.

    Args:
        bucket: Largest size of each named dimension.
        true: Sizes of the call, int32 scalars.
    """

    def __init__(self, bucket: Mapping[str, int], true: Mapping[str, Any]) -> None:
        self._bucket = dict(bucket)
        self._true = dict(true)
        self._largest: dict[Any, int] = {}
        self._scalars: dict[Any, Any] = {}
        self._masks: dict[Factors, Any] = {}

    def inner(self) -> Sizes:
        """Return the same sizes for a loop or branch, whose masks must not leave its trace."""
        return Sizes(self._bucket, self._true)

    def bucket(self, size: Any) -> int:
        """Return the largest value of a size in the bucket.

        Raises:
            Refused: The value can't be computed, or exceeds int32, the type of indices.
        """
        if not is_symbolic(size):
            return int(size)
        if size not in self._largest:
            self._largest[size] = self._largest_of(size)
        number = int(self._largest[size])
        if number > _MAX_INT32:
            raise Refused(
                f"the size `{size}` is {number} in the bucket, more than an int32 counts", "use smaller buckets"
            )
        return number

    def _largest_of(self, size: Any) -> int:
        polynomial = read_dimension(size)
        if grows(size):
            return max(0, evaluate(polynomial, self._bucket, _HOST))
        symbols = sorted(symbols_of(polynomial))
        lengths = [self._bucket[symbol] for symbol in symbols]
        if math.prod(lengths) > _MAX_TRIED:
            raise Refused(
                f"the largest `{size}` of a bucket can't be found: it depends on too many sizes",
                "declare it as a dimension of its own",
            )
        grid = np.meshgrid(*(np.arange(1, length + 1) for length in lengths), indexing="ij")
        return max(0, int(np.max(evaluate(polynomial, dict(zip(symbols, grid, strict=True)), _HOST))))

    def shape(self, shape: Sequence[Any]) -> tuple[int, ...]:
        return tuple(map(self.bucket, shape))

    def true(self, size: Any) -> Any:
        if not is_symbolic(size):
            return int(size)
        if size not in self._scalars:
            self._scalars[size] = evaluate(read_dimension(size), self._true, _DEVICE)
        return self._scalars[size]

    def mask(self, factors: Factors) -> Any:
        if factors not in self._masks:
            mask: Any = None
            for factor in factors:
                length = self.bucket(factor)
                one = lax.lt(lax.iota(jnp.int32, length), jnp.int32(self.true(factor)))
                mask = one if mask is None else lax.bitwise_and(mask[:, None], one[None, :]).reshape(-1)
            self._masks[factors] = mask
        return self._masks[factors]

    def digits(self, index: Any, factors: Factors, size: Callable[[Any], Any]) -> list[Any]:
        """Return an index on an axis as one index per factor, outermost first; `size` returns a factor's length."""
        digits: list[Any] = []
        for factor in reversed(factors[1:]):
            length = jnp.asarray(size(factor), index.dtype)
            digits.append(lax.rem(index, length))
            index = lax.div(index, length)
        return [index, *reversed(digits)]

    def number(self, digits: Sequence[Any], factors: Factors, size: Callable[[Any], Any]) -> Any:
        return reduce(lambda index, pair: index * size(pair[1]) + pair[0], zip(digits, factors, strict=True), 0)

    def positions(self, new: Factors, old: Factors) -> Any:
        """Return, for each position of an axis in a new layout, the position of the same element in an old layout.

        Raises:
            Refused: There are more elements than int32 counts.
        """
        length = math.prod(map(self.bucket, new))
        if length > _MAX_INT32:
            raise Refused("more elements are moved than an int32 counts", "use smaller buckets")
        index = self.number(self.digits(lax.iota(jnp.int32, length), new, self.bucket), new, self.true)
        return self.number(self.digits(index, old, self.true), old, self.bucket)


def evaluate(polynomial: Polynomial, sizes: Mapping[str, Any], operations: Mapping[str, Callable[..., Any]]) -> Any:
    """Return a dimension's value at given sizes, numbers or traced.

    Raises:
        KeyError: It depends on a dimension without a size.
    """

    def factor(factor: Factor) -> Any:
        if factor.symbol is not None:
            value = sizes[factor.symbol]
        else:
            value = operations[str(factor.operation)](*(evaluate(op, sizes, operations) for op in factor.operands))
        return reduce(operator.mul, [value] * factor.exponent)

    return sum(reduce(operator.mul, map(factor, term.factors), term.coefficient) for term in polynomial)


_HOST: dict[str, Callable[..., Any]] = {
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "max": np.maximum,
    "min": np.minimum,
}


# Sizes are int32 scalars, and Python's numbers take their type.
_DEVICE: dict[str, Callable[..., Any]] = {
    "floordiv": jnp.floor_divide,
    "mod": jnp.remainder,
    "max": jnp.maximum,
    "min": jnp.minimum,
}


def symbols_of(polynomial: Polynomial) -> set[str]:
    symbols: set[str] = set()
    for term in polynomial:
        for factor in term.factors:
            symbols.update({factor.symbol} if factor.symbol is not None else set())
            symbols.update(*map(symbols_of, factor.operands))
    return symbols


# Growth -----------------------------------------------------------------------------------------------------------

Interval = tuple[float, float]  # both ends included


@cache
def grows(size: Any) -> bool:
    """Return True if a size never shrinks while a named dimension grows, so that valid elements fit in the bucket.

    Interval arithmetic bounds the gain of one step of each symbol; False may be wrong, True never is.
    """
    if not is_symbolic(size):
        return True
    polynomial = read_dimension(size)
    return all(_step(polynomial, symbol)[0] >= 0 for symbol in symbols_of(polynomial))


def _add(one: Interval, other: Interval) -> Interval:
    return one[0] + other[0], one[1] + other[1]


def _multiply(one: Interval, other: Interval) -> Interval:
    products = [
        0.0 if 0 in (a, b) else a * b for a in one for b in other
    ]  # 0 · inf is 0: the infinite end is never reached
    return min(products), max(products)


def _range(polynomial: Polynomial) -> Interval:
    total: Interval = (0, 0)
    for term in polynomial:
        total = _add(total, reduce(_multiply, map(_factor_range, term.factors), (term.coefficient, term.coefficient)))
    return total


def _factor_range(factor: Factor) -> Interval:
    if factor.symbol is not None:
        return 1, math.inf
    operands = [_range(operand) for operand in factor.operands]
    return reduce(_multiply, [_OF_RANGES[str(factor.operation)](*operands)] * factor.exponent)


def _step(polynomial: Polynomial, symbol: str) -> Interval:
    """Return the interval of a dimension's gain when one symbol grows by 1."""
    total: Interval = (0, 0)
    for term in polynomial:
        step: Interval = (0, 0)
        value: Interval = (term.coefficient, term.coefficient)
        for factor in term.factors:
            for _ in range(factor.exponent):
                # f(n+1)·g(n+1) - f(n)·g(n) = Δf·g(n+1) + f(n)·Δg
                base = Factor(factor.symbol, factor.operation, factor.operands, 1)
                gain = _factor_step(base, symbol)
                step = _add(_multiply(step, _add(_factor_range(base), gain)), _multiply(value, gain))
                value = _multiply(value, _factor_range(base))
        total = _add(total, step)
    return total


def _factor_step(factor: Factor, symbol: str) -> Interval:
    if factor.symbol is not None:
        return (1, 1) if factor.symbol == symbol else (0, 0)
    first, second = (_step(operand, symbol) for operand in factor.operands)
    if factor.operation in ("max", "min"):
        return min(first[0], second[0]), max(first[1], second[1])
    if first == second == (0, 0):
        return 0, 0
    low, high = _range(factor.operands[1])
    if factor.operation == "floordiv" and low == high > 0:
        return _floor(first[0] / low), -_floor(-first[1] / low)
    return -math.inf, math.inf


def _floor(end: float) -> float:
    return math.floor(end) if math.isfinite(end) else end


def _floordiv_range(value: Interval, divisor: Interval) -> Interval:
    low, high = divisor
    return (_floor(value[0] / low), _floor(value[1] / low)) if low == high > 0 else (-math.inf, math.inf)


_OF_RANGES: dict[str, Callable[[Interval, Interval], Interval]] = {
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "mod": lambda a, b: (0, b[1] - 1) if b[0] > 0 else (-math.inf, math.inf),
    "floordiv": _floordiv_range,
}


def at_bucket(params: Mapping[str, Any], sizes: Sizes) -> dict[str, Any]:
    """Return parameters with numbers for sizes; jaxprs stay symbolic, as the walk enters them."""
    return {key: _at_bucket(value, sizes) for key, value in params.items()}


def _at_bucket(value: Any, sizes: Sizes) -> Any:
    if is_symbolic(value):
        return sizes.bucket(value)
    if isinstance(value, (tuple, list)):
        held = cast(tuple[Any, ...], value)
        items = [_at_bucket(item, sizes) for item in held]
        return getattr(type(held), "_make", type(held))(items)  # a named tuple's own
    return value


def mentions_symbols(value: Any) -> bool:
    """Return True if a type, a parameter or a jaxpr contains a symbolic size at any depth."""
    if is_symbolic(value):
        return True
    if isinstance(value, Mapping):
        return any(map(mentions_symbols, cast(Mapping[str, Any], value).values()))
    if isinstance(value, (tuple, list)):
        return any(map(mentions_symbols, cast(tuple[Any, ...], value)))
    inner: Any = getattr(value, "jaxpr", value)
    if hasattr(inner, "eqns") and hasattr(inner, "invars"):
        return _jaxpr_mentions(inner)
    shape: Any = getattr(value, "shape", None)
    return isinstance(shape, tuple) and any(map(is_symbolic, cast(tuple[Any, ...], shape)))


def _jaxpr_mentions(jaxpr: Any) -> bool:
    variables = (v for part in (jaxpr, *jaxpr.eqns) for v in (*part.invars, *part.outvars))
    return any(mentions_symbols(v.aval) for v in variables) or any(mentions_symbols(e.params) for e in jaxpr.eqns)
