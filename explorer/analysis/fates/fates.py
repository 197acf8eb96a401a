"""What became of each equation: kept, fused, merged, folded, eliminated, …, by which pass, or not known.

Where the passes are recorded with the equations of each line, they say it. Without them the compiler's metadata shows
what an instruction with the equation's own place and primitive is, and little is inferred: what nothing reads is
eliminated, what is written twice is computed once, a number that depends on no argument was computed while compiling.
Everything else is unknown: that an equation is in a kernel is said only where the kernel has an instruction of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.inference import infer
from explorer.analysis.fates.metadata_fates import NamedEquations, Row, instructions_of, metadata_fates
from explorer.analysis.fates.operations import HELPERS, hlo_name
from explorer.analysis.fates.recorded_fates import recorded_fates
from explorer.analysis.links.dependence import argument_sets
from explorer.model.capture import Capture
from explorer.model.equation_sets import EXACT
from explorer.model.fates import KINDS, Fates
from explorer.model.graph import Graph
from explorer.model.links import Links
from explorer.model.passes import Passes

# The same before and after saving: a file has to give back what was shown.
_UNRECORDED = "no instruction bears its name; recorded passes would tell (capture.passes, or %explore --passes)"
_LOST = "no instruction bears its name"
_NOTED = "no instruction bears its name, and the recording can't tell: {}"


def all_fates(capture: Capture) -> Mapping[str, Fates]:
    """The fates of the equations of every stage before `hlo`, by stage.

    Raises:
        UnknownNameError: The capture has no `hlo` stage.
    """
    links, hlo_graph = capture.links, capture.hlo.graph
    passes = capture.passes if capture.has_passes else None
    is_recorded = passes is not None and passes.versions.equations is not None and "hlo" in capture.exact_sets
    if is_recorded:  # what was inferred beside it is no evidence
        links = replace(links, sets={**links.sets, "hlo": links.sets["hlo"].only(EXACT)})
    stages = {stage.name: stage for stage in capture.stages if stage.name != "hlo"}
    hlo = instructions_of(hlo_graph)
    why = _unknown(capture)
    fates: dict[str, Fates] = {}
    first: Sequence[Row] = ()
    for name, stage in stages.items():
        graph = stage.graph
        equations = NamedEquations(
            graph,
            graph.is_equation,
            links.equation_counts(name, "hlo"),
            links.table(name, "hlo"),
            _computes(links, graph, name),
        )
        by_metadata = metadata_fates(equations, hlo)
        depends = links.argument_sets.get(name) or argument_sets(graph, {})
        if is_recorded:
            recorded_fates(capture, name, by_metadata, equations.computes, depends, first)
            first = first or by_metadata.rows
        else:
            infer(by_metadata, depends)
        rows = [_described(row, why, is_exact=is_recorded) for row in by_metadata.rows]
        fates[name] = _columns(hlo_graph, rows, passes)
    return fates


def _unknown(capture: Capture) -> str:
    """Why a fate is unknown, and what could make it known."""
    if not capture.has_passes:
        return _UNRECORDED
    return _NOTED.format(capture.recording_note) if capture.recording_note else _LOST


def _computes(links: Links, graph: Graph, stage: str) -> NDArray[np.bool_]:
    """Which nodes of a stage do more than bring a value into another form or place: as StableHLO says it."""
    lowered = links.graphs.get("stablehlo")
    if lowered is None:
        return np.zeros(len(graph.names), bool)
    does = np.asarray([hlo_name(op) not in HELPERS for op in lowered.ops] or [False], bool)[lowered.op]
    does &= lowered.is_equation
    if stage == "stablehlo":
        return does
    computes = np.zeros(len(graph.names), bool)
    row, equation = links.sets["stablehlo"].pairs
    computes[equation[does[row]]] = True
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
