"""What a compilation took, step by step, and which arrays it baked into the program."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Durations:
    """Seconds spent in each step of the compilation."""

    trace: float = 0.0
    lower: float = 0.0
    compile: float = 0.0


@dataclass(frozen=True, slots=True)
class Constant:
    """An array that the function closed over and the trace baked in: its name in the jaxpr, its type, its bytes."""

    name: str
    type: str
    bytes: int
