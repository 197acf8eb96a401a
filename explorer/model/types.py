"""Parser of types in each stage's notation: `f32[8,128]{1,0:T(8,128)}`, `tensor<8x128xf32>`, tuples of them.

A graph has few distinct types, and each is parsed once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from explorer.errors import UnreadableTextError
from explorer.model.declared import cached_property
from explorer.model.text import cut_middle

# An array of a jaxpr or HLO, or a tensor of MLIR, or a parenthesis of a tuple. Element types may hold brackets of their
# own: `key<fry>` in a jaxpr, `complex<f32>` in MLIR.
_PART = re.compile(
    r"([a-zA-Z]\w{0,40}(?:<\w+>)?)\[([^\[\]]*)\](\{[^{}]*\})?|tensor<((?:(?:\d+|\?)x)*)([^<>,]*(?:<[^<>]*>)?)|\(|\)"
)
_OUTER_COMMA = re.compile(r",(?![^()]*\))")  # `f32[32@(data,model),512]` has two dimensions
_BITS = {"pred": 8, "bool": 8, "i1": 8, "token": 0, "index": 64}
_SIZE = re.compile(r"[a-z]+(\d{1,4})")
_COMPLEX = re.compile(r"complex<f(\d{1,4})>")
_PACKED = re.compile(r"E\((\d{1,4})\)")
_SPACE = re.compile(r"S\((\d{1,9})\)")
_TILE = re.compile(r"\(([\d,*]+)\)")
_LONGEST = 2_000  # characters of the type of one array
_TILING = re.compile(r":((?:T|\([\d,*]*\))[T\d,*()]*)")


@dataclass(frozen=True)
class ArrayType:
    """One array of a type.

    Args:
        dtype: Printed dtype, `f32`.
        dims: Printed dimensions. A dynamic dimension includes `<=`, a symbolic one is a name, and one split
            over devices has the mesh axes: `32@data`.
        layout: HLO layout with braces: `{1,0:T(8,128)S(1)}`; empty without a layout.
    """

    dtype: str
    dims: tuple[str, ...]
    layout: str = ""

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of the dimensions that are numbers; a dynamic dimension has its bound."""
        bounds = (dim.removeprefix("<=").partition("@")[0] for dim in self.dims)
        return tuple(int(bound) for bound in bounds if bound.isdecimal())

    @cached_property
    def elements(self) -> int:
        """Return the number of elements; a dimension without a number counts as 1."""
        return math.prod(self.shape)

    @cached_property
    def bits(self) -> int:
        """Return the bits of one element; 0 for types without a size, such as a token."""
        if self.dtype in _BITS:
            return _BITS[self.dtype]
        if complex_ := _COMPLEX.match(self.dtype):
            return 2 * int(complex_[1])
        size = _SIZE.match(self.dtype)
        return int(size[1]) if size else 0

    @cached_property
    def size_in_bits(self) -> int:
        """Return the bits of all elements, without padding."""
        return self.bits * self.elements

    @cached_property
    def allocated(self) -> int:
        """Return the bytes in memory; an element of less than a byte takes one byte, unless the layout packs elements.

        Tiles are padded: a TPU's `f32[32,8]{1,0:T(8,128)}` takes as much as `f32[32,128]`.
        """
        elements = self._tiled_elements if self.tiling else self.elements
        packed = _PACKED.search(self.layout)
        if packed:
            return -(-elements * int(packed[1]) // 8)
        # Elements of fewer than 8 bits take a byte each, unless the layout packs them.
        return elements * (max(self.bits // 8, 1) if self.bits else 0)

    @cached_property
    def _tiled_elements(self) -> int:
        """Return the number of elements that the layout's tiles hold, with padding; `elements` for a damaged layout.

        A tile covers the most minor dimensions, and the remaining sizes count tiles. The next tile applies to the
        result of the previous one (openxla/xla: `docs/tiled_layout.md`).
        """
        if sorted(self.minor_to_major) != [*range(len(self.shape))]:  # damaged, or a dimension without a number
            return self.elements
        room = [self.shape[dim] for dim in reversed(self.minor_to_major)]
        for tile in _TILE.findall(self.tiling):
            sides = [0 if side == "*" else int(side) for side in tile.split(",") if side]
            room = [1] * (len(sides) - len(room)) + room
            first = len(room) - len(sides)
            for at, side in enumerate(sides, first):
                if side:
                    room[at] = -(-room[at] // side)
                elif at + 1 < len(room):  # `*`: this dimension and the next are one
                    room[at + 1], room[at] = room[at] * room[at + 1], 1
            room += [side for side in sides if side]
        return math.prod(room)

    @cached_property
    def memory_space(self) -> int:
        """Return the number of the memory space; 0 is the device's main memory."""
        space = _SPACE.search(self.layout)
        return int(space[1]) if space else 0

    @cached_property
    def minor_to_major(self) -> tuple[int, ...]:
        """Return the dimensions from most minor to most major; empty without a layout."""
        order = self.layout.strip("{}").partition(":")[0]
        return tuple(int(dim) for dim in order.split(",") if dim.strip().isdecimal())

    @cached_property
    def stored(self) -> tuple[object, ...]:
        """Return the key that arrays with equal storage share; no layout means the default layout.

        Tiles are used by TPUs, whose compiler compares the physical order of dimensions, not their names.
        """
        order = self.minor_to_major or tuple(reversed(range(len(self.dims))))
        if self.tiling and sorted(order) == [*range(len(self.dims))]:
            return self.dtype, tuple(self.dims[dim] for dim in order), self.tiling, self.memory_space, self.allocated
        return self.dtype, self.dims, order, self.tiling, self.memory_space, self.allocated

    def is_stored_as(self, other: ArrayType) -> bool:
        """Return True if both arrays have one storage, so that one may be written in place of the other."""
        return self is other or self.stored == other.stored

    @cached_property
    def tiling(self) -> str:
        """Return the tiles of the layout, `T(8,128)(2,1)`; empty without tiles."""
        tiling = _TILING.search(self.layout)
        return tiling[1] if tiling else ""

    def __str__(self) -> str:
        """Return the type without its layout: `f32[8,128]`."""
        return f"{self.dtype}[{','.join(self.dims)}]"


@dataclass(frozen=True)
class Type:
    """Arrays of a type; those of a tuple in order, with nested tuples flattened.

    Args:
        arrays: Array types, in the order of the text.
        starts: Index of the first array of each element of the outermost tuple; one entry for a type without tuples.
    """

    arrays: tuple[ArrayType, ...]
    starts: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.arrays)

    def element(self, index: int) -> slice:
        """Return the slice of `arrays` that is element `index` of the tuple; an empty slice without such an element."""
        if not 0 <= index < len(self.starts):
            return slice(0, 0)
        return slice(self.starts[index], self.starts[index + 1] if index + 1 < len(self.starts) else len(self.arrays))

    @cached_property
    def elements(self) -> int:
        """Return the number of elements of the first array, which layouts and transposes keep; 1 without an array."""
        return self.arrays[0].elements if self.arrays else 1

    @cached_property
    def bytes(self) -> int:
        """Return the bytes of all arrays, without padding."""
        return -(-sum(array.size_in_bits for array in self.arrays) // 8)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Return the bytes that each array takes in memory, with padding."""
        return tuple(array.allocated for array in self.arrays)

    @cached_property
    def spaces(self) -> tuple[int, ...]:
        """Return the memory space of each array."""
        return tuple(array.memory_space for array in self.arrays)

    @cached_property
    def dtype(self) -> str:
        """Return the dtype of the largest array; empty without an array."""
        return max(self.arrays, key=lambda array: array.bits * array.elements).dtype if self.arrays else ""

    def __str__(self) -> str:
        """Return the type without layouts: `f32[8,128]`, `(f32[8], s32[])`."""
        is_array = len(self.arrays) == 1 == len(self.starts)
        return str(self.arrays[0]) if is_array else f"({', '.join(map(str, self.arrays))})"


@dataclass(frozen=True)
class TypeSizes:
    """Array sizes of each type, shape `[types]`.

    `elements` and `rank` belong to the type's first array; without an array they are 1 and NaN. `bytes` counts all
    arrays.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> graph = explorer.explore(lambda x: jnp.sin(x).sum(), jnp.ones((4, 8))).jaxpr.graph
        >>> dict(zip(graph.types, graph.sizes.bytes.tolist()))
        {'f32[4,8]': 128.0, 'f32[]': 4.0}
    """

    elements: NDArray[np.float64]
    rank: NDArray[np.float64]
    bytes: NDArray[np.float64]


@lru_cache(maxsize=1 << 16)
def parse_type(text: str) -> Type:
    """Parse the text of a type.

    Raises:
        UnreadableTextError: An array has more elements than any compiler can count, or hundreds of dimensions.
    """
    arrays: list[ArrayType] = []
    starts: list[int] = []
    depth = 0
    for part in _PART.finditer(text):
        opens, closes = part[0] == "(", part[0] == ")"
        depth -= closes
        # Only elements of the outermost tuple start one; deeper parts belong to theirs.
        if depth <= 1 and not closes and (depth or not opens):
            starts.append(len(arrays))
        depth += opens
        if part[1]:
            arrays.append(_array(part[1], part[2], ",", part[3] or ""))
        elif part[5] is not None:
            arrays.append(_array(part[5], part[4], "x", ""))
    return Type(tuple(arrays), tuple(starts))


@lru_cache(maxsize=1 << 16)
def _array(dtype: str, dims: str, divider: str, layout: str) -> ArrayType:
    """Return the cached array type of these printed parts, so that equal arrays are one object.

    A module has few kinds of arrays, and nested tuples repeat them.

    Raises:
        UnreadableTextError: The array has more elements or bytes than an int64 can count, or its text is too long.
    """
    if len(dtype) + len(dims) + len(layout) <= _LONGEST:
        parts = _OUTER_COMMA.split(dims) if divider == "," and "(" in dims else dims.split(divider)
        array = ArrayType(dtype, tuple(dim.strip() for dim in parts if dim.strip()), layout)
        if max(array.elements, array.allocated) < 1 << 63:
            return array
    written = cut_middle(f"{dtype[:_LONGEST]}[{dims[:_LONGEST]}]{layout[:_LONGEST]}")
    raise UnreadableTextError(f"no array can be as large as this type: {written}.")


def measure_types(types: Sequence[str]) -> TypeSizes:
    """Return elements, rank and bytes of each type, as columns."""
    parsed = [parse_type(text) for text in types]
    ranks = [len(type_.arrays[0].dims) if type_.arrays else np.nan for type_ in parsed]
    return TypeSizes(
        np.asarray([type_.elements for type_ in parsed], np.float64),
        np.asarray(ranks, np.float64),
        np.asarray([type_.bytes for type_ in parsed], np.float64),
    )


def elements(text: str) -> int:
    """Return the number of elements of a type's first array; 1 without an array."""
    return parse_type(text).elements


def bytes_of(text: str) -> int:
    """Return the bytes of all arrays in a type, without padding.

    A dimension without a number counts as 1, a bounded one as its bound.
    """
    return parse_type(text).bytes


def sort_flops(elements: float, length: float) -> float:
    """Return the comparisons needed to sort `elements` numbers in sequences of `length`; NaN if not finite.

    Each element counts the rounded-up binary logarithm of `length`. XLA's HloCostAnalysis uses the logarithm of all
    elements, even if each row is sorted separately.
    """
    return elements * math.ceil(math.log2(max(length, 1))) if math.isfinite(length) else math.nan
