"""PTX: the functions of a module, and what each says of itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

_ENTRY = re.compile(r"^\.visible \.entry ([\w$.]+)\(", re.MULTILINE)
_REQUIRED = re.compile(r"^\.reqntid (\d+)(?:, (\d+))?(?:, (\d+))?", re.MULTILINE)
# `mma.sync` of Ampere on, `wgmma` of Hopper, `tcgen05.mma` of Blackwell: what runs on the tensor cores.
_MATRIX = re.compile(r"\b((?:mma\.sync|wmma\.mma\.sync|wgmma\.mma_async|tcgen05\.mma)[\w.:]*)")
_CALL = re.compile(r"^\tcall(?:\.uni)? (?:\([^)]*\), )?\s*([\w$]+)", re.MULTILINE)


def functions(text: str) -> Iterator[tuple[str, str]]:
    """Name and text of each kernel of a module, with the head of the module before the first."""
    for match in _ENTRY.finditer(text):
        end = text.find("\n}", match.start())
        yield match[1], text[match.start() : len(text) if end < 0 else end + 2]


def block_of(text: str) -> tuple[int, ...]:
    """How many threads a block has, as the kernel requires it; empty where it doesn't."""
    match = _REQUIRED.search(text)
    return tuple(int(count or 1) for count in match.groups()) if match else ()


def matrix_instructions(text: str) -> tuple[str, ...]:
    """Which instructions of the tensor cores there are."""
    return tuple(sorted(set(_MATRIX.findall(text))))


def calls(text: str) -> tuple[str, ...]:
    """Which functions are called."""
    return tuple(sorted(set(_CALL.findall(text))))
