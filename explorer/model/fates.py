"""Fates of equations: what happened to each, in which pass, and the lines before and after that pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from explorer.model.declared import Framed, cached_property
from explorer.model.graph import Graph, Ints, Node
from explorer.model.text import aligned

KINDS = (
    *("", "kept", "fused", "duplicated", "merged", "folded", "eliminated", "inlined", "rewritten", "unknown"),
    *("moved", "split", "folded into"),
)
"""Names of the codes of `Fates.kind`; the empty one is for arguments and constants."""

IMPORT, LOWERING = 0, -1
"""Pass numbers of XLA's import of StableHLO, and of JAX's lowering."""
NO_PASS = -2
_WORDS = {"fused": " into", "folded into": "", "moved": " to", "split": " into", "unknown": ", perhaps in"}
_PASS_NAMES = {IMPORT: "import", LOWERING: "lowering"}


@dataclass(frozen=True)
class Fate:
    """Fate of one equation on the way to the optimized program.

    Args:
        kind: One of `KINDS`: *kept* as a kernel of its own; *fused* into kernels that contain it, *duplicated* in
            several; *merged* with an equal one; *folded* into a constant; *eliminated*; *inlined*, a call or loop
            replaced by its body; *rewritten* as another operation; *moved* into an instruction that only moves values;
            *split* over several operations; *folded into* another equation's instruction, which does the work of both;
            *unknown*.
        kernels: Kernels (instructions of the `hlo` stage) that run it, in program order; for an unknown fate, kernels
            that may run it.
        inferred: True if the fate follows from structure, False if the compiler's metadata states it.
        why: Reason, in words or as a formula: `tanh.1 × 1 → tanh.1`.
        pass_name: The pass that removed, merged or rewrote the equation; `import` is XLA's import of StableHLO,
            `lowering` JAX's lowering of the jaxpr. Empty without a pass, or where it is unknown.
        pass_number: 0 for the import, `n` for `capture.passes[n - 1]`; None for the lowering, and without a pass.
        before, after: Line before that pass, and the line that replaced it; empty if none did.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + jnp.sin(x), jnp.ones(8))
        >>> for node in capture.jaxpr.graph.where("op:sin or op:mul"):
        ...     fate = capture.fate(node)
        ...     print(node.op, fate.kind, [kernel.op for kernel in fate.kernels])
        sin fused ['fusion']
        mul fused ['fusion']
        sin merged []
    """

    kind: str
    kernels: tuple[Node, ...] = ()
    inferred: bool = False
    why: str = ""
    pass_name: str = ""
    pass_number: int | None = None
    before: str = ""
    after: str = ""

    @property
    def step(self) -> str:
        """Return the name and number of the pass, `algsimp (pass 3)`; empty if no pass is known."""
        return _step(self.pass_name, self.pass_number)

    def __repr__(self) -> str:
        names = ", ".join(node.name for node in self.kernels[:3])
        more = f" and {len(self.kernels) - 3} more" if len(self.kernels) > 3 else ""
        word = _WORDS.get(self.kind, " as")
        where = f"{word} {names}{more}" if names else ""
        if self.pass_name:
            return f"{self.kind}{where} by {self.step}" + (f": {self.why}" if self.why else "")
        notes = [part for part in (self.why, "inferred" if self.inferred else "") if part]
        return f"{self.kind}{where}" + (f" ({'; '.join(notes)})" if notes else "")


@dataclass(frozen=True, eq=False)
class Fates:
    """Fates of the equations of one stage, as columns.

    Args:
        hlo: The graph that `kernel` indexes.
        kind: Code into `KINDS`, shape `[n]`.
        inferred: True where the fate follows from structure, shape `[n]`.
        kernel_start, kernel: Compressed rows: those of node `i` are `kernel[kernel_start[i]:kernel_start[i + 1]]`.
        why, before, after: Codes into `texts`, shape `[n]`.
        texts: Reasons, and lines of the compiler's text.
        step: Number of the pass, `IMPORT`, `LOWERING` or `NO_PASS`, shape `[n]`.
        pass_names: Names of the passes, by number.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8))
        >>> fates = capture.fates_of("jaxpr")
        >>> fates.counts, fates.mapped
        ({'fused': 3}, 1.0)
    """

    hlo: Graph
    kind: Ints
    inferred: NDArray[np.bool_]
    kernel_start: Ints
    kernel: Ints
    why: Ints
    before: Ints
    after: Ints
    texts: Sequence[str]
    step: Ints
    pass_names: Mapping[int, str]

    def __getitem__(self, node: int) -> Fate:
        kernels = self.kernel[self.kernel_start[node] : self.kernel_start[node + 1]].tolist()
        step = int(self.step[node])
        return Fate(
            KINDS[int(self.kind[node])],
            tuple(Node(self.hlo, i) for i in kernels),
            bool(self.inferred[node]),
            self.texts[int(self.why[node])],
            _PASS_NAMES.get(step) or self.pass_names.get(step, ""),
            step if step >= 0 else None,
            self.texts[int(self.before[node])],
            self.texts[int(self.after[node])],
        )

    @cached_property
    def counts(self) -> dict[str, int]:
        """Return the number of equations of each kind that occurs, in the order of `KINDS`."""
        counts = np.bincount(self.kind, minlength=len(KINDS)).tolist()
        return {kind: count for kind, count in zip(KINDS, counts, strict=True) if kind and count}

    @cached_property
    def mapped(self) -> float:
        """Return the share of equations with a known fate, 0 to 1; 0 without equations."""
        total = sum(self.counts.values())
        return 1.0 - self.counts.get("unknown", 0) / total if total else 0.0


@dataclass(frozen=True, slots=True)
class FateRow:
    """Fate of one equation, with its source line.

    Args:
        file, line: Source line, from 1; empty and 0 if unknown.
        equation, op: Name of the equation in its stage, and its operation.
        kind, why, pass_name, pass_number, before, after, inferred: Fields of its `Fate`.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     return jnp.tanh(x) * jnp.tanh(x)
        >>> row, = explorer.explore(f, jnp.ones(8)).fate_table(by="cse")
        >>> row.line, row.op, row.kind
        (2, 'tanh', 'merged')
    """

    file: str
    line: int
    equation: str
    op: str
    kind: str
    why: str
    pass_name: str
    pass_number: int | None
    before: str
    after: str
    inferred: bool


class FateTable(Sequence[FateRow], Framed):
    """Fates ordered by source line; fates without a line are last.

    Args:
        rows: Rows in any order.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> def f(x):
        ...     y = jnp.sin(x)
        ...     return x * 2
        >>> [(row.line, row.op, row.kind) for row in explorer.explore(f, jnp.ones(8)).fate_table()]
        [(2, 'sin', 'eliminated'), (3, 'mul', 'fused')]
    """

    def __init__(self, rows: Iterable[FateRow]) -> None:
        self._rows = tuple(sorted(rows, key=lambda row: (not row.file, row.file, row.line)))

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> FateRow: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[FateRow]: ...
    def __getitem__(self, at: int | slice) -> FateRow | Sequence[FateRow]:
        return self._rows[at]

    def __repr__(self) -> str:
        cells = [
            (str(row.line or "?"), row.op, row.kind, _step(row.pass_name, row.pass_number), row.why) for row in self
        ]
        head = ("line", "equation", "fate", "by", "why")
        return "\n".join(aligned([head, *cells]))


def _step(name: str, number: int | None) -> str:
    return name if number is None else f"{name} (pass {number})"
