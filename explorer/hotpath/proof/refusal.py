"""Why a function isn't compiled unasked."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """What can't be proven of a function, and where.

    Args:
        reason: A sentence without its full stop.
        file: Of the line.
        line: Its number, from 1; 0 where there is none.
        cure: What would make it provable; empty where nobody knows.
    """

    reason: str
    file: str = ""
    line: int = 0
    cure: str = ""


class NotProven(Exception):
    """The proof ends here."""

    def __init__(self, reason: str, cure: str = "", file: str = "", line: int = 0) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, file, line, cure)
