"""What became of each equation: kept, fused, duplicated, folded, eliminated, inlined, or not known.

The compiler's metadata shows what an instruction with the equation's own place and primitive is. The rest is inferred,
and only where no other answer is left: what nothing reads is eliminated; what is written twice is computed once; a
number that depends on no argument was computed while compiling; what is made and read inside one kernel happens there,
or not at all. Everything else is unmapped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from explorer.analysis.fates.inference import infer
from explorer.analysis.fates.metadata_fates import NamedEquations, Row, instructions_of, metadata_fates
from explorer.analysis.links.dependence import argument_sets
from explorer.model.capture import Capture
from explorer.model.fates import KINDS, Fates
from explorer.model.graph import Graph


def all_fates(capture: Capture) -> Mapping[str, Fates]:
    """The fates of the equations of every stage before `hlo`, by stage.

    Raises:
        UnknownNameError: The capture has no `hlo` stage.
    """
    links, hlo_graph = capture.links, capture.hlo.graph
    stages = {stage.name: stage.graph for stage in capture.stages if stage.name != "hlo"}
    named = {
        name: NamedEquations(graph, graph.is_equation, links.equation_counts(name, "hlo"), links.table(name, "hlo"))
        for name, graph in stages.items()
    }
    hlo = instructions_of(hlo_graph)
    fates: dict[str, Fates] = {}
    for name, equations in named.items():
        by_metadata = metadata_fates(equations, hlo)
        if any(row.kind in ("unmapped", "inlined") for row in by_metadata.rows):
            infer(by_metadata, links.argument_sets.get(name) or argument_sets(equations.graph, {}))
        fates[name] = _columns(hlo_graph, by_metadata.rows)
    return fates


def _columns(hlo: Graph, rows: Sequence[Row]) -> Fates:
    reasons = list(dict.fromkeys(row.why for row in rows))
    reason_code = {reason: code for code, reason in enumerate(reasons)}
    kind_code = {kind: code for code, kind in enumerate(KINDS)}
    return Fates(
        hlo=hlo,
        kind=np.asarray([kind_code[row.kind] for row in rows], np.int32),
        inferred=np.asarray([row.inferred for row in rows], bool),
        kernel_start=np.cumsum([0, *(len(row.kernels) for row in rows)], dtype=np.int32),
        kernel=np.asarray([kernel for row in rows for kernel in row.kernels], np.int32),
        why=np.asarray([reason_code[row.why] for row in rows], np.int32),
        reasons=reasons,
    )
