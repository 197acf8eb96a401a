"""Rooflines: an instruction's work per call, its least time on a machine's peaks, and the time wasted.

Work is counted like seconds: over all executions in a call. The text of a program gives the cost of one execution,
with loops counted as often as the text shows. A call may execute a program several times, and iterate loops as
often as values require; the profiler recorded how often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from explorer.analysis.attribution import own_frame
from explorer.analysis.kernel_costs import BOUNDARY, kernel_kinds
from explorer.analysis.line_costs import LineShares, line_parts, line_shares
from explorer.analysis.loops import trip_counts
from explorer.analysis.profile_attribution import run_at
from explorer.model.capture import Capture, with_measures
from explorer.model.graph import Floats, Graph, Ints
from explorer.model.results.profile import LineTime, OpTime, Profile
from explorer.model.results.profile_events import THUNK, Events
from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.model.units import bytes_text, duration_text, rate_text

_REPEATING = frozenset(("sort",))  # operations with several events of their name per execution
_MAX_ROUNDING = 0.1  # the first or last recorded call may lack events: 2.97 executions are 3


@dataclass(frozen=True, slots=True)
class OpCost:
    """The work of one instruction per call.

    Args:
        flops, bytes: Of all executions; NaN if unknown.
        runs: Number of executions.
        dtype: Dtype of the computation, as HLO writes it; empty if unknown.
        is_matmul: True if a matrix product or convolution does the work.
        special: Number of operations slower than a multiply-add, by HLO's name of the function.
    """

    flops: float
    bytes: float
    runs: float
    dtype: str = ""
    is_matmul: bool = False
    special: Mapping[str, float] = field(default_factory=dict[str, float])

    def least_seconds(self, peaks: Peaks) -> float:
        work = (self.flops, self.bytes, self.dtype)
        return peaks.least_seconds(*work, is_matmul=self.is_matmul, runs=self.runs, special=self.special)

    def bound(self, peaks: Peaks, seconds: float) -> str:
        work = (self.flops, self.bytes, self.dtype)
        return peaks.bound(*work, is_matmul=self.is_matmul, runs=self.runs, special=self.special, seconds=seconds)


def op_costs(profile: Profile) -> list[OpCost]:
    seen = _starts(profile.events) if profile.events is not None else {}
    by_program: dict[int, list[OpTime]] = {}
    for op in profile.ops:
        by_program.setdefault(op.program, []).append(op)
    by_op: dict[tuple[int, str], OpCost] = {}
    for program, ops in by_program.items():
        capture = profile.captures.get(program)
        # Rows of an unknown program already have their costs.
        rows = [OpCost(op.flops, op.bytes, op.count) for op in ops]
        costs = rows if capture is None else _counted(ops, capture, seen)
        by_op |= {(program, op.name): cost for op, cost in zip(ops, costs, strict=True)}
    return [by_op[op.program, op.name] for op in profile.ops]


def costs_of_bound(op: OpTime, cost: OpCost) -> OpCost:
    """Return `cost`, with FLOPs and bytes NaN if its counts give no lower bound of the time.

    A sort's comparisons depend on the values: counted comparisons gave a bound for 300,000 floats that a CPU misses by
    a factor of 12. The work of a library call that is no product and no decomposition is unknown.
    """
    is_library = op.op == "custom-call" and not cost.is_matmul
    if not (is_library or op.op == "sort" or cost.special.get("sort")):
        return cost
    return replace(cost, flops=math.nan, bytes=math.nan)


def _counted(ops: Sequence[OpTime], capture: Capture, seen: Mapping[tuple[int, str], float]) -> list[OpCost]:
    graph = capture.hlo.graph
    kinds = kernel_kinds(graph)
    rows = graph.row_of
    nodes = [rows.get(op.name, -1) for op in ops]
    counts = [seen.get((op.program, op.name), math.nan) for op in ops]
    once = [_measure(graph, "runs", node) for node in nodes]  # runs in one execution; 0 if unknown
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
    """Return a program's measures by name, with loops of unknown length counted as the profiler recorded them.

    A loop without recorded iterations, such as one compiled to a single kernel, keeps the count of the text.
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
    calls = len(events.windows)
    if not calls:
        return {}
    within = (events.kind == THUNK) & (run_at(events.windows, events.start) >= 0)
    counts = np.bincount(events.what[within], minlength=len(events.ops)) / calls
    return {(op.program, op.name): float(counts[i]) for i, op in enumerate(events.ops) if counts[i] > 0}


def _executions(kinds: Sequence[str], counts: Sequence[float], once: Sequence[float]) -> float:
    """Return the number of executions of a program in a call, 1 or more.

    Args:
        kinds: Operation of each kernel.
        counts, once: Recorded starts of each kernel in a call, and its executions by the text; NaN if unknown.
    """
    ratios = [
        (kind in _REPEATING, count / runs)
        for kind, count, runs in zip(kinds, counts, once, strict=True)
        if runs > 0 and count > 0
    ]
    # A kernel may have several events for one execution, so the least ratio counts.
    least = min((ratio for several, ratio in ratios if not several), default=1.0)
    whole = max(round(least), 1)
    return float(whole) if abs(least - whole) <= _MAX_ROUNDING * whole else max(least, 1.0)


class _Loops:
    """Recorded execution counts of loops of unknown length, and of branches."""

    def __init__(self, graph: Graph, nodes: Sequence[int], counts: Sequence[float]) -> None:
        self.graph = graph
        self.trips = trip_counts(graph, least=1)
        self.seen: dict[int, float] = {}  # by group: all its instructions run equally often
        for node, count in zip(nodes, counts, strict=True):
            if node >= 0 and count > 0:
                group = int(graph.group[node])
                self.seen[group] = min(self.seen.get(group, math.inf), count)

    def nearest_seen(self) -> Ints:
        """Return for each group the nearest recorded group, itself or around it in its kernel; -1 without one.

        A final -1 is for nodes without a group.
        """
        nearest = np.full(len(self.graph.groups) + 1, -1, np.int32)
        for index in range(len(self.graph.groups)):
            at = index
            while at >= 0 and at not in self.seen and self.graph.groups[at].kind in BOUNDARY:
                caller = self.graph.groups[at].caller
                at = int(self.graph.group[caller]) if caller >= 0 else -1
            nearest[index] = at if at in self.seen else -1
        return nearest

    def times(self, node: int) -> tuple[float, float]:
        group = int(self.graph.group[node])
        count = self.seen.get(group, 1.0)
        return count / self.static_runs(group), count

    def static_runs(self, group: int) -> float:
        """Return the executions of a group according to the text, which counts a loop of unknown length once."""
        product = 1.0
        for _ in self.graph.groups:  # ends even if a damaged text has a computation that calls itself
            caller = self.graph.groups[group].caller if group >= 0 else -1
            if caller < 0:
                break
            product *= self.trips.get(caller, 1)
            group = int(self.graph.group[caller])
        return product


_MIN_SHARE = 0.02  # of the time, for a note
_MAX_EFFICIENCY = 1.1  # of the peak; more exceeds the error of measuring


def build_roofline(profile: Profile, peaks: Peaks) -> Roofline:
    points = points_of(profile, peaks)
    roofline = Roofline(profile.function, profile.signature, peaks, points)
    notes = [
        "" if math.isnan(profile.seconds) else f"a call takes {duration_text(profile.seconds)}",
        _unknown_note(roofline),
        _too_fast_note(roofline),
        first_touch_note(profile, points, peaks),
        *peaks.warnings,
        *profile.notes,
    ]
    return Roofline(profile.function, profile.signature, peaks, points, tuple(dict.fromkeys(filter(None, notes))))


def points_of(profile: Profile, peaks: Peaks) -> tuple[Point, ...]:
    parts = {
        (program, capture.hlo.graph.names[node]): shares
        for program, capture in profile.captures.items()
        for node, shares in line_shares(capture).items()
    }
    texts = {(row.file, row.line): row.text for row in profile.lines}
    return tuple(
        _point(op, costs_of_bound(op, cost), peaks, parts.get((op.program, op.name), ()), texts)
        for op, cost in zip(profile.ops, op_costs(profile), strict=True)
        if op.seconds > 0
    )


def _point(op: OpTime, cost: OpCost, peaks: Peaks, parts: LineShares, texts: Mapping[tuple[str, int], str]) -> Point:
    frame = own_frame(op.stack)
    lines = tuple(parts) or (((frame.file, frame.line, 1.0),) if frame else ())
    file, line = lines[0][:2] if lines else ("", 0)
    return Point(
        name=op.name,
        op=op.op,
        module=op.module,
        seconds=op.seconds,
        flops=cost.flops,
        bytes=cost.bytes,
        intensity=cost.flops / cost.bytes if cost.bytes else math.inf if cost.flops > 0 else math.nan,
        rate=cost.flops / op.seconds,
        least=cost.least_seconds(peaks),
        bound=cost.bound(peaks, op.seconds),
        file=file,
        line=line,
        text=texts.get((file, line), ""),
        dtype=cost.dtype,
        is_matmul=cost.is_matmul,
        runs=cost.runs,
        lines=lines,
        special=cost.special,
        computes=op.computes,
    )


def _unknown_note(roofline: Roofline) -> str:
    if roofline.unknown <= _MIN_SHARE * roofline.seconds:
        return ""
    without = [point for point in roofline.points if point.bound == "unknown"]
    names = ", ".join(
        dict.fromkeys(
            f"{point.name} ({Path(point.file).name}:{point.line})" if point.line else point.name
            for point in without[:3]
        )
    )
    more = f" and {len(without) - 3:,} more" if len(without) > 3 else ""
    return f"the minimum costs of {names}{more} are unknown: {roofline.unknown / roofline.seconds:.0%} of the time"


def _too_fast_note(roofline: Roofline) -> str:
    """Return a note on the kernel that exceeds the peaks most, if one does by much; else an empty text."""
    least = _MIN_SHARE * roofline.seconds
    over = [point for point in roofline.points if point.efficiency > _MAX_EFFICIENCY and point.seconds > least]
    if not over:
        return ""
    best = max(over, key=lambda point: point.efficiency)
    return (
        f"{best.name} is faster than the peaks of this machine allow ({best.efficiency:.0%}): they were measured "
        "while the machine was busy, or the kernel's data was in a cache; peaks(refresh=True) measures again"
    )


_MIN_RESULT = 32 << 20  # bytes: the C library reuses smaller blocks (M_MMAP_THRESHOLD_MAX of mallopt(3))
_MIN_SLOWDOWN = 1.5  # of unused memory
_MIN_POINT_SHARE = 0.1  # of the time


def first_touch_note(profile: Profile, points: Sequence[Point], peaks: Peaks) -> str:
    """Return a note on the longest kernel that writes a large result to unused memory, or an empty text."""
    whole = sum(point.seconds for point in points)
    if not 0 < peaks.fresh < peaks.bandwidth / _MIN_SLOWDOWN:
        return ""
    for point in points:
        # Points come longest first.
        if point.seconds < _MIN_POINT_SHARE * whole:
            break
        size = _result(profile, point) if point.bytes >= _MIN_RESULT else 0
        if size >= _MIN_RESULT:
            return (
                f"{point.name} writes a result of {bytes_text(size)} into memory that was not used before, which here "
                f"no kernel does faster than {rate_text(peaks.fresh, 'B')}; a donated argument of the same type would "
                "be overwritten at full speed"
            )
    return ""


def _result(profile: Profile, point: Point) -> int:
    for capture in profile.captures.values():
        if point.name in capture.hlo.graph:
            alive = capture.live_memory.buffers
            return sum(one.bytes for one in alive if one.kind == "output" and one.node.name == point.name)
    return 0


BOUNDS = ("unknown", "memory", "compute", "overhead")  # names of `Peaks.bound`; a graph's measure `bound` is an index


def with_peaks(profile: Profile, peaks: Peaks) -> Profile:
    """Return the profile with the wasted seconds of each op and line: those above the least time on `peaks`.

    Graphs of its captures get the measures `wasted`, and `bound`: the index in `BOUNDS` of an instruction's limit.
    """
    ops: list[OpTime] = []
    bounds: list[int] = []
    for op, counted in zip(profile.ops, op_costs(profile), strict=True):
        cost = costs_of_bound(op, counted)
        least = cost.least_seconds(peaks)
        ops.append(replace(op, wasted=None if math.isnan(least) else max(op.seconds - least, 0.0)))
        bounds.append(BOUNDS.index(cost.bound(peaks, op.seconds)))
    captures = {number: _judged(capture, number, ops, bounds) for number, capture in profile.captures.items()}
    return replace(profile, ops=ops, lines=_judged_lines(profile, ops), captures=captures)


def _judged(capture: Capture, number: int, ops: Sequence[OpTime], bounds: Sequence[int]) -> Capture:
    """Return a program's capture with the measures `wasted` and `bound`; NaN if unknown."""
    graph = capture.hlo.graph
    node = {name: at for at, name in enumerate(graph.names)}
    wasted, bound = np.full((2, len(graph.names)), np.nan)
    for op, code in zip(ops, bounds, strict=True):
        if op.program == number and op.wasted is not None and op.seconds > 0 and op.name in node:
            wasted[node[op.name]], bound[node[op.name]] = op.wasted, code
    return with_measures(capture, {**graph.measures, "wasted": wasted, "bound": bound})


def _judged_lines(profile: Profile, ops: list[OpTime]) -> list[LineTime]:
    share = {(op.program, op.name): op.wasted / op.seconds for op in ops if op.wasted is not None and op.seconds > 0}
    wasted: dict[tuple[str, int], float] = {}
    for number, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            part = share.get((number, names[node]))
            if part is not None:
                wasted[file, line] = wasted.get((file, line), 0.0) + part * seconds
    return [replace(line, wasted=wasted.get((line.file, line.line))) for line in profile.lines]
