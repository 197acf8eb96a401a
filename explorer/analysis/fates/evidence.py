"""What the recorded passes and the lowering say of a program's equations: taken out of its capture once, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.operations import hlo_name
from explorer.model.capture import Capture
from explorer.model.equation_sets import EXACT, EquationSets
from explorer.model.graph import Graph, Ints
from explorer.model.links import Links
from explorer.model.passes import Passes
from explorer.model.text_versions import Versions


class Pairs(NamedTuple):
    """Which equations lines, operations or instructions are of, a pair for each equation; by row, then by equation.

    Args:
        row, equation: Shape `[pairs]`.
        exact: Whether that is beyond doubt, shape `[pairs]`.
        code: Of each row, what it shares with the rows of the same equations; -1 where these are in doubt.
    """

    row: Ints
    equation: Ints
    exact: NDArray[np.bool_]
    code: Ints

    def certain(self) -> tuple[Ints, Ints]:
        """The pairs beyond doubt."""
        return self.row[self.exact], self.equation[self.exact]


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all fates of one capture are read from.

    Args:
        passes, versions: What was recorded.
        snapshots: The rows of each.
        lines: Pairs of each line, and of each state that a line took on later, with the first stage's equations.
        lowered: Likewise of StableHLO's operations.
        instructions: Likewise of those of the program that runs.
        lowering: StableHLO's graph; `user_start` and `user` are who reads each operation.
        text: StableHLO's lines.
        first: The name of the first stage.
        does: Which operations do something, shape `[operations]`.
        is_all_lowered: Whether it is known of every operation which equation it is of.
    """

    passes: Passes
    versions: Versions
    snapshots: Sequence[Ints]
    lines: Pairs
    lowered: Pairs
    instructions: Pairs
    lowering: Graph
    user_start: Ints
    user: Ints
    text: Sequence[str]
    first: str
    does: NDArray[np.bool_]
    is_all_lowered: bool

    def op(self, row: int) -> str:
        """The operation of a row that is an instruction; empty for any other."""
        code = int(self.versions.op[row])
        return self.versions.ops[code] if code >= 0 else ""

    def equations_of(self, row: int) -> list[int]:
        """The equations that a line named when it came."""
        start, end = np.searchsorted(self.lines.row, (row, row + 1))
        return self.lines.equation[start:end].tolist()

    def codes_of_operations(self, operation: Ints, equation: Ints) -> tuple[Ints, NDArray[np.int64]]:
        """Of pairs of a StableHLO operation and an equation, a number for the equation and HLO's name of the operation.

        It is `equation * len(versions.ops) + op`. Without the operations whose name no line has: the others, and their
        numbers.
        """
        ops = self.versions.ops
        code = {op: i for i, op in enumerate(ops)}
        own_code = np.asarray([code.get(hlo_name(op), -1) for op in self.lowering.ops] or [-1], np.int64)
        op = own_code[self.lowering.op[operation]]
        return operation[op >= 0], (equation.astype(np.int64) * len(ops) + op)[op >= 0]

    def since_they_came(self) -> Pairs:
        """The `lines` without later states: what a pass gives a line then, another instruction had."""
        end = int(np.searchsorted(self.lines.row, len(self.versions.lines)))
        return Pairs(self.lines.row[:end], self.lines.equation[:end], self.lines.exact[:end], self.lines.code)


def evidence_of(capture: Capture, links: Links, passes: Passes | None) -> Evidence | None:
    """What the passes say, None where they are not recorded with the equations of each line.

    Args:
        capture: Has the stages.
        links: Of its stages.
        passes: What was recorded, None for nothing.
    """
    if passes is None or passes.versions.equations is None or "hlo" not in capture.exact_sets:
        return None
    versions, stablehlo = passes.versions, capture.stablehlo
    text, graph = stablehlo.text, stablehlo.graph
    snapshots, (user_start, user) = versions.replay(), graph.user_columns
    _ = passes.links  # with all that it needs: they are followed below
    sets = (passes.versions.equations, links.sets["stablehlo"], links.sets["hlo"])
    columns = sets[0].pairs, sets[1].pairs, sets[2].pairs
    does, first = graph.is_equation, links.first
    lines, lowered, instructions = map(_pairs, sets, columns)
    return Evidence(
        passes,
        versions,
        snapshots,
        lines,
        lowered,
        instructions,
        graph,
        user_start,
        user,
        text.splitlines(),
        first,
        does,
        bool((sets[1].grade[does] == EXACT).all()),
    )


def _pairs(sets: EquationSets, columns: tuple[Ints, Ints]) -> Pairs:
    row, equation = columns
    is_exact = sets.grade == EXACT
    return Pairs(row, equation, is_exact[row], np.where(is_exact, sets.code, -1).astype(np.int32))
