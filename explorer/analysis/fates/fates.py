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
from explorer.analysis.fates.metadata_fates import Row, instructions_of, metadata_fates
from explorer.analysis.links.dependence import argument_sets
from explorer.model.capture import Capture
from explorer.model.fates import KINDS, Fates
from explorer.model.graph import Graph

__all__ = ["all_fates"]


def all_fates(capture: Capture) -> Mapping[str, Fates]:
    """The fates of the equations of every stage before `hlo`, by stage.

    Raises:
        KeyError: The capture has no `hlo` stage.
    """
    graph, links = capture.hlo.graph, capture.links
    hlo = instructions_of(graph)
    fates: dict[str, Fates] = {}
    for stage in capture.stages:
        if stage.name != "hlo":
            found = metadata_fates(stage.name, stage.graph, links, hlo)
            if any(row.kind in ("unmapped", "inlined") for row in found.rows):
                depends = links.argument_sets.get(stage.name)
                infer(found, depends or argument_sets(stage.graph, {}))
            fates[stage.name] = _columns(graph, found.rows)
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
