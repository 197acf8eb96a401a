"""Text that compilers write about kernels: PTX, LLVM IR, a GPU's launches, a TPU's bundles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_ENTRY = re.compile(r"^\.visible \.entry ([\w$.]+)\(", re.MULTILINE)
_REQUIRED = re.compile(r"^\.reqntid (\d+)(?:, (\d+))?(?:, (\d+))?", re.MULTILINE)
# `mma.sync` of Ampere on, `wgmma` of Hopper, `tcgen05.mma` of Blackwell: what runs on the tensor cores.
_PTX_MATRIX = re.compile(r"\b((?:mma\.sync|wmma\.mma\.sync|wgmma\.mma_async|tcgen05\.mma)[\w.:]*)")
_PTX_CALL = re.compile(r"^\tcall(?:\.uni)? (?:\([^)]*\), )?\s*([\w$]+)", re.MULTILINE)


def ptx_functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each kernel of a module."""
    for match in _ENTRY.finditer(text):
        end = text.find("\n}", match.start())
        yield match[1], text[match.start() : len(text) if end < 0 else end + 2]


def block_of(text: str) -> tuple[int, ...]:
    """Return the number of threads of a block that the kernel requires, by axis; empty if it requires none."""
    match = _REQUIRED.search(text)
    return tuple(int(count or 1) for count in match.groups()) if match else ()


def ptx_matrix_instructions(text: str) -> tuple[str, ...]:
    """Return the tensor core instructions."""
    return tuple(sorted(set(_PTX_MATRIX.findall(text))))


def ptx_calls(text: str) -> tuple[str, ...]:
    """Return the functions that are called."""
    return tuple(sorted(set(_PTX_CALL.findall(text))))


# LLVM IR --------------------------------------------------------------------------------------------------------------

_DEFINE = re.compile(r'^define [^\n]*?@(?:"([^"\n]+)"|([\w$.-]+))\(', re.MULTILINE)
_LLVM_CALL = re.compile(r'\bcall [^\n]*?@(?:"([^"\n]+)"|([\w$.-]+))\(')
# `%9 = fadd <8 x float> …`: what computes, not what only moves: a copy may be wide where the arithmetic isn't.
_VECTOR = re.compile(
    r"= (?:fast |nnan |contract |reassoc |afn )*"
    r"(?:f(?:add|sub|mul|div|neg|cmp)|(?:tail )?call|add|sub|mul|and|or|xor|icmp|select)\b"
    r"[^\n<]*<(\d+) x (\w+)>"
)
_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


def llvm_functions(text: str) -> Iterator[tuple[str, str]]:
    """Yield name and text of each function that a module defines."""
    for match in _DEFINE.finditer(text):
        end = text.find("\n}", match.start())
        yield match[1] or match[2], text[match.start() : len(text) if end < 0 else end + 2]


def vector_bits(text: str) -> int:
    """Return the width of the widest vectors that a function computes with; 0 for none."""
    widths = [int(count) * _width(kind) for count, kind in _VECTOR.findall(text)]
    return max(widths, default=0)


def _width(kind: str) -> int:
    return _BITS.get(kind, int(kind[1:]) if kind[:1] == "i" and kind[1:].isdigit() else 0)


def llvm_calls(text: str) -> tuple[str, ...]:
    """Return the functions that are called, without LLVM's intrinsics."""
    names = {quoted or plain for quoted, plain in _LLVM_CALL.findall(text)}
    return tuple(sorted(name for name in names if not name.startswith("llvm.")))


# Launches of a GPU's program: `thunk_sequence.txt`; the owner of each is in `thunk_metadata.txt` ----------------------

_LAUNCH = re.compile(
    r"^\s*(?P<id>\d+): k\w+ .*?\] (?P<function>[\w$.]+) grid: \[(?P<grid>[\d, ]+)\] threads: \[(?P<block>[\d, ]+)\]"
    r".*?shared_memory: (?P<shared>\d+)",
    re.MULTILINE,
)
_METADATA = re.compile(r'profile_annotation: "(?P<name>[^"]+)"\s*thunk_id: (?P<id>\d+)')


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel.

    Args:
        function: The kernel's symbol.
        kernel: The instruction of the optimized program; empty where unknown.
        grid, block: Blocks, and threads of a block, by axis.
        shared: Bytes of shared memory of a block.
    """

    function: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int


def launches(sequence: str, metadata: str) -> Iterator[Launch]:
    """Yield the launches of a program in order."""
    names = {int(match["id"]): match["name"] for match in _METADATA.finditer(metadata)}
    for match in _LAUNCH.finditer(sequence):
        grid, block = (tuple(int(size) for size in match[key].split(",")) for key in ("grid", "block"))
        yield Launch(match["function"], names.get(int(match["id"]), ""), grid, block, int(match["shared"]))


# Bundles of a TPU: instructions that are issued together --------------------------------------------------------------

_TOTAL = re.compile(r"total scheduled bundles:\s*(\d+)")
_TPU_MATRIX = re.compile(r"\bvmatmul([\w.]*)")
_TPU_TYPE = re.compile(r"(?:b?f|s|u)\d+\w*")
_SPILL = re.compile(r"\bv?s?st \[(?:v|s)mem:\[#allocation\w*_spill\]")


def bundle_count(schedule: str) -> int | None:
    """Return the number of scheduled bundles in a schedule's analysis."""
    match = _TOTAL.search(schedule)
    return int(match[1]) if match else None


def tpu_matrix_instructions(text: str) -> tuple[str, ...]:
    """Return the instructions of the matrix units with their type, without the unit's name."""
    names: set[str] = set(_TPU_MATRIX.findall(text))
    return tuple(
        sorted(
            {".".join(("vmatmul", *(part for part in name.split(".") if _TPU_TYPE.fullmatch(part)))) for name in names}
        )
    )


def tpu_spills(text: str) -> int:
    """Return the number of instructions that spill a register to memory."""
    return len(_SPILL.findall(text))
