"""What NVIDIA's assembler gave each kernel: registers, and a stack for those that it had to spill.

It is in the sections `.nv.info` of what it wrote, records that LLVM calls `EIATTR_*` and NVIDIA doesn't describe:
`REGCOUNT`, `FRAME_SIZE`, `MIN_STACK_SIZE` each have a symbol and a number.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from explorer.capture.machine.elf import CUDA, MAGIC, ElfError, machine_of, sections, symbols

_SIZED = 4  # a record whose size is in its head; others have their value there
_FRAME, _STACK, _REGISTERS = 0x11, 0x12, 0x2F


@dataclass(frozen=True)
class Resources:
    """What a thread of a kernel has: registers, and bytes of stack."""

    registers: int
    stack: int


def resources(executable: bytes) -> Mapping[str, Resources]:
    """By symbol, of all the cubins in an executable; empty where none is found, or none can be read."""
    of: dict[str, Resources] = {}
    start = executable.find(MAGIC)
    while start >= 0:
        if machine_of(executable[start : start + 64]) == CUDA:
            with suppress(ElfError, struct.error, IndexError):  # of a later kind, or in pieces: then they are not known
                of |= _of_cubin(executable[start:])
        start = executable.find(MAGIC, start + 1)
    return of


def _of_cubin(data: bytes) -> Mapping[str, Resources]:
    parts = sections(data)
    names = [symbol.name for symbol in symbols(parts)]
    table = {
        (attribute, names[symbol]): value
        for part in parts
        if part.name == ".nv.info"
        for attribute, symbol, value in _records(part.data)
    }
    return {
        name: Resources(value, max(table.get((which, name), 0) for which in (_FRAME, _STACK)))
        for (attribute, name), value in table.items()
        if attribute == _REGISTERS
    }


def _records(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Attribute, symbol and value of each record that has both."""
    at = 0
    while at + 4 <= len(data):
        kind, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind != _SIZED:
            continue
        if size == 8:
            yield attribute, *struct.unpack_from("<II", data, at)
        at += size
