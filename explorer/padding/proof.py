"""What a walk over a symbolic program proves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from explorer.capture.sources import place
from explorer.padding.values import Fill


@dataclass(frozen=True)
class Refusal:
    """An equation that can't be computed exactly on padded arrays.

    Attributes:
        equation: As text: `f32[b] = cumsum[axis=0] f32[b]`.
        primitive: Its name.
        file: Of the user's line that made it; empty if it isn't known.
        line: Of that file, from 1; 0 if it isn't known.
        reason: Why it can't.
        hint: What would help; empty if nothing is known to.
    """

    equation: str
    primitive: str
    file: str
    line: int
    reason: str
    hint: str

    def __str__(self) -> str:
        where = f"\n  at  {place(self.file, self.line)}" if self.file else ""
        hint = f"\n  Hint: {self.hint}" if self.hint else ""
        return f"{self.reason}: {self.equation}{where}{hint}"


@dataclass(frozen=True)
class Proof:
    """Whether one program for arrays of a bucket's size gives what the function gives at every smaller size.

    Attributes:
        refusals: Every equation that prevents it.
        rules: By primitive, how many equations of padded axes it has.
        masks: How many arrays are masked.
        relayouts: How many arrays are gathered into other places, which costs most.
        axes: The named dimensions.
        fills: Of each array that goes in what is best put in its padding, for it needs no mask then; None where that
            may be anything.
    """

    refusals: tuple[Refusal, ...]
    rules: Mapping[str, int]
    masks: int
    relayouts: int
    axes: tuple[str, ...]
    fills: tuple[Fill, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether nothing prevents it: results are those of the unpadded function up to the order of sums."""
        return not self.refusals
