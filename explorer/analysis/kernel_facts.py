"""What is known of a kernel's code, in words: the same in a table, a page and an answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

from explorer.model.machine_code import KernelCode
from explorer.model.units import bytes_text, count_text, share_text

_SHOWN = 3  # names of instructions and functions


def kernel_facts(row: KernelCode, platform: str) -> list[tuple[str, str]]:
    """Names and texts of the facts; what isn't known is said where one would look for it."""
    facts = {"cpu": _cpu, "tpu": _tpu}.get(platform, _gpu)(row)
    return [*facts, *([("calls", _names(row.calls))] if row.calls else [])]


def _gpu(row: KernelCode) -> list[tuple[str, str]]:
    block = math.prod(row.block)
    launch = f"{math.prod(row.grid):,} × {count_text(block, 'thread')}" if row.grid else "not known"
    return [
        ("blocks", launch if row.grid or not block else f"{count_text(block, 'thread')} each"),
        ("registers", "not known" if row.registers is None else f"{row.registers} a thread"),
        ("spills", _gpu_spills(row)),
        ("shared memory", "not known" if row.shared is None else f"{bytes_text(row.shared)} a block"),
        ("occupancy", _occupancy(row)),
        ("tensor cores", _names(row.matrix_instructions) or "not used"),
    ]


def _gpu_spills(row: KernelCode) -> str:
    if row.stack is None:
        return "not known"
    return f"at most {bytes_text(row.stack)} a thread" if row.stack else "none"


def _occupancy(row: KernelCode) -> str:
    if row.occupancy is None:
        return "not known"
    return f"≤ {share_text(row.occupancy)}" + ("" if row.registers is not None else ", registers not known")


def _cpu(row: KernelCode) -> list[tuple[str, str]]:
    width = row.vector_bits
    words = "not known" if width is None else f"{width} bits" if width else "none: one number at a time"
    spills = "none" if row.spills == 0 else "not known: it has a frame of its own"
    return [("vectors", words), ("spills", spills if "assembly" in row.texts else "not known")]


def _tpu(row: KernelCode) -> list[tuple[str, str]]:
    return [
        ("bundles", "not known" if row.bundles is None else f"{row.bundles:,}"),
        ("spills", "not known" if row.spills is None else f"{row.spills:,}" if row.spills else "none"),
        ("matrix units", _names(row.matrix_instructions) or "not used"),
    ]


def _names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
