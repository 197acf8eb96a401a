"""A TPU's last representation: bundles of instructions that are issued together."""

from __future__ import annotations

import re

_TOTAL = re.compile(r"total scheduled bundles:\s*(\d+)")
_MATRIX = re.compile(r"\bvmatmul([\w.]*)")
_TYPE = re.compile(r"(?:b?f|s|u)\d+\w*")
_SPILL = re.compile(r"\bv?s?st \[(?:v|s)mem:\[#allocation\w*_spill\]")


def bundle_count(schedule: str) -> int | None:
    """How many bundles are scheduled, as the schedule's analysis counts them."""
    match = _TOTAL.search(schedule)
    return int(match[1]) if match else None


def matrix_instructions(text: str) -> tuple[str, ...]:
    """Which instructions of the matrix units there are, with their type, and without which unit each is for."""
    names: set[str] = set(_MATRIX.findall(text))
    return tuple(
        sorted({".".join(("vmatmul", *(part for part in name.split(".") if _TYPE.fullmatch(part)))) for name in names})
    )


def spills(text: str) -> int:
    """How many instructions store a register to memory for want of registers."""
    return len(_SPILL.findall(text))
