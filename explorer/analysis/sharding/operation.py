"""One instruction, as the rules of sharding look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.model.shardings import Axes, DeviceMesh
from explorer.model.types import ArrayType, Type

Dims = tuple[Axes, ...] | None
"""For each dimension the axes that split it; None where that isn't known."""


@dataclass(frozen=True)
class Operation:
    """One instruction, as the rules look at it.

    Args:
        op: Its opcode.
        type: Of its result.
        operands: The types of its operands.
        attributes: As printed.
        mesh: Of the program.
    """

    op: str
    type: Type
    operands: Sequence[Type]
    attributes: Mapping[str, str]
    mesh: DeviceMesh

    def numbers(self, key: str) -> tuple[int, ...]:
        """The numbers of an attribute: `dimensions={0,2}`."""
        return tuple(int(part) for part in self.attributes.get(key, "").strip("{}").split(",") if part.strip())

    @property
    def array(self) -> ArrayType:
        return self.type.arrays[0]

    def operand(self, at: int) -> ArrayType:
        return self.operands[at].arrays[0]


def known_dims(dims: Dims, axes: int) -> Dims:
    """Without what a value doesn't differ along: an index that is the same everywhere."""
    return None if dims is None else tuple(tuple(axis for axis in split if axes >> axis & 1) for split in dims)
