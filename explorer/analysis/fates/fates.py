"""What became of each equation: kept, fused, duplicated, folded, eliminated, inlined, or not known.

Told by the compiler is what an instruction with the equation's own place and primitive shows. The rest is inferred, and
only where no other answer is left: what nothing reads is eliminated; what is written twice is computed once; a number
that depends on no argument was computed while compiling; what is made and read inside one kernel happens there, or not
at all. Everything else is unmapped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.inference import infer
from explorer.analysis.fates.metadata_fates import Told
from explorer.model.graph import Ints, Node

if TYPE_CHECKING:
    from explorer.model.capture import Capture

__all__ = ["KINDS", "Fate", "Fates"]

KINDS = ("", "kept", "fused", "duplicated", "folded", "eliminated", "inlined", "unmapped")
"""What the codes of `Fates.kind` mean; the first is for what is no equation: arguments, constants."""


@dataclass(frozen=True)
class Fate:
    """What became of one equation.

    Args:
        kind: One of `KINDS`.
        kernels: The kernels (instructions of the `hlo` stage) it runs in, in program order.
        inferred: Whether it follows from the structure; otherwise the compiler's own metadata tells it.
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


class Fates:
    """The fates of one stage's equations, column-wise.

    Attributes:
        kind: Code into `KINDS`, shape `[n]`.
        inferred: Whether the compiler did not tell, shape `[n]`.
        kernel_start, kernel: Compressed rows: those of node `i` are `kernel[kernel_start[i]:kernel_start[i + 1]]`.
        why: Code into `reasons`, shape `[n]`.
    """

    def __init__(self, capture: Capture, stage: str) -> None:
        self._hlo = capture.hlo.graph
        told = Told(capture, stage)
        rows = told.rows
        infer(capture, stage, told)
        self.reasons: list[str] = list(dict.fromkeys(row.why for row in rows))
        code = {reason: i for i, reason in enumerate(self.reasons)}
        self.kind: Ints = np.asarray([KINDS.index(row.kind) for row in rows], np.int32)
        self.inferred: NDArray[np.bool_] = np.asarray([row.inferred for row in rows], bool)
        self.why: Ints = np.asarray([code[row.why] for row in rows], np.int32)
        self.kernel_start: Ints = np.cumsum([0, *(len(row.kernels) for row in rows)], dtype=np.int32)
        self.kernel: Ints = np.asarray([kernel for row in rows for kernel in row.kernels], np.int32)

    def __getitem__(self, node: int) -> Fate:
        kernels = self.kernel[self.kernel_start[node] : self.kernel_start[node + 1]].tolist()
        return Fate(
            KINDS[int(self.kind[node])],
            tuple(Node(self._hlo, i) for i in kernels),
            bool(self.inferred[node]),
            self.reasons[int(self.why[node])],
        )

    @cached_property
    def counts(self) -> dict[str, int]:
        """How many equations have each fate, in the order of `KINDS`; without those that none has."""
        counts = np.bincount(self.kind, minlength=len(KINDS)).tolist()
        return {kind: count for kind, count in zip(KINDS, counts, strict=True) if kind and count}

    @property
    def mapped(self) -> float:
        """The share of equations, 0 to 1, of which it is known what became of them."""
        total = sum(self.counts.values())
        return 1.0 - self.counts.get("unmapped", 0) / total if total else 0.0
