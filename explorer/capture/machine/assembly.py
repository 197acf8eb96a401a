"""A CPU's object files as assembly: capstone disassembles them, where it is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from explorer.capture.machine.elf import AARCH64, X86_64, Section, Symbol, machine_of, relocations, sections, symbols

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
    """One function.

    Args:
        text: Its instructions, a line each, with the names of what they refer to.
        vector_bits: The width of the widest vectors that it computes with; 0 for none.
        spills: 0 where it stores nothing in a frame of its own. None where it does: registers, or arrays of its own.
        stack: Bytes of its frame; None where no single instruction says it.
        calls: The functions that it calls.
    """

    text: str
    vector_bits: int
    spills: int | None
    stack: int | None
    calls: tuple[str, ...]


def can_disassemble() -> bool:
    """Whether capstone is installed."""
    return find_spec("capstone") is not None


def functions(data: bytes) -> Iterator[tuple[str, Assembly]]:
    """Name and code of each function of an object file; none of a file that is for no machine known here.

    Raises:
        ElfError: It is an ELF file, and can't be read.
        ImportError: There is no capstone.
    """
    machine = machine_of(data)
    if machine not in _READERS:
        return
    parts = sections(data)
    disassemble, facts_of = _disassembler(machine), _READERS[machine]
    for symbol in symbols(parts):
        if symbol.is_function and symbol.section < len(parts) and symbol.size:
            code = parts[symbol.section].data[symbol.start : symbol.start + symbol.size]
            names = _references(parts, symbol)
            lines = list(disassemble(code, symbol.start))
            yield symbol.name, facts_of(lines, names)


def _references(parts: Sequence[Section], symbol: Symbol) -> Mapping[int, str]:
    """By the place in the section, the name of what is put in there."""
    return dict(relocations(parts, symbol.section))


def _disassembler(machine: int) -> Callable[[bytes, int], Iterator[Instruction]]:
    import capstone  # pyright: ignore[reportMissingImports]

    library: Any = capstone
    if machine == X86_64:
        return library.Cs(library.CS_ARCH_X86, library.CS_MODE_64).disasm_lite
    # Version 6 calls it by its own name.
    arm = getattr(library, "CS_ARCH_AARCH64", None) or library.CS_ARCH_ARM64
    return library.Cs(arm, library.CS_MODE_ARM).disasm_lite


def _named(line: Instruction, names: Mapping[int, str]) -> str:
    """What an instruction refers to: its bytes have a place where that is put in."""
    address, size, _, _ = line
    return next((names[at] for at in range(address, address + size) if names.get(at)), "")


def _text(lines: Sequence[Instruction], names: Mapping[int, str]) -> str:
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
    stack = int(frames[0], 0) if len(frames) == 1 else None if frames else 0
    return Assembly(_text(lines, names), max(widths, default=0), None if stores else 0, stack, _x86_calls(lines, names))


def _x86_calls(lines: Sequence[Instruction], names: Mapping[int, str]) -> tuple[str, ...]:
    calls = {_named(line, names) for line in lines if line[2] == "call"} - {""}
    # Code is compiled for any distance: an address is loaded first, and then called.
    calls |= {name for line in lines if line[2] == "movabs" and _is_function(name := _named(line, names))}
    return tuple(sorted(calls))


def _is_function(name: str) -> bool:
    return bool(name) and not name.startswith(".")


def _arm(lines: Sequence[Instruction], names: Mapping[int, str]) -> Assembly:
    has_vectors = any(
        _ARM_VECTOR.search(operands) and not name.startswith(("ld", "st", "mov")) for _, _, name, operands in lines
    )
    # The frame's own registers are stored in pairs where a function begins.
    stores = any(name == "str" and _ARM_STORE.match(operands) for _, _, name, operands in lines)
    calls = {_named(line, names) for line in lines if line[2] == "bl"} - {""}
    return Assembly(_text(lines, names), 128 * has_vectors, None if stores else 0, None, tuple(sorted(calls)))


_READERS: Mapping[int, Callable[[Sequence[Instruction], Mapping[int, str]], Assembly]] = {X86_64: _x86, AARCH64: _arm}
