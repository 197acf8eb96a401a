"""What the recorded passes and the lowering say of a program's equations: taken out of its capture once, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.operations import hlo_name
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.graph import Graph, Ints
from explorer.model.links import EXACT, EquationSets
from explorer.model.passes import Passes
from explorer.model.text_versions import Versions

_CALLS = ("call", "func.call")


class Named(NamedTuple):
    """The equations that lines or operations name.

    Args:
        sets: Those of each.
        code: Of each row, what it shares with the rows of the same equations; -1 where these are in doubt.
    """

    sets: EquationSets
    code: Ints

    @staticmethod
    def of(sets: EquationSets) -> Named:
        return Named(sets, np.where(sets.grade == EXACT, sets.code, -1).astype(np.int32))

    def certain(self, among: Ints | None = None) -> tuple[Ints, Ints]:
        """The pairs of a row and an equation that are beyond doubt, of all rows or those `among` them; by row."""
        is_certain = self.code >= 0
        if among is not None:
            is_wanted = np.zeros(len(is_certain), bool)
            is_wanted[among] = True
            is_certain &= is_wanted
        return self.sets.pairs_of(np.flatnonzero(is_certain).astype(np.int32))


@dataclass(frozen=True, eq=False)
class Evidence:
    """What all fates of one capture are read from.

    Args:
        passes: What was recorded, with the equations of each line.
        lines: The first stage's equations of each line, and of each state that a line took on later.
        lowered: Likewise of StableHLO's operations.
        lowering: StableHLO's graph.
        text: StableHLO's lines.
        first: The name of the first stage.
    """

    passes: Passes
    lines: Named
    lowered: Named
    lowering: Graph
    text: Sequence[str]
    first: str

    @property
    def versions(self) -> Versions:
        return self.passes.versions

    @cached_property
    def does(self) -> NDArray[np.bool_]:
        """Which operations do something, shape `[operations]`."""
        return self.lowering.is_equation

    @cached_property
    def is_all_lowered(self) -> bool:
        """Return True if the equation of every operation that computes is known.

        JAX itself constrains the sharding of each argument and result that is a key.
        """
        computes = np.asarray([not op.startswith("sdy.") for op in self.lowering.ops] or [False], bool)
        return bool((self.lowered.code[self.does & computes[self.lowering.op]] >= 0).all())

    def op(self, row: int) -> str:
        """The operation of a row that is an instruction; empty for any other."""
        code = int(self.versions.op[row])
        return self.versions.ops[code] if code >= 0 else ""

    def equations_of(self, row: int) -> list[int]:
        """The equations that a line named when it came."""
        return self.lines.sets.of(row).tolist()

    def outermost(self) -> tuple[Ints, Ints]:
        """The StableHLO operations with their equations, but for those in a region of another one of the same equation.

        A reduction's addition and a loop's counter are there as long as it is, and may be left behind for a while.
        """
        graph, code = self.lowering, self.lowered.code
        operation, equation = self.lowered.certain()
        caller = np.asarray([*(group.caller for group in graph.groups), -1], np.int32)[graph.group[operation]]
        calls = np.asarray([op in _CALLS for op in graph.ops] or [False], bool)[graph.op]
        is_inner = (caller >= 0) & (code[caller] == code[operation]) & ~calls[caller]
        return operation[~is_inner], equation[~is_inner]

    def functions(self) -> Ints:
        """Of each StableHLO operation the group of the function that it is in, -1 for none."""
        outermost: list[int] = []  # by group; a group is after the one around it
        for at, group in enumerate(self.lowering.groups):
            is_inside = group.kind not in ("function", "entry") and 0 <= group.parent < at
            outermost.append(outermost[group.parent] if is_inside else at)
        return np.asarray([*outermost, -1], np.int32)[self.lowering.group]

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


def evidence_of(capture: Capture) -> Evidence | None:
    """What the passes say, None where they are not recorded with the equations of each line."""
    if not capture.has_passes or not {"hlo", "stablehlo"} <= capture.exact_sets.keys():
        return None
    passes, stablehlo = capture.passes, capture.stablehlo
    if passes.versions.equations is None:
        return None
    lines, lowered = (Named.of(sets) for sets in (passes.versions.equations, capture.exact_sets["stablehlo"]))
    return Evidence(passes, lines, lowered, stablehlo.graph, stablehlo.text.splitlines(), capture.stages[0].name)
