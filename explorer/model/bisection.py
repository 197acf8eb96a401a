"""Where a check began to fail, among candidates in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PASSES, FAILS, UNKNOWN = "passes", "fails", "can't be checked"


@dataclass(frozen=True)
class Verdict:
    """What one candidate gave.

    Args:
        candidate: A commit, or a release of JAX.
        outcome: `PASSES`, `FAILS` or `UNKNOWN`.
        text: What the check says of it; of one that can't be checked, why.
    """

    candidate: str
    outcome: str
    text: str = ""


@dataclass(frozen=True)
class Bisection:
    """Where a check began to fail.

    Args:
        first: The first candidate that fails.
        last: The last one before it that passes.
        between: Those in between that can't be checked: it may have been any of them.
        tried: In the order in which they were.
    """

    first: Verdict
    last: str
    between: Sequence[str]
    tried: Sequence[Verdict]

    def to_text(self) -> str:
        """A sentence, what was not known, and what the check says of the first that fails."""
        tried = f"{len(self.tried)} tried"
        lines = [f"{self.first.candidate} is the first that fails; {self.last} passes ({tried})."]
        if self.between:
            lines.append(f"It may also be one of these, which can't be checked: {', '.join(self.between)}.")
        return "\n".join([*lines, "", self.first.text])
