"""The arrays in an HLO type, and what they weigh."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod

__all__ = ["Shape", "read_shape"]

_PART = re.compile(r"\(|\)|([a-z]\w*)\[([^\]]*)\](\{[^}]*\})?")
_BITS = re.compile(r"[a-z]+(\d+)")
_PACKED = re.compile(r"E\((\d+)\)")
_SPACE = re.compile(r"S\((\d+)\)")
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True)
class Shape:
    """The arrays of a type, a tuple's in order, nested ones flat.

    Args:
        sizes: Bytes of each array.
        spaces: Memory space of each array; 0 is the device's own.
        arrays: Each array's own type, without its layout: `f32[8,128]`.
        elements: For each element of the outermost tuple, where its arrays start; one element for an array.
    """

    sizes: tuple[int, ...]
    spaces: tuple[int, ...]
    arrays: tuple[str, ...]
    elements: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.sizes)

    def element(self, index: int) -> slice:
        """Which arrays are an element's; none for an index that leads out of the type."""
        if not 0 <= index < len(self.elements):
            return slice(0, 0)
        return slice(self.elements[index], self._ends[index])

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return (*self.elements[1:], len(self.sizes))


def read_shape(text: str) -> Shape:
    """The shape that a type's text tells of; what is no array, a token, weighs nothing."""
    sizes: list[int] = []
    spaces: list[int] = []
    arrays: list[str] = []
    elements: list[int] = []
    depth = 0
    for part in _PART.finditer(text):
        opens, closes = part[0] == "(", part[0] == ")"
        depth -= closes
        if depth <= 1 and not closes and (depth or not opens):
            elements.append(len(sizes))
        depth += opens
        if part[1]:
            space = _SPACE.search(part[3] or "")
            sizes.append(_bytes(part[1], part[2], part[3] or ""))
            spaces.append(int(space[1]) if space else 0)
            arrays.append(f"{part[1]}[{part[2]}]")
    return Shape(tuple(sizes), tuple(spaces), tuple(arrays), tuple(elements))


def _bytes(dtype: str, dims: str, layout: str) -> int:
    count = prod(map(int, _DIGITS.findall(dims)))
    packed = _PACKED.search(layout)
    if packed:
        return -(-count * int(packed[1]) // 8)
    bits = _BITS.match(dtype)
    if bits:
        return count * max(int(bits[1]) // 8, 1)  # less than a byte takes one, unless the layout says otherwise
    return count if dtype == "pred" else 0
