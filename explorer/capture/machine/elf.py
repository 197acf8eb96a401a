"""ELF: the sections and symbols of an object file, which is what a CPU's and a GPU's assembler write.

The layout is that of the System V ABI, "Object Files"; of the 64-bit, little-endian kind, which all of these are.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAGIC = b"\x7fELF"
X86_64, AARCH64, CUDA = 62, 183, 190  # e_machine
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8  # sh_type
_FUNCTION = 2  # of st_info


@dataclass(frozen=True)
class Section:
    """One section: its name, type, content, and the two fields that lead to others."""

    name: str
    kind: int
    data: bytes
    link: int
    info: int


@dataclass(frozen=True)
class Symbol:
    """One symbol: its name, the index of its section, and where in it."""

    name: str
    is_function: bool
    section: int
    start: int
    size: int


class ElfError(ValueError):
    """The bytes are no ELF file of this kind."""


def machine_of(data: bytes) -> int:
    """Which machine it is for; 0 for what is no ELF file."""
    return struct.unpack_from("<H", data, 18)[0] if data[:4] == MAGIC and len(data) >= 64 else 0


def sections(data: bytes) -> Sequence[Section]:
    """All sections.

    Raises:
        ElfError: It is no such file, or truncated.
    """
    try:
        offset = struct.unpack_from("<Q", data, 40)[0]
        size, count, names_at = struct.unpack_from("<HHH", data, 58)
        heads = [struct.unpack_from("<IIQQQQIIQQ", data, offset + size * at) for at in range(count)]
        contents = [b"" if head[1] == _NO_BITS else data[head[4] : head[4] + head[5]] for head in heads]
        return [
            Section(_text(contents[names_at], head[0]), head[1], content, head[6], head[7])
            for head, content in zip(heads, contents, strict=True)
        ]
    except (struct.error, IndexError, ValueError) as error:
        raise ElfError(str(error)) from error


def symbols(parts: Sequence[Section]) -> Sequence[Symbol]:
    """All symbols, in the order that relocations and attributes count them by."""
    table = next((part for part in parts if part.kind == _SYMBOLS), None)
    if table is None:
        return ()
    names = parts[table.link].data
    rows = struct.iter_unpack("<IBBHQQ", table.data)
    return [
        Symbol(_text(names, name), info & 15 == _FUNCTION, at, start, size) for name, info, _, at, start, size in rows
    ]


def relocations(parts: Sequence[Section], section: int) -> Iterator[tuple[int, str]]:
    """Where in a section another symbol's address is put in, and that symbol's name."""
    names = symbols(parts)
    for part in parts:
        if part.kind == _RELOCATIONS and part.info == section:
            for offset, info, _ in struct.iter_unpack("<QQq", part.data):
                yield offset, names[info >> 32].name


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")
