"""What became of each equation: kept, fused, duplicated, folded, eliminated, inlined, or not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints, Node

KINDS = ("", "kept", "fused", "duplicated", "folded", "eliminated", "inlined", "unmapped")
"""What the codes of `Fates.kind` mean; the first is for what is no equation: arguments, constants."""


@dataclass(frozen=True)
class Fate:
    """What became of one equation.

    Args:
        kind: One of `KINDS`.
        kernels: The kernels (instructions of the `hlo` stage) it runs in, in program order.
        inferred: True if it follows from structure, False if the compiler's own metadata says so.
        why: The reason, in words.
    """

    kind: str
    kernels: tuple[Node, ...] = ()
    inferred: bool = False
    why: str = ""

    def __repr__(self) -> str:
        names = ", ".join(node.name for node in self.kernels[:3])
        more = f" and {len(self.kernels) - 3} more" if len(self.kernels) > 3 else ""
        where = f" {'into' if self.kind == 'fused' else 'as'} {names}{more}" if names else ""
        notes = [part for part in (self.why, "inferred" if self.inferred else "") if part]
        return f"{self.kind}{where}" + (f" ({'; '.join(notes)})" if notes else "")


@dataclass(frozen=True, eq=False)
class Fates:
    """The fates of one stage's equations, column-wise.

    Args:
        hlo: The graph that `kernel` indexes.
        kind: Code into `KINDS`, shape `[n]`.
        inferred: True where the fate follows from structure, shape `[n]`.
        kernel_start, kernel: Compressed rows: those of node `i` are `kernel[kernel_start[i]:kernel_start[i + 1]]`.
        why: Code into `reasons`, shape `[n]`.
        reasons: In words.
    """

    hlo: Graph
    kind: Ints
    inferred: NDArray[np.bool_]
    kernel_start: Ints
    kernel: Ints
    why: Ints
    reasons: Sequence[str]

    def __getitem__(self, node: int) -> Fate:
        kernels = self.kernel[self.kernel_start[node] : self.kernel_start[node + 1]].tolist()
        return Fate(
            KINDS[int(self.kind[node])],
            tuple(Node(self.hlo, i) for i in kernels),
            bool(self.inferred[node]),
            self.reasons[int(self.why[node])],
        )

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many equations have each fate, in the order of `KINDS`; without those that none has."""
        counts = np.bincount(self.kind, minlength=len(KINDS)).tolist()
        return {kind: count for kind, count in zip(KINDS, counts, strict=True) if kind and count}

    @cached_property
    def mapped(self) -> float:
        """The share of equations, 0 to 1, whose fate is known."""
        total = sum(self.counts.values())
        return 1.0 - self.counts.get("unmapped", 0) / total if total else 0.0
