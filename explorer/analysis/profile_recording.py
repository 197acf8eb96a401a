"""Preparation of a recording: names resolved to instructions, recorder overhead subtracted, host events in words.

The recorder stamps an event's start before it writes the event down, so most of the overhead is inside the event, and a
loop of small steps seems to spend its time there. Measured on a CPU with JAX 0.10.2: a loop of 2,405 events takes
131 µs, and 1,628 µs while recorded; its smallest instructions, copies of 8 numbers, then last 0.2 to 2.4 µs, with
0.06 µs between two events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.profile_attribution import run_at
from explorer.model.graph import Floats, Graph
from explorer.model.results.profile_events import BETWEEN, HOST, THUNK, WAIT, Events, Op

# Instructions that run others; the time between these is their own.
CONTROL = frozenset(("while", "conditional", "call", "async-start"))
# Instructions that wait for other devices, whole or split in a start and a done half.
HALVES = ("", "-start", "-done")
COLLECTIVE = frozenset(
    f"{name}{part}"
    for name in (
        "all-reduce",
        "all-gather",
        "all-to-all",
        "collective-permute",
        "collective-broadcast",
        "reduce-scatter",
    )
    for part in HALVES
)
_UNSAFE = re.compile(r"\W")


class Instructions:
    """The instructions of one program, by the names that a profiler gives them."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self._rows = graph, graph.row_of
        self._by_kernel = cache(partial(_kernels, graph))

    def node(self, op: Op) -> int:
        """Return the index of the instruction, or -1.

        A kernel is named like its instruction, with special characters replaced. Only this name identifies the kernels
        of a CUDA graph: their events all name the call that launched it.
        """
        named = self._rows.get(op.name, -1)
        if op.kernel and (named < 0 or self.kind(named) in CONTROL):
            return self._by_kernel().get(op.kernel, named)
        return named

    def kind(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]


def _kernels(graph: Graph) -> dict[str, int]:
    """Return the instructions by the name that a profiler gives their kernels; ambiguous names are left out."""
    nodes: dict[str, int] = {}
    for node, name in enumerate(graph.names):
        kernel = _UNSAFE.sub("_", name)
        nodes[kernel] = -1 if kernel in nodes else node
    return {kernel: node for kernel, node in nodes.items() if node >= 0}


def resolve_ops(events: Events, programs: Mapping[int, Instructions]) -> Events:
    """Return the events with one op for each instruction, named as in the text; an unknown op keeps its name."""
    ops: dict[Op, int] = {}
    code: list[int] = []
    for op in events.ops:
        program = programs.get(op.program)
        node = program.node(op) if program is not None else -1
        name = program.graph.names[node] if program is not None and node >= 0 else op.name
        code.append(ops.setdefault(Op(op.program, op.module, name), len(ops)))
    if len(ops) == len(events.ops):
        return replace(events, ops=tuple(ops))
    what = events.what.copy()
    thunks = events.kind == THUNK
    what[thunks] = np.asarray(code, np.int64)[what[thunks]]
    return replace(events, what=what, ops=tuple(ops))


_MAX_COST = 1.5e-6  # seconds per event; more isn't the recorder's
_OUTSIDE_SHARE = 0.1  # share of an event's cost outside of it, in the loop that runs it
_QUANTILE = 0.25
_STEPS = 50  # of a bisection
# Events cost differently, so an op keeps at least this share of its time after a uniform reduction, and of its time.
_KEPT_SHARE, _MIN_KEPT = 0.3, 0.1


@dataclass(frozen=True)
class Overhead:
    """The overhead of recording, per call.

    Args:
        seconds: Seconds of each op without overhead, shape `[ops]`.
        each, total: Subtracted seconds, for each event and altogether.
        events: Number of instructions that started.
    """

    seconds: Floats
    each: float
    total: float
    events: float


def undisturbed(seconds: Floats) -> float:
    """Return the lower quartile of times, which other processes disturbed little; NaN for none.

    Example:
        >>> float(undisturbed(np.asarray([1.0, 1.01, 5.0, 0.99, 7.0])))
        1.0
    """
    # A disturbance only makes a call longer, so a low quantile is nearest to an undisturbed one.
    return float(np.quantile(seconds, _QUANTILE, method="lower")) if len(seconds) else float("nan")


def without_overhead(seconds: Floats, weight: Floats, spare: float, others: float = 0.0) -> tuple[Floats, float]:
    """Subtract up to `spare` seconds, equally from each event, but never nearly all of an op's time.

    Args:
        seconds, weight: Each op's time and number of events, shape `[ops]`.
        spare: How much longer a recorded call takes; NaN if unknown.
        others: Number of other events, such as the host's, with the same cost.

    Returns:
        The remaining seconds, and the seconds subtracted for each event.

    Example:
        >>> left, each = without_overhead(np.asarray([1e-3, 2e-4]), np.asarray([10.0, 100.0]), 1.1e-4)
        >>> left.round(6).tolist(), round(each, 9)
        ([0.00099, 0.0001], 1e-06)
    """
    whole = float(seconds.sum())
    if not spare > 0 or not whole > 0:
        return seconds, 0.0
    most = seconds * (1 - _KEPT_SHARE * max(1 - spare / whole, _MIN_KEPT))
    low, high = 0.0, _MAX_COST
    if np.minimum(most, high * weight).sum() + high * others > spare:
        # Bisection: the subtracted time grows with `each`, though not evenly.
        for _ in range(_STEPS):
            each = (low + high) / 2
            is_more = np.minimum(most, each * weight).sum() + each * others > spare
            low, high = (low, each) if is_more else (each, high)
    return seconds - np.minimum(most, high * weight), high


def overhead_of(
    events: Events, programs: Mapping[int, Instructions], seconds: Floats, count: Floats, spare: float
) -> Overhead:
    """Return the overhead of resolved ops, per call.

    Args:
        events: Recorded events, with the ops of `resolve_ops`.
        programs: Instructions of each program, by number.
        seconds, count: Seconds and executions of each op in a call, shape `[ops]`.
        spare: Seconds by which a recorded call takes longer; NaN if unknown.
    """
    weight = count + _OUTSIDE_SHARE * _events_inside(events, programs, count)
    others = (len(events.what) - float((events.kind == THUNK).sum())) / max(len(events.windows), 1)
    left, each = without_overhead(seconds, weight, spare, others)
    return Overhead(left, each, float((seconds - left).sum()), float(count.sum()))


def _events_inside(events: Events, programs: Mapping[int, Instructions], count: Floats) -> Floats:
    at = {(op.program, op.name): i for i, op in enumerate(events.ops)}
    inside = np.zeros(len(events.ops))
    for i, op in enumerate(events.ops):
        program = programs.get(op.program)
        node = program.node(op) if program is not None else -1
        if program is None or node < 0:
            continue
        graph = program.graph
        group = int(graph.group[node])
        caller = graph.groups[group].caller if group >= 0 else -1
        if caller >= 0 and program.kind(caller) in CONTROL:
            around = at.get((op.program, graph.names[caller]))
            if around is not None:
                inside[around] += count[i]
    return inside


# Names of the runtime's activities and their meaning; the first match counts.
_WORDS = (
    (re.compile(r"^PjitFunction\((.*)\)$"), r"jit's call of \1"),
    (re.compile(r"^ParseArguments$"), "reading the arguments"),
    (re.compile(r"^DevicePut|BufferFromHost|^BatchedDevicePut"), "copying arguments to the device"),
    (re.compile(r"^np\.asarray\(jax\.Array\)$|^ToLiteral|^CopyToHost"), "copying results to NumPy"),
    (re.compile(r"^AllocateOutputBuffers|CreateOutputs$"), "allocating results"),
    (re.compile(r"Executable::Execute|^Handle input|^Wait for \w+ holds$|LaunchOnDevice"), "starting programs"),
    (re.compile(r"CollectGarbage"), "freeing Python's objects"),
    (re.compile(r"::Await$|BlockUntilReady|block_until_ready"), "waiting for the result"),
)


def host_times(events: Events, kept: NDArray[np.bool_]) -> dict[str, float]:
    """Return seconds per call of each activity of the calling thread without nested ones, longest first.

    Their sum is the wall time without the program's work on that thread. Empty if that thread is unknown.
    """
    if events.python < 0 or not kept.any():
        return {}
    mine = np.flatnonzero((events.thread == events.python) & np.isin(events.kind, (HOST, THUNK, WAIT, BETWEEN)))
    order = mine[np.lexsort((-events.end[mine], events.start[mine]))]
    inside = run_at(events.windows[kept], events.start[order]) >= 0
    own: dict[str, float] = {}
    open_: list[tuple[float, str]] = []
    columns = (column[order[inside]].tolist() for column in (events.start, events.end, events.kind, events.what))
    rows: Iterable[tuple[float, float, int, int]] = zip(*columns, strict=True)
    for start, end, kind, what in rows:
        while open_ and open_[-1][0] <= start:
            open_.pop()
        name = "" if kind == THUNK else events.names[int(what)]
        # Clock resolution: nested events can't end later.
        end = min(end, open_[-1][0]) if open_ else end
        own[name] = own.get(name, 0.0) + end - start
        if open_:
            own[open_[-1][1]] -= end - start
        open_.append((end, name))
    runs = int(kept.sum())
    times = {name: seconds / runs for name, seconds in own.items() if name and seconds > 0}
    return dict(sorted(times.items(), key=lambda item: (-item[1], item[0])))


def host_words(host: Mapping[str, float]) -> dict[str, float]:
    """Return host activities in words, with the runtime's parts of one activity added up, longest first.

    Example:
        >>> host_words({"PjitFunction(f)": 2e-5, "ExecutePrepare": 1e-5, "ParseArguments": 5e-6})
        {"jit's call of f": 2e-05, 'ExecutePrepare': 1e-05, 'reading the arguments': 5e-06}
    """
    seconds_by_words: dict[str, float] = {}
    for name, seconds in host.items():
        words = next((match.expand(text) for pattern, text in _WORDS if (match := pattern.search(name))), name)
        seconds_by_words[words] = seconds_by_words.get(words, 0.0) + seconds
    return dict(sorted(seconds_by_words.items(), key=lambda item: (-item[1], item[0])))
