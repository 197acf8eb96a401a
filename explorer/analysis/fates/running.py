"""Which equations an instruction of the program that runs is of, beyond doubt: none of these is gone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.evidence import Evidence
from explorer.analysis.fates.metadata_fates import MetadataFates
from explorer.analysis.fates.operations import HELPERS, NEVER_OWN, hlo_name


class Running(NamedTuple):
    """Of each equation of the first stage, shape `[n]`, whether an instruction of its runs, and as what.

    Args:
        runs: Whether any does.
        as_it_was: Whether one does that is the same operation as StableHLO has for it.
    """

    runs: NDArray[np.bool_]
    as_it_was: NDArray[np.bool_]


def running(fates: MetadataFates, evidence: Evidence) -> Running:
    """Find the equations of which an instruction runs.

    An instruction that took in the name of what it reads, as a `tanh` does that of a multiplication by 1, is not of
    that one: it does what another equation of its set does.

    Args:
        fates: By metadata, of the first stage.
        evidence: What every instruction and StableHLO operation is of.
    """
    hlo, graph, stablehlo = fates.hlo, fates.graph, evidence.lowering
    ops, count = hlo.graph.ops, len(graph.names)
    operation, of = evidence.lowered.certain()
    does = np.zeros(count, bool)
    does[of[np.asarray([*(hlo_name(op) not in HELPERS for op in stablehlo.ops)], bool)[stablehlo.op[operation]]]] = True
    own_code = np.asarray([hlo.code.get(hlo_name(op), -1) for op in stablehlo.ops], np.int64)[stablehlo.op[operation]]
    own_keys = (of.astype(np.int64) * len(ops) + own_code)[own_code >= 0]
    row, equation = evidence.instructions.certain()
    helps, never = (np.asarray([op in names for op in ops], bool)[hlo.graph.op[row]] for names in (HELPERS, NEVER_OWN))
    counts = np.where(does[equation], ~helps, ~never) & (np.asarray(hlo.kernel, np.int64)[row] >= 0)
    row, equation = row[counts], equation[counts]
    is_own = np.isin(equation.astype(np.int64) * len(ops) + hlo.graph.op[row], own_keys)
    has_own = np.zeros(len(hlo.kernel), bool)
    has_own[row[is_own]] = True
    runs, runs_as_own = np.zeros(count, bool), np.zeros(count, bool)
    runs[equation[is_own | ~has_own[row]]] = True
    runs_as_own[equation[is_own]] = True
    return Running(runs, runs_as_own)
