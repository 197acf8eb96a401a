"""What repeats at the top of a cell or script, and the functions that were made of it."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.model.results.operations import Operation


@dataclass(frozen=True, slots=True)
class ProposedFunction:
    """Statements of a loop at the top of a cell or script, as a function: what runs in their place once it is compiled.

    Args:
        name: After what the statements give.
        file: Where they stand.
        first_line, last_line: From 1.
        text: Its source, to be pasted.
        turns: How often the statements had run when it was made.

    Example:
        >>> import explorer
        >>> proposed = explorer.ProposedFunction("loss", "train.py", 3, 4, "def loss(x):\\n    return x * 2\\n")
        >>> print(proposed.text.strip())
        def loss(x):
            return x * 2
    """

    name: str
    file: str
    first_line: int
    last_line: int
    text: str
    turns: int = 0


@dataclass(frozen=True, slots=True)
class LeftStatement:
    """A statement of such a loop that runs as it was written.

    Args:
        file, line: Where it stands.
        reason: Why, a sentence without its full stop.
        cure: What would let it be compiled; empty where nobody knows.

    Example:
        >>> import explorer
        >>> explorer.LeftStatement("train.py", 12, "it prints", "log after the loop").reason
        'it prints'
    """

    file: str
    line: int
    reason: str
    cure: str = ""


@dataclass(frozen=True, slots=True)
class RepeatedSequence:
    """Operations that ran several times in the same order, wired in the same way, without a look at a value between.

    Args:
        digest: Of the operations and their wiring: the same in every process.
        operations: In order.
        wiring: For each operation, where its inputs come from: `(operation, result)` of the sequence by number from 0,
            `(-1, k)` for the k-th value from outside, `(-2, 0)` for what is no array.
        starts: The number of the first step of each time that it ran.
        file, first_line, last_line: The lines of the user's that it came from, where they are of one file; else empty
            and 0.
    """

    digest: str
    operations: tuple[Operation, ...]
    wiring: tuple[tuple[tuple[int, int], ...], ...]
    starts: tuple[int, ...]
    file: str = ""
    first_line: int = 0
    last_line: int = 0

    @property
    def name(self) -> str:
        """Its operations, shortened: `matmul → tanh → … → sub`."""
        names = [operation.name for operation in self.operations]
        return " → ".join(names if len(names) <= 4 else [*names[:2], "…", names[-1]])

    @property
    def count(self) -> int:
        """How often it ran."""
        return len(self.starts)
