"""The user's own text, kept with the capture so that it opens anywhere and later."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Source"]


@dataclass(frozen=True, slots=True)
class Source:
    """One file or notebook cell that a stack goes through.

    Args:
        file: The file name that frames carry.
        label: What a person calls it: `train.py`, `cell [4]`.
        text: All of it.
    """

    file: str
    label: str
    text: str

    def __repr__(self) -> str:
        return f"Source({self.label}, {self.text.count(chr(10)):,} lines)"
