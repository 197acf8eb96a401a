"""How a stage divides into groups, and how much runs in each: what picture and terminal show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from explorer.analysis.cost.kernels import BOUNDARY, running_nodes
from explorer.model.capture import Capture
from explorer.model.graph import Group
from explorer.model.stage import Stage
from explorer.model.units import bytes_text

__all__ = ["TITLES", "Part", "parts_of", "peak_text"]

TITLES = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "before": "HLO before", "hlo": "HLO"}
_FEW = 16  # operations: a stage without groups is told by those
_PHASES = ("forward", "backward", "update")


@dataclass(eq=False)
class Part:
    """One group and how much runs in it: kernels in HLO, operations before."""

    name: str
    order: float  # where it stands among its siblings
    size: int = 0
    repeats: bool = False  # its children are its iterations, equal to each other
    children: list[Part] = field(default_factory=list["Part"])


def parts_of(stage: Stage) -> Part:
    """The stage's groups, in program order, with what runs in each."""
    graph, tree = stage.graph, stage.graph.hierarchy
    counted = running_nodes(graph).tolist() if stage.name == "hlo" else range(len(graph))
    nodes: list[list[int]] = [[] for _ in tree.groups]
    for node in counted:
        at = int(tree.group[node])
        while at >= 0:
            nodes[at].append(node)
            at = tree.groups[at].parent
    root = Part("", 0, len(counted))
    parts = [
        Part(group.name, _order(group, inside), len(inside), group.kind == "repeat")
        for group, inside in zip(tree.groups, nodes, strict=True)
    ]
    for group, part in zip(tree.groups, parts, strict=True):
        if part.size and group.kind not in (*BOUNDARY, "inputs", "outputs"):
            (parts[group.parent] if group.parent >= 0 else root).children.append(part)
    for part in (root, *parts):
        part.children.sort(key=lambda child: child.order)
    if not root.children and len(counted) <= _FEW:
        root.children = [Part(graph.names[node], node, 1) for node in counted]
    return root


def peak_text(capture: Capture) -> str:
    """`memory peak 22.6 MB`; nothing where there is no schedule to tell it from."""
    try:
        return f"memory peak {bytes_text(capture.live_memory.peak)}"
    except Exception:  # a text that runs in no order that can be followed is still shown
        return ""


def _order(group: Group, nodes: Sequence[int]) -> float:
    """A schedule mixes groups, so the middle of their nodes counts; phases have an order of their own."""
    phase = group.name.partition(" ")[0]
    if group.kind == "phase" and phase in _PHASES:
        return _PHASES.index(phase) - len(_PHASES)
    return sum(nodes) / len(nodes) if nodes else 0
