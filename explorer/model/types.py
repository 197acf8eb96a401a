"""What a type's text says, in any stage's notation: `f32[8,128]{1,0}`, `tensor<8x128xf32>`, tuples of them."""

from __future__ import annotations

import math
import re
from functools import lru_cache

__all__ = ["Array", "arrays", "bytes_of", "elements", "sort_flops"]

Array = tuple[str, tuple[str, ...]]
"""A dtype, and dimensions as written: `("f32", ("8", "128"))`; a dynamic one has its `<=`, a symbolic one its name."""

# An array of a jaxpr or HLO, or a tensor of MLIR. An element type of MLIR may hold brackets of its own: complex<f32>.
_ARRAY = re.compile(r"([a-zA-Z]\w*)\[([^\]]*)\]|tensor<((?:(?:\d+|\?)x)*)([^<>,]*(?:<[^<>]*>)?)")
_BITS = {"pred": 8, "bool": 8, "i1": 8, "token": 0, "index": 64}
_SIZE = re.compile(r"[a-z]+(\d+)")
_COMPLEX = re.compile(r"complex<f(\d+)>")


@lru_cache(maxsize=4096)
def arrays(type_: str) -> tuple[Array, ...]:
    """The arrays in a type, in order."""
    found: list[Array] = []
    for name, dims, tensor_dims, tensor in _ARRAY.findall(type_):
        if name:
            found.append((name, tuple(d.strip() for d in dims.split(",") if d.strip())))
        else:
            found.append((tensor, tuple(tensor_dims.split("x")[:-1])))
    return tuple(found)


@lru_cache(maxsize=4096)
def elements(type_: str) -> int:
    """How many elements the first array of a type has: layouts and transposes keep that. 1 where there is none."""
    for _, dims in arrays(type_)[:1]:
        return math.prod(map(_bound, dims))
    return 1


@lru_cache(maxsize=4096)
def bytes_of(type_: str) -> int:
    """Bytes of all arrays in a type; a dimension without a number counts as 1, a bounded one as its bound."""
    return math.ceil(sum(_bits(dtype) * math.prod(map(_bound, dims)) for dtype, dims in arrays(type_)) / 8)


def sort_flops(size: float) -> float:
    """Comparisons to sort so many elements, as XLA's HloCostAnalysis counts them."""
    return size * math.ceil(math.log2(max(size, 1)))


def _bound(dim: str) -> int:
    digits = dim.removeprefix("<=")
    return int(digits) if digits.isdecimal() else 1


def _bits(dtype: str) -> int:
    if dtype in _BITS:
        return _BITS[dtype]
    if complex_ := _COMPLEX.match(dtype):
        return 2 * int(complex_[1])
    size = _SIZE.match(dtype)
    return int(size[1]) if size else 0
