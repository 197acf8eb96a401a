"""How a GPU's program launches its kernels: `thunk_sequence.txt`, and whose each is by `thunk_metadata.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LAUNCH = re.compile(
    r"^\s*(?P<id>\d+): k\w+ .*?\] (?P<function>[\w$.]+) grid: \[(?P<grid>[\d, ]+)\] threads: \[(?P<block>[\d, ]+)\]"
    r".*?shared_memory: (?P<shared>\d+)",
    re.MULTILINE,
)
_METADATA = re.compile(r'profile_annotation: "(?P<name>[^"]+)"\s*thunk_id: (?P<id>\d+)')


@dataclass(frozen=True)
class Launch:
    """One launch.

    Args:
        function: The kernel's symbol.
        kernel: The instruction of the optimised program that it is for; empty where nothing says it.
        grid, block: Blocks, and threads of a block, by axis.
        shared: Bytes of shared memory of a block.
    """

    function: str
    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int


def launches(sequence: str, metadata: str) -> Iterator[Launch]:
    """The launches of a program in their order."""
    names = {int(match["id"]): match["name"] for match in _METADATA.finditer(metadata)}
    for match in _LAUNCH.finditer(sequence):
        grid, block = (tuple(int(size) for size in match[key].split(",")) for key in ("grid", "block"))
        yield Launch(match["function"], names.get(int(match["id"]), ""), grid, block, int(match["shared"]))
