"""What happened to each equation: kept, fused, merged, folded, eliminated, …, and by which pass.

Passes recorded with the equations of each line show it. Without them, the compiler's metadata shows which
instructions have the equation's own place and primitive. Everything else is unknown: an equation is in a kernel only
if the kernel has an instruction of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.hlo_operations import HELPERS, hlo_name
from explorer.analysis.metadata_fates import Instructions, NamedEquations, Row, instructions_of, metadata_fates
from explorer.analysis.origins import Origins
from explorer.analysis.recorded_fates import Recorded
from explorer.model.capture import Capture
from explorer.model.declared import uncollected
from explorer.model.fates import KINDS, FateRow, Fates, FateTable
from explorer.model.graph import Graph
from explorer.model.links import Links
from explorer.model.passes import Passes

# These texts must be equal before and after saving.
_UNRECORDED = "no instruction carries its name; recorded passes would show it (capture.passes, or %explore --passes)"
_LOST = "no instruction carries its name"
_NOTED = "no instruction carries its name, and the recording doesn't show it: {}"


@uncollected()
def all_fates(capture: Capture, links: Links, origins: Origins | str, passes: Passes | None) -> Mapping[str, Fates]:
    """Return the fates of the equations of every stage before `hlo`, by stage.

    Raises:
        UnknownNameError: The capture has no `hlo` stage.
    """
    hlo_graph = capture.hlo.graph
    hlo = instructions_of(hlo_graph, hlo_graph.kernel)
    names = [*filter("hlo".__ne__, links.graphs)]
    if isinstance(origins, Origins):
        recorded = Recorded(origins, hlo, next(iter(links.graphs.values())).names)
        rows = {name: recorded.rows(name, links.graphs[name]) for name in names}
    else:
        rows = {name: _by_metadata(links, name, hlo) for name in names}
    fault = origins if isinstance(origins, str) else ""
    why = fault or _unknown(has_passes=passes is not None, note=capture.recording_note)
    return {name: _columns(hlo_graph, [_described(row, why) for row in rows[name]], passes) for name in names}


def _by_metadata(links: Links, name: str, hlo: Instructions) -> list[Row]:
    graph = links.graphs[name]
    counts, table = links.equation_counts(name, "hlo"), links.table(name, "hlo")
    rows = metadata_fates(NamedEquations(graph, graph.is_equation, counts, table, _computes(links)[name]), hlo)
    return [replace(row, inferred=True) if row.kernels else row for row in rows]


def _unknown(*, has_passes: bool, note: str) -> str:
    """Return the reason why a fate is unknown, with a hint if recording passes would help."""
    if not has_passes:
        return _UNRECORDED
    return _NOTED.format(note) if note else _LOST


def _computes(links: Links) -> Mapping[str, NDArray[np.bool_]]:
    """Return by stage a mask of the nodes that compute, according to StableHLO; all False without it and in `hlo`."""
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


def _described(row: Row, unknown: str) -> Row:
    return replace(row, why=unknown) if row.kind == "unknown" and not row.why else row


def _columns(hlo: Graph, rows: Sequence[Row], passes: Passes | None) -> Fates:
    texts = list(dict.fromkeys(chain([""], *[(row.why, row.before, row.after) for row in rows])))
    code = {text: i for i, text in enumerate(texts)}
    kind_code = {kind: i for i, kind in enumerate(KINDS)}
    steps = sorted({row.step for row in rows if row.step > 0})
    return Fates(
        hlo=hlo,
        kind=np.asarray([kind_code[row.kind] for row in rows], np.int32),
        inferred=np.asarray([row.inferred for row in rows], bool),
        kernel_start=np.cumsum([0, *[len(row.kernels) for row in rows]], dtype=np.int32),
        kernel=np.asarray([kernel for row in rows for kernel in row.kernels], np.int32),
        why=np.asarray([code[row.why] for row in rows], np.int32),
        before=np.asarray([code[row.before] for row in rows], np.int32),
        after=np.asarray([code[row.after] for row in rows], np.int32),
        texts=texts,
        step=np.asarray([row.step for row in rows], np.int32),
        pass_names={step: passes[step - 1].name for step in steps} if passes is not None else {},
    )


def fate_table(capture: Capture, by: str | int | None = None, stage: str = "jaxpr") -> FateTable:
    """Return a row for each equation; with `by`, a pass's name or number, for those that this pass ended.

    See `Capture.fate_table`.
    """
    fates, graph = capture.fates_of(stage), capture.stage(stage).graph
    rows: list[FateRow] = []
    for node in graph.nodes:
        fate, place = fates[node.index], graph.attribution.place(node.index)
        if not fate.kind or (by is not None and by not in (fate.pass_name, fate.pass_number)):
            continue
        file, line = (place.file, place.line) if place is not None else ("", 0)
        by_pass = fate.pass_name, fate.pass_number
        lines = fate.before, fate.after
        rows.append(FateRow(file, line, node.name, node.op, fate.kind, fate.why, *by_pass, *lines, fate.inferred))
    return FateTable(rows)
