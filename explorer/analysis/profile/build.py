"""Events and the programs that ran → the rows of a profile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.cost.lines import split_by_line
from explorer.analysis.outline.source_paths import named_scopes
from explorer.analysis.profile.attribution import segments, shares
from explorer.analysis.profile.costs import OpCost, op_costs
from explorer.analysis.profile.host import host_times
from explorer.analysis.profile.resolve import COLLECTIVE, CONTROL, Instructions, resolve_ops
from explorer.analysis.profile.timeline import timeline_of
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Frame, Graph, Ints
from explorer.model.results.profile import Profile
from explorer.model.results.profile_events import Events
from explorer.model.results.profile_rows import LineTime, OpTime
from explorer.model.stage import Stage

__all__ = ["build_profile", "steady_runs"]

_SPREAD = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation
_FAR = 3.0  # of those: a run that took so much more or less was disturbed
_ROUNDING = 1e-6
_LEEWAY = 0.05  # of the median: no run is left out that is as near


def build_profile(function: str, signature: str, events: Events, captures: Mapping[int, Capture]) -> Profile:
    """What a profile says of recorded calls.

    Args:
        function, signature: What was profiled.
        events: What was recorded, with the windows of the calls.
        captures: What is known of the programs that ran, by number.
    """
    building = _Building(events, captures)
    return building.profile(function, signature)


def steady_runs(walls: Floats) -> NDArray[np.bool_]:
    """Which runs took about as long as the median one: those that nothing else on the machine disturbed.

    Example:
        >>> steady_runs(np.asarray([1.0, 1.01, 5.0, 0.99])).tolist()
        [True, True, False, True]
    """
    if not len(walls):
        return np.zeros(0, bool)
    median = np.median(walls)
    away = np.abs(walls - median)
    return away <= _FAR * _SPREAD * np.median(away) + _LEEWAY * median


def _timed(capture: Capture, time: Floats) -> Capture:
    """The capture with the measure `time` of its `hlo` stage."""
    stage = capture.hlo
    text, graph = stage.text, stage.graph

    def measured(_: Graph) -> Mapping[str, Floats]:
        return {**graph.measures, "time": time}

    known = replace(graph, measure=measured)
    timed = Stage("hlo", lambda: (text, known))
    return replace(capture, stages=tuple(timed if one is stage else one for one in capture.stages))


class _Building:
    def __init__(self, events: Events, captures: Mapping[int, Capture]) -> None:
        programs = {number: Instructions(capture.hlo.graph) for number, capture in captures.items()}
        self.events, self.captures = resolve_ops(events, programs), captures
        events = self.events
        self.node = [programs[op.program].node(op) if op.program in programs else -1 for op in events.ops]
        self.kinds = [
            programs[op.program].kind(node) if node >= 0 else "" for op, node in zip(events.ops, self.node, strict=True)
        ]
        kinds = (np.asarray([kind in these for kind in self.kinds], bool) for these in (CONTROL, COLLECTIVE))
        self.cut = segments(events, *kinds)
        self.shares = shares(events, self.cut)
        walls = events.windows[:, 1] - events.windows[:, 0]
        self.kept = steady_runs(walls)
        self.wall = float(walls[self.kept].mean()) if len(walls) else 0.0
        self.seconds: Floats = self.mean(self.shares.seconds)
        self.count: Floats = self.mean(self.shares.count)
        self.device = float(self.seconds.sum())

    def mean(self, of_runs: Floats) -> Floats:
        count = max(int(self.kept.sum()), 1)
        mean = np.zeros(of_runs.shape[1])
        for run in np.flatnonzero(self.kept):
            mean += of_runs[run] / count
        return mean

    def profile(self, function: str, signature: str) -> Profile:
        captures: dict[int, Capture] = {}
        told: dict[int, _Told] = {}
        for number, capture in self.captures.items():
            time = self.time_of(number, len(capture.hlo.graph.names))
            captures[number] = timed = _timed(capture, time)
            told[number] = _Told(timed, time)
        ops = self.ops(told)
        found = Profile(
            function=function,
            signature=signature,
            runs=int(self.kept.sum()),
            wall_seconds=self.wall,
            device_seconds=self.device,
            gap_seconds=max(self.wall - self.device, 0.0),
            ops=ops,
            lines=(),
            unattributed=self.device,
            captures=captures,
            host=host_times(self.events, self.kept),
            notes=self.notes(),
            timeline=timeline_of(self.events, self.cut, self.kept, [(op.program, op.name) for op in ops]),
            events=self.events,
        )
        costs = op_costs(found)
        lines, known = self.lines(told, _executions(ops, costs))
        return replace(found, ops=_costed(ops, costs), lines=lines, unattributed=_rest(self.device, known))

    def time_of(self, number: int, count: int) -> Floats:
        """Seconds of each instruction of a program."""
        mine = [at for at, op in enumerate(self.events.ops) if op.program == number and self.node[at] >= 0]
        time = np.zeros(count)
        np.add.at(time, np.asarray([self.node[at] for at in mine], np.int32), self.seconds[mine])
        return time

    def ops(self, told: Mapping[int, _Told]) -> list[OpTime]:
        ran = np.flatnonzero((self.seconds > 0) | (self.count > 0)).tolist()
        rows = [self.op(at, told.get(self.events.ops[at].program)) for at in ran]
        return sorted(rows, key=lambda row: (-row.seconds, row.program, row.name))

    def op(self, at: int, told: _Told | None) -> OpTime:
        op, node = self.events.ops[at], self.node[at]
        seconds, count = float(self.seconds[at]), float(self.count[at])
        share = seconds / self.device if self.device else 0.0
        if told is None or node < 0:
            nan = float("nan")
            return OpTime(op.name, "", op.module, op.program, seconds, share, seconds, count, nan, nan, None, (), "")
        return OpTime(
            name=op.name,
            op=self.kinds[at],
            module=op.module,
            program=op.program,
            seconds=seconds,
            share=share,
            total=seconds + told.total.get(node, 0.0),
            count=told.measure("runs", node),
            flops=told.measure("flops", node),
            bytes=told.measure("bytes", node),
            wasted=None,
            stack=told.stack(node),
            scope=told.scope(node),
        )

    def lines(self, told: Mapping[int, _Told], executions: Mapping[int, float]) -> tuple[list[LineTime], float]:
        """The rows of all programs' lines, and the seconds that they have together."""
        seconds: dict[tuple[str, int], float] = {}
        ops: Counter[tuple[str, int]] = Counter()
        costs: dict[tuple[str, int], tuple[str, float, float]] = {}
        for number, program in told.items():
            times = executions.get(number, 1.0)
            parts = list(program.split.parts())
            # A graph's measures are of single precision: with this the sum is exact.
            scale = program.seconds / (sum(part for *_, part in parts) or 1.0)
            for _, file, line, part in parts:
                seconds[file, line] = seconds.get((file, line), 0.0) + scale * part
                ops[file, line] += 1
            for row in program.split.table():
                _, flops, moved = costs.get((row.file, row.line), ("", 0.0, 0.0))
                costs[row.file, row.line] = row.text, flops + times * row.flops, moved + times * row.bytes
        whole = self.device or 1.0
        rows: list[LineTime] = []
        for (file, line), time in seconds.items():
            if file:
                text, flops, moved = costs.get((file, line), ("", 0.0, 0.0))
                rows.append(LineTime(file, line, text, time, time / whole, ops[file, line], None, flops, moved))
        rows.sort(key=lambda row: (-row.seconds, row.file, row.line))
        return rows, sum(row.seconds for row in rows)

    def notes(self) -> list[str]:
        out = len(self.kept) - int(self.kept.sum())
        notes: list[str] = []
        if out:
            notes.append(f"{out} of {len(self.kept)} runs left out: they took much longer or shorter than the others")
        return notes


def _executions(ops: Sequence[OpTime], costs: Sequence[OpCost]) -> dict[int, float]:
    """How often a call executes each program."""
    times: dict[int, list[float]] = {}
    for op, cost in zip(ops, costs, strict=True):
        if op.count > 0 and cost.runs > 0:
            times.setdefault(op.program, []).append(cost.runs / op.count)
    return {program: median(several) for program, several in times.items()}


def _costed(ops: Sequence[OpTime], costs: Sequence[OpCost]) -> list[OpTime]:
    """With what each does in all its runs of a call."""
    return [
        replace(op, count=cost.runs, flops=cost.flops, bytes=cost.bytes) for op, cost in zip(ops, costs, strict=True)
    ]


def _rest(whole: float, part: float) -> float:
    """What of the whole is not in the part; measures are rounded to single precision, and that is no rest."""
    return whole - part if whole - part > _ROUNDING * whole else 0.0


class _Told:
    """What a program tells of its instructions."""

    def __init__(self, capture: Capture, time: Floats) -> None:
        self.graph = graph = capture.hlo.graph
        self.jaxpr = capture.jaxpr.graph if any(stage.name == "jaxpr" for stage in capture.stages) else None
        self.split = split_by_line(capture)
        self.most = _most(self.split.times(), len(graph.names))
        self.stacks: dict[int, tuple[Frame, ...]] = {}
        self.scopes: dict[int, str] = {}
        self.seconds = float(time.sum())
        self.total = _inside(graph, time)

    def measure(self, name: str, node: int) -> float:
        values = self.graph.measures.get(name)
        return float(values[node]) if values is not None else float("nan")

    def stack(self, node: int) -> tuple[Frame, ...]:
        """Of the instruction inside that takes most, or of what it belongs to; one object for all of one place."""
        at = int(self.split.by[self.most[node]])
        lost = self.split.lost.get(at)
        frame = int(self.graph.frame[at]) if lost is None and at >= 0 else -1
        key = frame if lost is None else -2 - lost
        if key not in self.stacks:
            if lost is not None and self.jaxpr is not None:
                self.stacks[key] = self.jaxpr.stack(int(self.jaxpr.frame[lost]))
            else:
                self.stacks[key] = self.graph.stack(frame)
        return self.stacks[key]

    def scope(self, node: int) -> str:
        code = int(self.graph.scope[max(int(self.split.by[self.most[node]]), 0)])
        if code not in self.scopes:
            self.scopes[code] = "/".join(named_scopes(self.graph.scopes[code]))
        return self.scopes[code]


def _most(times: tuple[Ints, Ints, Floats] | None, count: int) -> Ints:
    """By kernel, the instruction in it that takes most; of anything else itself."""
    most = np.arange(count, dtype=np.int32)
    if times is not None:
        kernel, node, seconds = (column[times[2] > 0] for column in times)
        pairs, at = np.unique(kernel.astype(np.int64) * count + node, return_inverse=True)
        pairs = pairs[np.argsort(np.bincount(at, seconds, len(pairs)), kind="stable")]
        most[(pairs // count).astype(np.int32)] = (pairs % count).astype(np.int32)
    return most


def _inside(graph: Graph, time: Floats) -> dict[int, float]:
    """Of each instruction that runs others, the seconds of these, and of those that they run."""
    own = np.bincount(graph.group[graph.group >= 0], time[graph.group >= 0], len(graph.groups))
    total = own.copy()
    inside: dict[int, float] = {}
    # A group is after the group around it in no fixed order: from the deepest up.
    for group in sorted(range(len(graph.groups)), key=lambda group: -_depth(graph, group)):
        caller = graph.groups[group].caller
        if caller >= 0 and graph.groups[group].kind != "fusion":
            inside[caller] = inside.get(caller, 0.0) + float(total[group])
            around = int(graph.group[caller])
            if around >= 0:
                total[around] += total[group]
    return inside


def _depth(graph: Graph, group: int) -> int:
    depth = 0
    while graph.groups[group].parent >= 0 and depth < len(graph.groups):
        group, depth = graph.groups[group].parent, depth + 1
    return depth
