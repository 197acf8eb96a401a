"""What became of each equation: kept, fused, merged, folded, eliminated, …, by which pass, or not known.

Where the passes are recorded with the equations of each line, they say it. Without them the compiler's metadata shows
what an instruction with the equation's own place and primitive is, and little is inferred: what nothing reads is
eliminated, what is written twice is computed once, a number that depends on no argument was computed while compiling.
Everything else is unknown: that an equation is in a kernel is said only where the kernel has an instruction of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.evidence import Evidence, evidence_of
from explorer.analysis.fates.inference import infer
from explorer.analysis.fates.metadata_fates import NamedEquations, Row, instructions_of, metadata_fates
from explorer.analysis.fates.operations import HELPERS, hlo_name
from explorer.analysis.fates.recorded_fates import StageFates, replace_by_recorded
from explorer.analysis.links.dependence import argument_sets
from explorer.analysis.links.equations import is_dead
from explorer.model.capture import Capture
from explorer.model.equation_sets import EXACT
from explorer.model.fates import KINDS, Fates
from explorer.model.graph import Graph, Ints
from explorer.model.links import Links
from explorer.model.passes import Passes

# The same before and after saving: a file has to give back what was shown.
_UNRECORDED = "no instruction bears its name; recorded passes would tell (capture.passes, or %explore --passes)"
_LOST = "no instruction bears its name"
_NOTED = "no instruction bears its name, and the recording can't tell: {}"
_FAULT = "the recorded passes could not be followed ({}): fates are from the compiler's metadata alone"


def all_fates(capture: Capture) -> Mapping[str, Fates]:
    """The fates of the equations of every stage before `hlo`, by stage.

    Raises:
        UnknownNameError: The capture has no `hlo` stage.
    """
    links, hlo_graph, kernels = capture.links, capture.hlo.graph, capture.hlo.graph.kernel
    passes = capture.passes if capture.has_passes else None
    evidence = evidence_of(capture, links, passes)
    if evidence is not None:  # what was inferred beside it is no evidence
        links = replace(links, sets={**links.sets, "hlo": links.sets["hlo"].only(EXACT)})
    columns: list[_Columns] = []
    for name, graph in links.graphs.items():
        if name != "hlo":
            literals = graph.attribute_table.codes("literals")
            counts, table = links.equation_counts(name, "hlo"), links.table(name, "hlo")
            columns.append(_Columns(name, graph, graph.is_equation, counts, table, literals))
    computes, hlo = _computes(links), instructions_of(hlo_graph, kernels)

    def by_metadata() -> list[StageFates]:
        return [
            StageFates(
                own.name,
                metadata_fates(NamedEquations(*own[1:5], computes[own.name]), hlo),
                computes[own.name],
                argument_sets(own.graph, {}),
                is_dead(own.graph),
                own.literals,
            )
            for own in columns
        ]

    stages = by_metadata()
    fault = _follow_passes(evidence, stages) if evidence is not None else ""
    if fault:
        stages = by_metadata()
    is_exact = evidence is not None and not fault
    for stage in stages if not is_exact else ():
        infer(stage.fates, stage.depends, stage.dead)
    why = fault or _unknown(has_passes=passes is not None, note=capture.recording_note)
    return {
        stage.name: _columns(hlo_graph, [_described(row, why, is_exact=is_exact) for row in stage.fates.rows], passes)
        for stage in stages
    }


def _follow_passes(evidence: Evidence, stages: Sequence[StageFates]) -> str:
    """Replace the rows of the fates by what the passes say; what went wrong, empty as a rule.

    What the passes don't say is a value, never an error. So any error is a defect of ours, or damaged data: it costs
    neither the user their view nor us the knowledge of it.
    """
    try:
        replace_by_recorded(evidence, stages)
    except Exception as error:
        fault = _FAULT.format(f"{type(error).__name__}: {error}")
        warnings.warn(f"explorer: {fault}. Please report this.", RuntimeWarning, 2)
        return fault
    return ""


def _unknown(*, has_passes: bool, note: str) -> str:
    """Why a fate is unknown, and what could make it known; `note` is why the recording doesn't tell more."""
    if not has_passes:
        return _UNRECORDED
    return _NOTED.format(note) if note else _LOST


class _Columns(NamedTuple):
    """A stage with what is asked of it and its links: as in `NamedEquations` and `StageFates`."""

    name: str
    graph: Graph
    is_equation: NDArray[np.bool_]
    shares: Sequence[int]
    linked: dict[int, list[int]]
    literals: Ints


def _computes(links: Links) -> Mapping[str, NDArray[np.bool_]]:
    """Which nodes of each stage do more than bring a value into another form or place: as StableHLO says it.

    A capture without StableHLO doesn't say it of any.
    """
    computes = {name: np.zeros(len(graph.names), bool) for name, graph in links.graphs.items()}
    if (lowered := links.graphs.get("stablehlo")) is None:
        return computes
    is_equation, sets = lowered.is_equation, links.sets.get("stablehlo")
    row, equation = sets.pairs if sets is not None else (np.zeros(0, np.int32),) * 2
    first = computes[links.first]
    does = np.asarray([hlo_name(op) not in HELPERS for op in lowered.ops] or [False], bool)[lowered.op] & is_equation
    first[equation[does[row]]] = True
    computes["stablehlo"] = does
    return computes


def _described(row: Row, unknown: str, *, is_exact: bool) -> Row:
    if row.kind == "unknown" and not row.why:
        return Row(row.kind, row.kernels, row.inferred, unknown)
    if row.kernels and not is_exact and not row.inferred:
        return replace(row, inferred=True)
    return row


def _columns(hlo: Graph, rows: Sequence[Row], passes: Passes | None) -> Fates:
    texts = list(dict.fromkeys(chain([""], *((row.why, row.before, row.after) for row in rows))))
    code = {text: i for i, text in enumerate(texts)}
    kind_code = {kind: i for i, kind in enumerate(KINDS)}
    steps = sorted({row.step for row in rows if row.step > 0})
    return Fates(
        hlo=hlo,
        kind=np.asarray([kind_code[row.kind] for row in rows], np.int32),
        inferred=np.asarray([row.inferred for row in rows], bool),
        kernel_start=np.cumsum([0, *(len(row.kernels) for row in rows)], dtype=np.int32),
        kernel=np.asarray([kernel for row in rows for kernel in row.kernels], np.int32),
        why=np.asarray([code[row.why] for row in rows], np.int32),
        before=np.asarray([code[row.before] for row in rows], np.int32),
        after=np.asarray([code[row.after] for row in rows], np.int32),
        texts=texts,
        step=np.asarray([row.step for row in rows], np.int32),
        pass_names={step: passes[step - 1].name for step in steps} if passes is not None else {},
    )
