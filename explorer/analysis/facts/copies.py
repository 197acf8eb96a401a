"""Kernels that compute nothing: they copy or transpose, because somebody wants another layout."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.facts.lines import lines_of
from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints
from explorer.model.units import share_text

_COPIES = frozenset(("copy", "transpose", "copy-start", "copy-done"))
_STILL = frozenset(("parameter", "constant", "bitcast", "reshape", "tuple", "get-tuple-element", "fusion"))
_WORTH = 0.05  # of the bytes


def copies(capture: Capture) -> Iterator[Fact]:
    """One fact, where such kernels move a part of the bytes that is worth a sentence."""
    graph = capture.hlo.graph
    kernels = running_nodes(graph)
    moved = graph.measures.get("bytes", np.full(len(graph.names), np.nan))
    copying = copying_kernels(graph, kernels)
    share = float(moved[copying].sum() / moved[kernels].sum()) if moved[kernels].sum() > 0 else 0.0
    if not len(copying) or share < _WORTH:
        return
    where = lines_of(capture, graph, copying.tolist())
    if len(copying) == 1:
        text = f"{'The' if len(kernels) == 1 else '1'} kernel only copies or transposes"
    else:
        text = f"{'All' if len(copying) == len(kernels) else f'{len(copying):,}'} kernels only copy or transpose"
    text += f", for {where}" if where else ""
    yield Fact("copies", f"{text}: {share_text(share)} of the bytes.", share, "hlo", tuple(copying.tolist()))


def copying_kernels(graph: Graph, kernels: Ints) -> Ints:
    """Those in which nothing but copies and transposes is, and at least one."""
    ops = graph.ops
    copies_, still = (np.asarray([op in names for op in ops] or [False])[graph.op] for names in (_COPIES, _STILL))
    at, inside = graph.kernel, graph.kernel >= 0
    has_copy, computes = np.zeros((2, len(graph.names)), bool)
    has_copy[at[inside & copies_]] = True
    computes[at[inside & ~copies_ & ~still]] = True
    return kernels[has_copy[kernels] & ~computes[kernels]]
