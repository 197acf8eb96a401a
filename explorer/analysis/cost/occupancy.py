"""How many of a GPU's threads can be resident with one kernel: an upper bound, from published limits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WARP = 32
_REGISTERS_AT_ONCE = 256  # are given to a warp
_RESERVED = 1024  # bytes of shared memory that the system takes of each block, from compute capability 8.0 on


@dataclass(frozen=True)
class GpuLimits:
    """What one multiprocessor has, of NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities".

    Args:
        threads: Resident ones at most.
        blocks: Resident ones at most.
        registers: Of 32 bits.
        shared: Bytes of shared memory.
    """

    threads: int
    blocks: int
    registers: int
    shared: int


def limits_of(figures: Mapping[str, object]) -> GpuLimits | None:
    """Of a device of `figures.toml`; None for what is no GPU of NVIDIA's."""
    capability, shared = figures.get("capability"), figures.get("shared_memory")
    if not isinstance(capability, str) or not capability[:1].isdigit() or not isinstance(shared, dict):
        return None
    blocks = {"8.6": 16, "8.9": 24, "12.0": 24}.get(capability.rstrip("a"), 32)
    return GpuLimits(int(str(figures["threads"])), blocks, 65_536, int(shared["core"]))  # pyright: ignore[reportUnknownArgumentType]


def occupancy(limits: GpuLimits, block: Sequence[int], registers: int | None, shared: int | None) -> float:
    """The share of a multiprocessor's threads that can be resident at most, 0 to 1.

    What isn't known doesn't limit: with `registers` None it is the bound of the others.

    Args:
        limits: Of the device.
        block: Threads of a block, by axis.
        registers: That each thread has.
        shared: Bytes of shared memory of a block.

    Example:
        >>> h100 = GpuLimits(2048, 32, 65_536, 233_472)
        >>> occupancy(h100, (128, 1, 1), 64, 0), occupancy(h100, (64, 1, 1), None, 0)
        (0.5, 1.0)
    """
    warps = math.ceil(math.prod(block) / WARP)
    blocks = min(limits.blocks, limits.threads // (warps * WARP))
    if registers:
        of_warp = math.ceil(registers * WARP / _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        blocks = min(blocks, limits.registers // of_warp // warps)
    if shared:
        blocks = min(blocks, limits.shared // (shared + _RESERVED))
    return blocks * warps * WARP / limits.threads
