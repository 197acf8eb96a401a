"""What the counts of a program leave open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.units import count_text

ONE_ITERATION = "one iteration counted"
_NAMED = 3  # names before the others are counted


@dataclass(frozen=True)
class CountLimits:
    """Where FLOPs and bytes of a program are not what a call does, and why.

    Args:
        loops: Names of the loops whose length nobody knows: one iteration is counted.
        branches: Names of the conditionals: each of their branches is counted.
        unknown: Names of the kernels whose FLOPs nobody knows, as those of a custom call: they count as none.
    """

    loops: Sequence[str] = ()
    branches: Sequence[str] = ()
    unknown: Sequence[str] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """One for each limit there is.

        Example:
            >>> CountLimits(loops=["while.3"], unknown=["gemm", "topk"]).sentences
            ('one iteration counted of while.3: its length is not known', 'FLOPs of 2 kernels not known: gemm, topk')
        """
        loops, branches, unknown = len(self.loops), len(self.branches), len(self.unknown)
        which = self.loops[0] if loops == 1 else f"each of {loops:,} loops"
        all_of = self.branches[0] if branches == 1 else f"{branches:,} conditionals"
        return (
            *([f"{ONE_ITERATION} of {which}: its length is not known"] if loops else []),
            *([f"all branches counted of {all_of}"] if branches else []),
            *([f"FLOPs of {count_text(unknown, 'kernel')} not known: {_listed(self.unknown)}"] if unknown else []),
        )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more:,} more" if more > 0 else "")
