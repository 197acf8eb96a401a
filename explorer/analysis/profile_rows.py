"""Construction of a `Profile` from recorded events and the programs that ran."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from statistics import median

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.analysis import analyze
from explorer.analysis.line_costs import LineSplit, split_by_line
from explorer.analysis.loops import count_limits
from explorer.analysis.profile_attribution import segments, shares, timeline_of
from explorer.analysis.profile_recording import (
    COLLECTIVE,
    CONTROL,
    Instructions,
    Overhead,
    host_times,
    overhead_of,
    resolve_ops,
    undisturbed,
)
from explorer.analysis.roofline import OpCost, op_costs, with_counted_loops
from explorer.analysis.source_paths import named_scopes
from explorer.model.attribution import CountLimits
from explorer.model.capture import Capture, read_graphs, with_measures
from explorer.model.graph import Floats, Frame, Graph, Ints
from explorer.model.results.profile import LineTime, OpTime, Profile
from explorer.model.results.profile_events import Events, Op
from explorer.model.units import duration_text

_MAD_SCALE = 1.4826  # standard deviation of a normal distribution over its median absolute deviation
_MAX_DEVIATIONS = 3.0  # standard deviations of an undisturbed run from the median
# Share of the device's time that measures in single precision may leave over.
_ROUNDING = 1e-6
_MIN_REACH = 0.05  # share of the median within which no run is left out
_MIN_RUNS, _ERRORS = 3, 2.2  # standard errors to each side: 95 % for 10 runs (Student's t)
_OVERHEAD_ERROR = 0.25  # of the subtracted overhead: an event costs 0.2 to 2.4 µs, which partly averages out
_MAX_SLOWDOWN = 1.25  # of recorded calls, without the recorder's overhead
_MIN_OVERHEAD_SHARE = 0.05  # of a call: more subtracted overhead is noted


def build_profile(
    function: str, signature: str, events: Events, captures: Mapping[int, Capture], plain: float = nan
) -> Profile:
    """Return the profile of recorded calls.

    Args:
        function, signature: Of the profiled call.
        events: Recorded events, with the windows of the calls.
        captures: Captures of the programs that ran, by number, if their text is known.
        plain: Seconds of a call without recording; if NaN, no recording overhead is subtracted.
    """
    settled = {number: _settled(capture) for number, capture in captures.items()}
    graphs = {number: of_program["hlo"] for number, of_program in settled.items()}
    programs = {number: Instructions(graph) for number, graph in graphs.items()}
    events = resolve_ops(events, programs)
    node = [programs[op.program].node(op) if op.program in programs else -1 for op in events.ops]
    kind = [programs[op.program].kind(at) if at >= 0 else "" for op, at in zip(events.ops, node, strict=True)]
    is_control, is_collective = (
        np.asarray([each in wanted for each in kind], bool) for wanted in (CONTROL, COLLECTIVE)
    )
    cut = segments(events, is_control, is_collective)
    of_runs = shares(events, cut)
    walls = events.windows[:, 1] - events.windows[:, 0]
    kept = steady_runs(walls)
    recorded = float(walls[kept].mean()) if len(walls) else 0.0
    raw, count = _mean(of_runs.seconds, kept), _mean(of_runs.count, kept)
    overhead = overhead_of(events, programs, raw, count, undisturbed(walls[kept]) - plain)
    wall = max(recorded - overhead.total, 0.0)
    ran = _Ran(events.ops, node, kind, overhead.seconds, count)
    device = float(ran.seconds.sum())
    times = {number: ran.of_program(number, len(graph.names)) for number, graph in graphs.items()}
    measures = {number: with_counted_loops(graph, events, number) for number, graph in graphs.items()}
    timed = {
        number: with_measures(capture, {**measures[number], "time": times[number]})
        for number, capture in captures.items()
    }
    by_program: dict[int, _ProgramTime] = {}
    for number, capture in timed.items():
        for name, graph in read_graphs(capture, "jaxpr", "hlo").items():
            # Only measures changed: the lines are those of the program itself.
            vars(graph)["attribution"] = settled[number][name].attribution
        by_program[number] = _ProgramTime(capture.hlo.graph, split_by_line(capture), times[number])
    notes = [*overhead_notes(overhead, wall, plain), *_uncounted_notes(timed.values())]
    if left_out := len(kept) - int(kept.sum()):
        text = f"{left_out} of {len(kept)} runs left out: they took much longer or shorter than the others"
        notes.insert(0, text)
    ops = _op_rows(ran, device, by_program)
    profile = Profile(
        function=function,
        signature=signature,
        runs=int(kept.sum()),
        wall_seconds=wall,
        device_seconds=device,
        gap_seconds=max(wall - device, 0.0),
        ops=ops,
        lines=(),
        unattributed=device,
        captures=timed,
        host=host_times(events, kept),
        notes=notes,
        timeline=timeline_of(events, cut, kept, [(op.program, op.name) for op in ops]),
        events=events,
        plain_seconds=plain,
    )
    costs = op_costs(profile)
    of_kept = of_runs.seconds[kept] * np.divide(ran.seconds, raw, out=np.zeros(len(raw)), where=raw > 0)
    lines = _line_rows(by_program, _executions(ops, costs), device, _RunTimes(events, of_kept, raw - ran.seconds))
    rest = device - sum(row.seconds for row in lines)
    return replace(
        profile,
        # Costs of all runs of an op in a call.
        ops=[
            replace(op, count=cost.runs, flops=cost.flops, bytes=cost.bytes)
            for op, cost in zip(ops, costs, strict=True)
        ],
        lines=lines,
        # Measures are rounded to single precision; the rounding error isn't unattributed time.
        unattributed=rest if rest > _ROUNDING * device else 0.0,
    )


def _settled(capture: Capture) -> Mapping[str, Graph]:
    """Return the graphs of at least `jaxpr` and `hlo` by stage, with the columns that split seconds over lines."""
    analysis = analyze(capture)
    graphs = analysis.graphs if analysis.passes is not None else read_graphs(capture, "jaxpr", "hlo")
    _ = graphs["hlo"].row_of
    analysis.settle(graphs)
    return graphs


def steady_runs(walls: Floats) -> NDArray[np.bool_]:
    """Return a mask of the runs that took about as long as the fast half, so that nothing else disturbed them.

    A disturbance makes a run longer. If others run for half of the time, the median run is disturbed.

    Example:
        >>> steady_runs(np.asarray([1.0, 1.01, 5.0, 0.99])).tolist()
        [True, True, False, True]
    """
    if not len(walls):
        return np.zeros(0, bool)
    fast = np.sort(walls)[: (len(walls) + 1) // 2]
    middle = np.median(fast)
    far = _MAX_DEVIATIONS * _MAD_SCALE * np.median(np.abs(fast - middle)) + _MIN_REACH * middle
    return np.abs(walls - middle) <= far


def _mean(of_runs: Floats, kept: NDArray[np.bool_]) -> Floats:
    count = max(int(kept.sum()), 1)
    mean = np.zeros(of_runs.shape[1])
    for run in np.flatnonzero(kept):
        mean += of_runs[run] / count
    return mean


@dataclass(frozen=True, eq=False)
class _Ran:
    """Columns of the instructions that ran, per call. An unknown instruction has node -1 and an empty kind."""

    ops: Sequence[Op]
    node: Sequence[int]
    kind: Sequence[str]
    seconds: Floats
    count: Floats

    def of_program(self, number: int, size: int) -> Floats:
        mine = [at for at, op in enumerate(self.ops) if op.program == number and self.node[at] >= 0]
        time = np.zeros(size)
        np.add.at(time, np.asarray([self.node[at] for at in mine], np.int32), self.seconds[mine])
        return time


def _op_rows(ran: _Ran, device: float, programs: Mapping[int, _ProgramTime]) -> list[OpTime]:
    shown: list[int] = np.flatnonzero((ran.seconds > 0) | (ran.count > 0)).tolist()
    for number, program in programs.items():
        program.read_stacks([ran.node[at] for at in shown if ran.ops[at].program == number and ran.node[at] >= 0])
    rows = [_op_row(ran, at, device, programs.get(ran.ops[at].program)) for at in shown]
    return sorted(rows, key=lambda row: (-row.seconds, row.program, row.name))


def _op_row(ran: _Ran, at: int, device: float, program: _ProgramTime | None) -> OpTime:
    op, node = ran.ops[at], ran.node[at]
    seconds, count = float(ran.seconds[at]), float(ran.count[at])
    share = seconds / device if device else 0.0
    if program is None or node < 0:
        nan = float("nan")
        return OpTime(op.name, "", op.module, op.program, seconds, share, seconds, count, nan, nan, None, (), "")
    return OpTime(
        name=op.name,
        op=ran.kind[at],
        module=op.module,
        program=op.program,
        seconds=seconds,
        share=share,
        total=seconds + program.total.get(node, 0.0),
        count=program.measure("runs", node),
        flops=program.measure("flops", node),
        bytes=program.measure("bytes", node),
        wasted=None,
        stack=program.stacks[program.place(node)],
        scope=program.scope(node),
        computes=program.graph.kernel_words.get(node, ""),
    )


class _RunTimes:
    """The time of each instruction in each run, for the variation of lines between runs.

    Args:
        events: Events with the ops.
        seconds: Shape `[runs, ops]`.
        taken: Recording overhead subtracted from each op, which is known only roughly.
    """

    def __init__(self, events: Events, seconds: Floats, taken: Floats) -> None:
        mean = seconds.mean(axis=0) if len(seconds) else np.zeros(len(events.ops))
        self.unsure = _OVERHEAD_ERROR * np.divide(taken, mean, out=np.zeros(len(events.ops)), where=mean > 0)
        self.relative = np.divide(seconds, mean, out=np.zeros_like(seconds), where=mean > 0)
        self.at = {(op.program, op.name): i for i, op in enumerate(events.ops)}

    def intervals(self, ops: Sequence[int], lines: Sequence[int], parts: Sequence[float], count: int) -> Floats:
        """Return lower and upper bounds of each line's mean seconds, shape `[2, count]`; NaN for fewer than 3 runs.

        `ops`, `lines` and `parts` are columns: the mean seconds `parts` that an op spends for a line.
        """
        runs = len(self.relative)
        if runs < _MIN_RUNS:
            return np.full((2, count), np.nan)
        at, which, seconds = np.asarray(ops, np.int64), np.asarray(lines, np.int64), np.asarray(parts, float)
        each = np.stack([np.bincount(which, seconds * row[at], count) for row in self.relative])
        mean, error = each.mean(axis=0), each.std(axis=0, ddof=1) / np.sqrt(runs)
        reach = _ERRORS * error + np.bincount(which, seconds * self.unsure[at], count)
        return np.stack([mean - reach, mean + reach])


def _line_rows(
    programs: Mapping[int, _ProgramTime], executions: Mapping[int, float], device: float, runs: _RunTimes
) -> list[LineTime]:
    number_of: dict[tuple[str, int], int] = {}
    columns: tuple[list[int], list[int], list[float]] = ([], [], [])
    costs: dict[tuple[str, int], tuple[str, float, float]] = {}
    for number, program in programs.items():
        times = executions.get(number, 1.0)
        parts = list(program.split.parts())
        # A graph's measures have single precision; the scale makes the sum exact.
        scale = program.seconds / (sum(part for *_, part in parts) or 1.0)
        for node, file, line, part in parts:
            columns[0].append(runs.at.get((number, program.graph.names[node]), 0))
            columns[1].append(number_of.setdefault((file, line), len(number_of)))
            columns[2].append(scale * part)
        for row in program.split.table():
            _, flops, moved = costs.get((row.file, row.line), ("", 0.0, 0.0))
            costs[row.file, row.line] = row.text, flops + times * row.flops, moved + times * row.bytes
    seconds = np.bincount(np.asarray(columns[1], np.int64), columns[2], len(number_of)).tolist()
    ops = np.bincount(np.asarray(columns[1], np.int64), minlength=len(number_of)).tolist()
    low, high = runs.intervals(*columns, len(number_of)).tolist()
    whole = device or 1.0
    rows: list[LineTime] = []
    for (file, line), at in number_of.items():
        if file:
            text, flops, moved = costs.get((file, line), ("", 0.0, 0.0))
            time = seconds[at]
            interval = max(low[at], 0.0), high[at]
            rows.append(LineTime(file, line, text, time, time / whole, ops[at], None, flops, moved, *interval))
    return sorted(rows, key=lambda row: (-row.seconds, row.file, row.line))


def overhead_notes(overhead: Overhead, wall: float, plain: float) -> list[str]:
    """Return notes on subtracted recording overhead, and on recorded calls that took longer even so."""
    notes: list[str] = []
    if overhead.total > _MIN_OVERHEAD_SHARE * wall:
        notes.append(
            f"{duration_text(overhead.total)} that recording took were subtracted from a call: "
            f"{duration_text(overhead.each)} for each of {overhead.events:,.0f} events; "
            "shares of very short instructions are rough"
        )
    if wall > _MAX_SLOWDOWN * plain:
        notes.append(
            f"recorded, a call took {duration_text(wall)} without that; not recorded, {duration_text(plain)}: more "
            "than the recorder costs, so the machine was busy"
        )
    return notes


def _uncounted_notes(captures: Iterable[Capture]) -> list[str]:
    """Return notes on loops that still count once: the profiler sees no iterations of a loop in one kernel."""
    loops = [count_limits(capture.hlo.graph).loops for capture in captures]
    return [sentence for names in loops if names for sentence in CountLimits(loops=names).sentences]


def _executions(ops: Sequence[OpTime], costs: Sequence[OpCost]) -> dict[int, float]:
    times: dict[int, list[float]] = {}
    for op, cost in zip(ops, costs, strict=True):
        if op.count > 0 and cost.runs > 0:
            times.setdefault(op.program, []).append(cost.runs / op.count)
    return {program: median(several) for program, several in times.items()}


class _ProgramTime:
    def __init__(self, graph: Graph, split: LineSplit, time: Floats) -> None:
        self.graph, self.split = graph, split
        self.most = _heaviest(self.split.times(), len(graph.names))
        self.stacks: dict[int, tuple[Frame, ...]] = {}  # by place
        self.scopes: dict[int, str] = {}
        self.seconds = float(time.sum())
        self.total = _nested_seconds(graph, time)

    def measure(self, name: str, node: int) -> float:
        values = self.graph.measures.get(name)
        return float(values[node]) if values is not None else float("nan")

    def place(self, node: int) -> int:
        """Return a key for the place of a kernel's heaviest instruction, equal for equal places; -1 for no place."""
        at, row = self.split.origin(int(self.most[node]))
        # Rows of the jaxpr get negative keys, which no frame of the program has.
        return -2 - row if row >= 0 else int(self.graph.frame[at]) if at >= 0 else -1

    def read_stacks(self, nodes: Iterable[int]) -> None:
        """Add the stacks of some kernels to `stacks`, by the key of their place: one object per place."""
        heaviest = {self.place(node): int(self.most[node]) for node in nodes}
        frames = [(place, *self.split.frame_of(node)) for place, node in heaviest.items()]
        for place, graph, frame in frames:
            self.stacks[place] = graph.stack(frame)

    def scope(self, node: int) -> str:
        code = int(self.graph.scope[max(self.split.origin(int(self.most[node]))[0], 0)])
        if code not in self.scopes:
            self.scopes[code] = "/".join(named_scopes(self.graph.scopes[code]))
        return self.scopes[code]


def _heaviest(times: tuple[Ints, Ints, Floats] | None, count: int) -> Ints:
    """Return for each kernel the instruction with most of its time, for other nodes themselves, shape `[count]`."""
    most = np.arange(count, dtype=np.int32)
    if times is not None:
        kernel, node, seconds = (column[times[2] > 0] for column in times)
        pairs, at = np.unique(kernel.astype(np.int64) * count + node, return_inverse=True)
        # Ascending, so that a kernel's longest part is written last.
        pairs = pairs[np.argsort(np.bincount(at, seconds, len(pairs)), kind="stable")]
        most[(pairs // count).astype(np.int32)] = (pairs % count).astype(np.int32)
    return most


def _nested_seconds(graph: Graph, time: Floats) -> dict[int, float]:
    """Return the seconds inside each instruction that calls others, nested calls included."""
    own = np.bincount(graph.group[graph.group >= 0], time[graph.group >= 0], len(graph.groups))
    total = own.copy()
    inside: dict[int, float] = {}
    # Groups have no fixed order, so go from the deepest up.
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
