"""What the instructions of a profile do and move a call, counted as their seconds are: over all that ran of them.

The costs that a program's text tells are those of one execution, loops counted as often as the text knows. A call may
execute a program several times, and loop as often as its values say; the profiler saw how often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from explorer.analysis.cost.kernel_kind import kernel_kinds
from explorer.analysis.cost.kernels import BOUNDARY
from explorer.analysis.cost.trip_counts import trip_counts
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Graph, Ints
from explorer.model.results.profile import OpTime, Profile
from explorer.model.results.profile_events import THUNK, Events

_SEVERAL = frozenset(("sort",))  # these are several events of their own name
_NEAR = 0.1  # a call at the edge of what was recorded may lack some events: 2.97 is 3


@dataclass(frozen=True, slots=True)
class OpCost:
    """What one instruction does a call.

    Args:
        flops, bytes: Of all its runs; NaN where nobody knows.
        runs: How often it runs.
        dtype: What it computes in, as HLO writes it; empty where that is not known.
        is_matmul: Whether a matrix product or convolution does its work.
        special: Of the operations, how many take longer than a multiply-add, by HLO's name of the function.
    """

    flops: float
    bytes: float
    runs: float
    dtype: str = ""
    is_matmul: bool = False
    special: Mapping[str, float] = field(default_factory=dict[str, float])


def op_costs(profile: Profile) -> list[OpCost]:
    """What each of `profile.ops` does a call, in their order."""
    seen = _starts(profile.events) if profile.events is not None else {}
    by_program: dict[int, list[OpTime]] = {}
    for op in profile.ops:
        by_program.setdefault(op.program, []).append(op)
    by_op: dict[tuple[int, str], OpCost] = {}
    for program, ops in by_program.items():
        capture = profile.captures.get(program)
        costs = _costs_of_rows(ops) if capture is None else _counted(ops, capture, seen)
        by_op |= {(program, op.name): cost for op, cost in zip(ops, costs, strict=True)}
    return [by_op[op.program, op.name] for op in profile.ops]


def costs_of_bound(op: OpTime, cost: OpCost) -> OpCost:
    """The costs that a least time may be taken of: NaN where what the text tells is no least.

    A sort compares as often as the values ask for, by code of the program's own: by counted comparisons one of 300,000
    floats could be 12 times faster on a CPU, which nobody reaches. What a library does in a call that is no product and
    no decomposition is not known either.
    """
    is_library = op.op == "custom-call" and not cost.is_matmul
    if not (is_library or op.op == "sort" or cost.special.get("sort")):
        return cost
    return replace(cost, flops=math.nan, bytes=math.nan)


def _costs_of_rows(ops: Sequence[OpTime]) -> list[OpCost]:
    """The costs that the rows have already, where the program is unknown."""
    return [OpCost(op.flops, op.bytes, op.count) for op in ops]


def _counted(ops: Sequence[OpTime], capture: Capture, seen: Mapping[tuple[int, str], float]) -> list[OpCost]:
    graph = capture.hlo.graph
    kinds = kernel_kinds(graph)
    nodes = [graph[op.name].index if op.name in graph else -1 for op in ops]
    counts = [seen.get((op.program, op.name), math.nan) for op in ops]
    once = [_measure(graph, "runs", node) for node in nodes]  # in one execution; 0 where the text doesn't say
    executions = _executions([op.op for op in ops], counts, once)
    loops = _Loops(graph, nodes, counts)
    costs: list[OpCost] = []
    for op, node, runs in zip(ops, nodes, once, strict=True):
        if node < 0:
            costs.append(OpCost(op.flops, op.bytes, op.count))
            continue
        times, runs = (executions, runs * executions) if runs > 0 else loops.times(node)
        flops, moved = _measure(graph, "flops", node), _measure(graph, "bytes", node)
        special = {name: count * runs for name, count in kinds.special.get(node, {}).items()}
        costs.append(OpCost(flops * times, moved * times, runs, kinds.dtype[node], kinds.is_matmul[node], special))
    return costs


def with_counted_loops(graph: Graph, events: Events, program: int) -> Mapping[str, Floats]:
    """The measures of a program, with loops of unknown length counted as often as the profiler saw them run.

    What it saw nothing of, as a loop that was compiled as one, stays as the text has it.
    """
    measures = graph.measures
    runs = measures.get("runs")
    if runs is None or not np.isnan(runs).any():
        return measures
    seen = _starts(events)
    nodes = [node for node in np.flatnonzero(graph.kernel == np.arange(len(graph))).tolist() if runs[node] != 0]
    counts = [seen.get((program, graph.names[node]), math.nan) for node in nodes]
    once = [float(runs[node]) for node in nodes]
    executions = _executions([graph.ops[int(graph.op[node])] for node in nodes], counts, once)
    loops = _Loops(graph, nodes, counts)
    group = loops.nearest_seen()[graph.group]
    open_ended = np.isnan(runs) & (group >= 0)
    factor, counted = np.ones(len(graph)), runs.copy()
    for at in np.unique(group[open_ended]).tolist():
        inside = open_ended & (group == at)
        counted[inside] = loops.seen[at] / executions
        factor[inside] = counted[inside] / loops.static_runs(at)
    return {**measures, **{name: measures[name] * factor for name in ("flops", "bytes")}, "runs": counted}


def _measure(graph: Graph, name: str, node: int) -> float:
    values: Floats | None = graph.measures.get(name)
    return float(values[node]) if values is not None and node >= 0 else math.nan


def _starts(events: Events) -> dict[tuple[int, str], float]:
    """How often each instruction began, a call."""
    calls = len(events.windows)
    if not calls:
        return {}
    started = events.kind == THUNK
    run = np.searchsorted(events.windows[:, 0], events.start, "right") - 1
    within = started & (run >= 0) & (events.start < events.windows[np.maximum(run, 0), 1])
    counts = np.bincount(events.what[within], minlength=len(events.ops)) / calls
    return {(op.program, op.name): float(counts[i]) for i, op in enumerate(events.ops) if counts[i] > 0}


def _executions(kinds: Sequence[str], counts: Sequence[float], once: Sequence[float]) -> float:
    """How often a call executes the program: its instructions' starts over those that one execution has of them."""
    ratios = [
        (kind in _SEVERAL, count / runs)
        for kind, count, runs in zip(kinds, counts, once, strict=True)
        if runs > 0 and count > 0
    ]
    least = min((ratio for several, ratio in ratios if not several), default=1.0)
    whole = max(round(least), 1)
    return float(whole) if abs(least - whole) <= _NEAR * whole else max(least, 1.0)


class _Loops:
    """How often the instructions of loops of unknown length, and of branches, ran: the profiler saw it."""

    def __init__(self, graph: Graph, nodes: Sequence[int], counts: Sequence[float]) -> None:
        self.graph = graph
        self.trips = trip_counts(graph, least=1)
        self.seen: dict[int, float] = {}  # by group: all that is in it runs as often
        for node, count in zip(nodes, counts, strict=True):
            if node >= 0 and count > 0:
                group = int(graph.group[node])
                self.seen[group] = min(self.seen.get(group, math.inf), count)

    def nearest_seen(self) -> Ints:
        """For each group, and one more for none, itself if the profiler saw it run, else the kernel's around it."""
        nearest = np.full(len(self.graph.groups) + 1, -1, np.int32)
        for index in range(len(self.graph.groups)):
            at = index
            while at >= 0 and at not in self.seen and self.graph.groups[at].kind in BOUNDARY:
                caller = self.graph.groups[at].caller
                at = int(self.graph.group[caller]) if caller >= 0 else -1
            nearest[index] = at if at in self.seen else -1
        return nearest

    def times(self, node: int) -> tuple[float, float]:
        """The factor for the costs of one execution, and how often the instruction runs."""
        group = int(self.graph.group[node])
        count = self.seen.get(group, 1.0)
        return count / self.static_runs(group), count

    def static_runs(self, group: int) -> float:
        """How often one execution runs a group by the text alone, which counts a loop of unknown length once."""
        product = 1.0
        for _ in self.graph.groups:  # no group is nested deeper, also where damaged text has a computation call itself
            caller = self.graph.groups[group].caller if group >= 0 else -1
            if caller < 0:
                break
            product *= self.trips.get(caller, 1)
            group = int(self.graph.group[caller])
        return product
