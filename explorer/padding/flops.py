"""How much a program computes at given sizes, counted from its equations."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from explorer._jax import inner_jaxprs
from explorer.padding.sizes import Sizes


def count_flops(closed: Any, sizes: Mapping[str, int]) -> float:
    """Multiplications and additions of products, and one for each element of any other result.

    A scan counts as often as it is long, another loop once, of a branch the longest: it is for comparing the same
    program at two sizes.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> count_flops(jax.make_jaxpr(lambda x: x @ x + 1)(jnp.ones((8, 8))), {})
        1088.0
    """
    at = Sizes(sizes, {})
    return float(sum(_flops(equation, at, sizes) for equation in getattr(closed, "jaxpr", closed).eqns))


def _flops(equation: Any, at: Sizes, sizes: Mapping[str, int]) -> float:
    inner = [count_flops(jaxpr, sizes) for _, jaxpr in inner_jaxprs(equation.params)]
    name = equation.primitive.name
    if inner:
        times = at.bucket(equation.params["length"]) if name == "scan" else 1
        return times * (max(inner) if name == "cond" else sum(inner))
    elements = sum(prod(at.shape(v.aval.shape)) for v in equation.outvars if hasattr(v.aval, "shape"))
    return elements * _per_element(equation, at)


def _shape(variable: Any, at: Sizes) -> tuple[int, ...]:
    return at.shape(variable.aval.shape)


def _per_element(equation: Any, at: Sizes) -> float:
    if equation.primitive.name == "dot_general":
        (contracted, _), _ = equation.params["dimension_numbers"]
        shape = _shape(equation.invars[0], at)
        return 2.0 * prod(map(shape.__getitem__, contracted))
    if equation.primitive.name == "conv_general_dilated":
        kernel = equation.params["dimension_numbers"].rhs_spec
        shape = _shape(equation.invars[1], at)
        return 2.0 * prod(map(shape.__getitem__, kernel[1:]))
    return 1.0
