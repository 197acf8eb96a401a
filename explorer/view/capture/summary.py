"""Figures of a capture: its stages, and the groups of the last stage with how much runs in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from explorer.analysis.analysis import Analysis, analyze
from explorer.analysis.attribution import StageCoverage
from explorer.analysis.facts import INTENSE
from explorer.analysis.graphs import graph_of, has_entry
from explorer.analysis.kernel_costs import BOUNDARY
from explorer.model.capture import Capture
from explorer.model.findings import Finding
from explorer.model.graph import Floats, Group, Hierarchy, Ints
from explorer.model.links import EXACT, GRADES, INFERRED
from explorer.model.live_memory import NO_SCHEDULE
from explorer.model.stage import Stage
from explorer.model.units import bytes_text
from explorer.view.findings.text_parts import summarize_rules

_TITLES = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "before": "HLO before", "hlo": "HLO"}
_UNITS = {"jaxpr": "equations", "stablehlo": "operations", "before": "instructions", "hlo": "instructions"}
_NAMED_BY_KIND = ("body", "condition", "branch")
_FEW = 16  # operations: a stage without groups is shown by those
_PHASES = ("forward", "backward", "update")


@dataclass(eq=False)
class Part:
    """Group with the number of kernels in it; before HLO, of operations."""

    name: str
    order: float  # sort key among its siblings
    size: int = 0
    cost: float = 0.0  # in the measure of the summary
    repeats: bool = False  # its children are its iterations, equal to each other or nearly so
    children: list[Part] = field(default_factory=list["Part"])

    @property
    def usual(self) -> Part:
        """Return the iteration that represents all: the median by size and cost."""
        # The first or the last iteration may differ from the others.
        return sorted(self.children, key=lambda child: (child.size, child.cost))[len(self.children) // 2]


@dataclass(frozen=True)
class StageSummary:
    """Figures of a stage.

    Args:
        title: Name to display.
        unit: Noun for its nodes: `equations`, `instructions`.
        nodes: Number of nodes.
        kernels: Number of nodes that run as kernels; None before the optimized HLO.
        lines: Share of its operations that belong to a source line, `97%`.
        links: Share of the nodes with an `op_name` that are linked to equations, by grade: `exact 99%`; empty if none.
    """

    title: str
    unit: str
    nodes: int
    kernels: int | None
    lines: str
    links: str


@dataclass(frozen=True)
class CaptureSummary:
    """Figures of a capture that the picture, the table and the terminal show.

    Args:
        capture: The capture.
        stages: Stages in the compiler's order.
        findings: Findings from the trace.
        groups: Groups of the last stage; None without stages.
        measure: Measure of the groups' cost: `time`, `FLOPs` or `bytes`; where none is known, as before HLO, the unit
            of the stage's nodes.
        limits: Sentences about what the counts leave open.
        notes: Sentences about the failure, the findings, omitted source files, and why no link is exact.
        peak: `memory peak 22.6 MB`; empty where it is not known.
    """

    capture: Capture
    stages: Sequence[StageSummary]
    findings: Sequence[Finding]
    groups: Part | None
    measure: str
    limits: Sequence[str]
    notes: Sequence[str]
    peak: str


def summarize(capture: Capture) -> CaptureSummary:
    """Return a capture's figures per stage, the groups of its last stage with their cost, notes and peak memory."""
    analysis, last = analyze(capture), capture.stages[-1] if capture.stages else None
    program = graph_of(capture, "hlo")
    kernels = analysis.kernels if program is not None and has_entry(program) else None
    measure, costs = _costs(last, kernels) if last is not None else ("", np.zeros(0))
    groups = _groups(last, costs, kernels) if last is not None else None
    # Without `jax` the module is from elsewhere: its text may be huge, and follow no schedule.
    peak = _peak_text(analysis) if "jax" in capture.environment else ""
    findings = [*capture.findings]
    stages = [_stage(stage, analysis.of_coverage[stage.name], kernels) for stage in capture.stages]
    left_out = capture.environment.get("sources", "")
    rules = summarize_rules(capture.findings) if findings else ""
    notes = [*filter(None, (capture.failure, rules, left_out, capture.recording_note))]
    stages[:1] = [replace(first, links="") for first in stages[:1]]  # others are linked to it
    return CaptureSummary(capture, stages, findings, groups, measure, analysis.limits.sentences, notes, peak)


def _running(stage: Stage, kernels: Ints | None) -> Ints:
    """Return the indices of the nodes that run in a stage: the kernels of `hlo`, every node of another stage."""
    return kernels if stage.name == "hlo" and kernels is not None else np.arange(len(stage.graph.names), dtype=np.int32)


def _costs(stage: Stage, kernels: Ints | None) -> tuple[str, Floats]:
    """Return the measure and each node's cost, 0 for nodes that don't run.

    It is the measured time, else FLOPs or bytes (the dominant one), else 1 for each node.
    """
    graph, kernels = stage.graph, _running(stage, kernels)
    measures = {name: values[kernels] for name, values in graph.measures.items()}
    flops, moved = measures.get("flops"), measures.get("bytes")
    if measures.get("time", np.zeros(0)).sum() > 0:
        measure, values = "time", measures["time"]
    elif flops is None or moved is None or not ((flops > 0) | (moved > 0)).any():
        measure, values = _UNITS.get(stage.name, "nodes"), np.ones(len(kernels))
    elif flops.sum() > INTENSE * moved.sum():  # not where some kernel's FLOPs are unknown: the sum is NaN then
        measure, values = "FLOPs", flops
    else:
        measure, values = "bytes", moved
    costs = np.zeros(len(graph.names))
    costs[kernels] = np.nan_to_num(values)
    return measure, costs


def _stage(stage: Stage, coverage: StageCoverage, kernels: Ints | None) -> StageSummary:
    count = len(kernels) if stage.name == "hlo" and kernels is not None else None
    title, unit = _TITLES.get(stage.name, stage.name), _UNITS.get(stage.name, "nodes")
    return StageSummary(title, unit, len(stage.graph.names), count, _percent(coverage.lines), _links(coverage))


def _links(coverage: StageCoverage) -> str:
    """Return the share of linked nodes by grade, `exact 99% · inferred 1%`; shares below one percent are omitted."""
    shares = [(GRADES[grade], coverage.links[GRADES[grade]]) for grade in (EXACT, INFERRED)]
    return " · ".join(f"{grade} {_percent(share)}" for grade, share in shares if share >= 0.01)


def _percent(share: float) -> str:
    """Return the share in percent: rounded down, so that 100% means all; below one percent `<1%`."""
    # Rounded down, so that only all is 100%. A rounding error must not take one percent away.
    return f"{int(100 * share + 1e-6)}%" if not 0 < share < 0.01 else "<1%"


def _nodes_inside(tree: Hierarchy, nodes: Iterable[int]) -> list[list[int]]:
    """Return for each group those of `nodes` that are in it or in a group inside it."""
    inside: list[list[int]] = [[] for _ in tree.groups]
    for node in nodes:
        at = int(tree.group[node])
        while at >= 0:
            inside[at].append(node)
            at = tree.groups[at].parent
    return inside


def _part(group: Group, nodes: Sequence[int], costs: Floats) -> Part:
    cost = float(costs[list(nodes)].sum())
    # A loop's body has a number of the compiler's for a name: what it is says more.
    name = group.kind if group.kind in _NAMED_BY_KIND else group.name
    return Part(name, _order(group, nodes), len(nodes), cost, group.kind == "repeat")


def _groups(stage: Stage, costs: Floats, kernels: Ints | None) -> Part:
    """Return the groups of a stage as a tree, in program order, with how much runs in each."""
    graph, tree = stage.graph, stage.graph.hierarchy
    counted: list[int] = _running(stage, kernels).tolist()
    root = Part("", 0, len(counted), float(costs.sum()))
    inside = _nodes_inside(tree, counted)
    parts = [_part(group, nodes, costs) for group, nodes in zip(tree.groups, inside, strict=True)]
    for group, part in zip(tree.groups, parts, strict=True):
        if part.size and group.kind not in (*BOUNDARY, "inputs", "outputs"):
            (parts[group.parent] if group.parent >= 0 else root).children.append(part)
    for part in (root, *parts):
        part.children.sort(key=lambda child: child.order)
    if not root.children and len(counted) <= _FEW:
        root.children = [Part(graph.names[node], node, 1, float(costs[node])) for node in counted]
    return root


def _peak_text(analysis: Analysis) -> str:
    """Return `memory peak 22.6 MB`, or the reason if the HLO has no schedule; empty if the analysis fails."""
    try:
        memory = analysis.live_memory
        return f"memory peak {bytes_text(memory.peak)}" if memory.is_scheduled else f"memory: {NO_SCHEDULE}"
    except Exception:  # a text that runs in no order that can be followed is still shown
        return ""


def _order(group: Group, nodes: Sequence[int]) -> float:
    """Return the sort key of a group among its siblings."""
    # A schedule mixes groups, so the mean of their nodes counts. Phases come first, in their own order.
    phase = group.name.partition(" ")[0]
    if group.kind == "phase" and phase in _PHASES:
        return _PHASES.index(phase) - len(_PHASES)
    return sum(nodes) / len(nodes) if nodes else 0
