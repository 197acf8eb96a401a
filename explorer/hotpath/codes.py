"""Which code is a function's own, while a trampoline runs in its place."""

from __future__ import annotations

from types import CodeType, FunctionType

SWAPPED: dict[FunctionType, CodeType] = {}  # functions that run a trampoline now, with the code that is theirs


def code_of(function: FunctionType) -> CodeType:
    """A function's own code, whatever runs in its place."""
    return SWAPPED.get(function, function.__code__)
