"""What a rule raises."""

from __future__ import annotations


class Refused(Exception):
    """An equation can't be computed exactly on padded values.

    Args:
        reason: Why.
        hint: What would help.
    """

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint
