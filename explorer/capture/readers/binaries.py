"""Binaries that compilers write: object files of a CPU, cubins of NVIDIA's assembler, XLA's file of a GPU's executable.

ELF is laid out as in the System V ABI, "Object Files", here 64-bit and little-endian. capstone disassembles a CPU's
code, if it is installed. The resources of NVIDIA's kernels are in the sections `.nv.info`, records that LLVM calls
`EIATTR_*` and NVIDIA doesn't describe: `REGCOUNT`, `FRAME_SIZE`, `MIN_STACK_SIZE` each have a symbol and a number.
XLA's file has Riegeli records, packed with Snappy: see doc/riegeli_records_file_format.md of
https://github.com/google/riegeli and format_description.txt of https://github.com/google/snappy. No wheel has a reader
of the former; this one reads only what XLA writes.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from explorer._jax.profiling import varint

MAGIC = b"\x7fELF"
X86_64, AARCH64, CUDA = 62, 183, 190  # e_machine
_SYMBOLS, _RELOCATIONS, _NO_BITS = 2, 4, 8  # sh_type
_FUNCTION = 2  # of st_info


@dataclass(frozen=True)
class Section:
    name: str
    kind: int
    data: bytes
    link: int
    info: int


@dataclass(frozen=True)
class Symbol:
    name: str
    is_function: bool
    section: int
    start: int
    size: int


class ElfError(ValueError):
    """Error for bytes that are no ELF file of this kind."""


def machine_of(data: bytes) -> int:
    """Return the machine number of an ELF file; 0 for other bytes."""
    return struct.unpack_from("<H", data, 18)[0] if data[:4] == MAGIC and len(data) >= 64 else 0


def sections(data: bytes) -> Sequence[Section]:
    """Return all sections of an ELF file; raise ElfError for other bytes, or truncated ones."""
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
    """Return all symbols of an ELF file's sections, in the order by which relocations and attributes count them."""
    table = next((part for part in parts if part.kind == _SYMBOLS), None)
    if table is None:
        return ()
    names = parts[table.link].data
    rows = struct.iter_unpack("<IBBHQQ", table.data)
    return [
        Symbol(_text(names, name), info & 15 == _FUNCTION, at, start, size) for name, info, _, at, start, size in rows
    ]


def relocations(parts: Sequence[Section], section: int) -> Iterator[tuple[int, str]]:
    """Yield the offset of each place in a section where a symbol's address is inserted, and the symbol's name."""
    names = symbols(parts)
    for part in parts:
        if part.kind == _RELOCATIONS and part.info == section:
            for offset, info, _ in struct.iter_unpack("<QQq", part.data):
                # The lower half is the kind of relocation.
                yield offset, names[info >> 32].name


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode(errors="replace")


# Assembly of a CPU ----------------------------------------------------------------------------------------------------

Instruction = tuple[int, int, str, str]  # address, size, mnemonic, operands: what capstone's `disasm_lite` gives

_X86_WIDTHS = {"z": 512, "y": 256, "x": 128}
# Packed arithmetic: `vmulps`, `vfmadd231pd`, `vpaddd`; not moves, and not `vmulss`, which takes one number of a vector.
_X86_PACKED = re.compile(r"v?+(?:(?!mov)\w+p[sdh]|p(?!ush|op|refetch)\w+|\w+bf16)")
_X86_REGISTER = re.compile(r"\b([xyz])mm\d+\b")
# A store to the function's own frame: its first operand is the memory.
_X86_STORE = re.compile(r"[^,]*\[r[sb]p[^\]]*\],")
_X86_FRAME = re.compile(r"rsp, (0x[0-9a-f]+|\d+)$")
_ARM_VECTOR = re.compile(r"\bv\d+\.\d+\w")
_ARM_STORE = re.compile(r".*\[(?:sp|x29)\b")


@dataclass(frozen=True)
class Assembly:
    """The code of one function: its instructions as text, its widest vectors, its stack frame, and its callees.

    `spills` is 0 if nothing is stored in the function's own frame, else unknown: registers, or local arrays. `stack` is
    unknown where no single instruction reserves the frame.
    """

    text: str
    vector_bits: int
    spills: int | None
    stack: int | None
    calls: tuple[str, ...]


def functions(data: bytes) -> Iterator[tuple[str, Assembly]]:
    """Yield name and code of each function of an object file; nothing for an unknown machine."""
    machine = machine_of(data)
    if machine not in _READERS:
        return
    parts = sections(data)
    disassemble, facts_of = _disassembler(machine), _READERS[machine]
    for symbol in symbols(parts):
        if symbol.is_function and symbol.section < len(parts) and symbol.size:
            code = parts[symbol.section].data[symbol.start : symbol.start + symbol.size]
            names = dict(relocations(parts, symbol.section))  # by place, the inserted symbols
            yield symbol.name, facts_of(list(disassemble(code, symbol.start)), names)


def _disassembler(machine: int) -> Callable[[bytes, int], Iterator[Instruction]]:
    import capstone  # pyright: ignore[reportMissingImports]

    library: Any = capstone
    if machine == X86_64:
        return library.Cs(library.CS_ARCH_X86, library.CS_MODE_64).disasm_lite
    # Version 6 calls it by its own name.
    arm = getattr(library, "CS_ARCH_AARCH64", None) or library.CS_ARCH_ARM64
    return library.Cs(arm, library.CS_MODE_ARM).disasm_lite


def _named(line: Instruction, names: Mapping[int, str]) -> str:
    """Return the symbol whose address is inserted in an instruction's bytes; empty without one."""
    address, size, _, _ = line
    return next((names[at] for at in range(address, address + size) if names.get(at)), "")


def _listing(lines: Sequence[Instruction], names: Mapping[int, str]) -> str:
    start = lines[0][0] if lines else 0
    rows: list[str] = []
    for line in lines:
        name = _named(line, names)
        rows.append(f"{line[0] - start:6x}  {line[2]:<14} {line[3]}{f'  # {name}' if name else ''}".rstrip())
    return "\n".join(rows)


def _x86(lines: Sequence[Instruction], names: Mapping[int, str]) -> Assembly:
    packed = [operands for _, _, mnemonic, operands in lines if _X86_PACKED.fullmatch(mnemonic)]
    widths = {_X86_WIDTHS[kind] for operands in packed for kind in _X86_REGISTER.findall(operands)}
    moves = (operands for _, _, mnemonic, operands in lines if mnemonic.removeprefix("v").startswith("mov"))
    stores = any(map(_X86_STORE.match, moves))
    frames = [match[1] for match in (_X86_FRAME.match(line[3]) for line in lines if line[2] == "sub") if match]
    # More than one: the stack pointer also moves inside the function, by amounts that may repeat.
    stack = int(frames[0], 0) if len(frames) == 1 else None if frames else 0
    return Assembly(
        _listing(lines, names), max(widths, default=0), None if stores else 0, stack, _x86_calls(lines, names)
    )


def _x86_calls(lines: Sequence[Instruction], names: Mapping[int, str]) -> tuple[str, ...]:
    calls = {_named(line, names) for line in lines if line[2] == "call"}
    # Code is compiled for any distance: an address is loaded first, and then called.
    calls |= {name for line in lines if line[2] == "movabs" and not (name := _named(line, names)).startswith(".")}
    return tuple(sorted(calls - {""}))


def _arm(lines: Sequence[Instruction], names: Mapping[int, str]) -> Assembly:
    has_vectors = any(
        _ARM_VECTOR.search(operands) and not name.startswith(("ld", "st", "mov")) for _, _, name, operands in lines
    )
    # The frame's own registers are stored in pairs where a function begins.
    stores = any(name == "str" and _ARM_STORE.match(operands) for _, _, name, operands in lines)
    calls = {_named(line, names) for line in lines if line[2] == "bl"} - {""}
    return Assembly(_listing(lines, names), 128 * has_vectors, None if stores else 0, None, tuple(sorted(calls)))


_READERS: Mapping[int, Callable[[Sequence[Instruction], Mapping[int, str]], Assembly]] = {X86_64: _x86, AARCH64: _arm}


# Cubins ---------------------------------------------------------------------------------------------------------------

_SIZED_ATTRIBUTE = 4  # a record with its size in the head; others have their value there
_FRAME, _STACK, _REGISTERS = 0x11, 0x12, 0x2F


@dataclass(frozen=True)
class Resources:
    """Registers and bytes of stack of a kernel's thread."""

    registers: int
    stack: int


def resources(executable: bytes) -> Mapping[str, Resources]:
    """Return the resources by symbol, of all readable cubins in an executable."""
    of: dict[str, Resources] = {}
    start = executable.find(MAGIC)
    while start >= 0:
        if machine_of(executable[start : start + 64]) == CUDA:
            with suppress(ElfError, struct.error, IndexError):  # of a later format, or in pieces
                of |= _of_cubin(executable[start:])
        # Not past the cubin: its size isn't in its head.
        start = executable.find(MAGIC, start + 1)
    return of


def _of_cubin(data: bytes) -> Mapping[str, Resources]:
    parts = sections(data)
    names = [symbol.name for symbol in symbols(parts)]
    table = {
        (attribute, names[symbol]): value
        for part in parts
        if part.name == ".nv.info"
        for attribute, symbol, value in _attributes(part.data)
    }
    return {
        name: Resources(value, max(table.get((which, name), 0) for which in (_FRAME, _STACK)))
        for (attribute, name), value in table.items()
        if attribute == _REGISTERS
    }


def _attributes(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield the numbers of an attribute and a symbol, and the value, of each record that has a symbol and a value."""
    at = 0
    while at + 4 <= len(data):
        kind, attribute, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if kind != _SIZED_ATTRIBUTE:
            continue
        if size == 8:
            yield attribute, *struct.unpack_from("<II", data, at)
        at += size


# Records of an executable ---------------------------------------------------------------------------------------------

_SIGNATURE = bytes.fromhex("83af70d10d884a3f")  # of a file's first block
_BLOCK, _BLOCK_HEAD, _CHUNK_HEAD = 1 << 16, 24, 40
_SIMPLE, _SNAPPY = ord("r"), ord("s")
_MAX_BYTES = 1 << 30  # bytes


def records(data: bytes) -> bytes:
    """Return the records of the Riegeli file inside `data`, concatenated; empty if it is missing or unreadable."""
    start = data.find(_SIGNATURE)
    if start < 0:
        return b""
    plain = b"".join(data[at + _BLOCK_HEAD : at + _BLOCK] for at in range(start, len(data), _BLOCK))
    parts: list[bytes] = []
    at = 0
    try:
        while at + _CHUNK_HEAD <= len(plain):
            size = struct.unpack_from("<Q", plain, at + 8)[0]
            # A chunk's head: hash, size, hash of the data (8 bytes each), then the kind.
            kind, at = plain[at + 24], at + _CHUNK_HEAD
            if size > len(plain) - at:  # data after the file
                break
            if kind == _SIMPLE:
                values = _simple(plain[at : at + size])
                parts.append(records(values) or values)  # from jaxlib 0.11 on there is a file in a record
            at += size
    except (IndexError, ValueError, struct.error):
        return b""
    return b"".join(parts)


def _simple(chunk: bytes) -> bytes:
    sizes, at = varint(chunk, 1)
    values = chunk[at + sizes :]
    # The first byte is the kind of compression, 0 for none.
    if chunk[0] == 0:
        return values
    if chunk[0] != _SNAPPY:
        raise ValueError("packed in another way")
    _, at = varint(values, 0)
    return _snappy(values[at:])


def _snappy(data: bytes) -> bytes:
    length, at = varint(data, 0)
    # Before anything is unpacked: a damaged length must not fill the memory.
    if length > _MAX_BYTES:
        raise ValueError("too large")
    out = bytearray()
    while at < len(data):
        tag, at = data[at], at + 1
        if tag & 3 == 0:
            size = tag >> 2
            # The length is in the next one to four bytes.
            if size >= 60:
                size, at = int.from_bytes(data[at : at + size - 59], "little"), at + size - 59
            out += data[at : at + size + 1]
            at += size + 1
            continue
        if tag & 3 == 1:
            size, offset, at = (tag >> 2 & 7) + 4, tag >> 5 << 8 | data[at], at + 1
        else:
            width = 2 if tag & 3 == 2 else 4
            size, offset, at = (tag >> 2) + 1, int.from_bytes(data[at : at + width], "little"), at + width
        if not 0 < offset <= len(out) or len(out) > length:
            raise ValueError("leads out of it")
        # A copy may overlap its own output: a run of equal bytes is encoded so.
        piece = bytes(out[len(out) - offset :][:size])
        out += (piece * (size // len(piece) + 1))[:size]
    if len(out) != length:
        raise ValueError("truncated")
    return bytes(out)
