"""A recording made usable: its names resolved to instructions, the recorder's own time taken off, the host in words.

An event is stamped when it begins, before the recorder has written down what it is; so most of what recording costs is
in the event itself, and a loop of small steps seems to spend its time in them. Measured on a CPU with JAX 0.10.2: a
loop of 2,405 events takes 131 µs, and 1,628 µs while it is recorded; its smallest instructions, copies of 8 numbers,
last 0.2 to 2.4 µs then; and 0.06 µs lie between two events.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.profile.attribution import run_at
from explorer.model.declared import cached_property
from explorer.model.graph import Floats, Graph
from explorer.model.results.profile_events import BETWEEN, HOST, THUNK, WAIT, Events, Op

# These run other instructions: what passes between those is their own time.
CONTROL = frozenset(("while", "conditional", "call", "async-start"))
# These wait for other devices; they begin and end apart where they are in two halves.
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
    """The instructions of one program by what a profiler may call them."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph

    def node(self, op: Op) -> int:
        """The instruction, -1 where the text has none of the name.

        A kernel is called as its instruction, with what is no letter or digit replaced. That tells the kernels of a
        CUDA graph apart, which are all said to be of the one call that launched it.
        """
        named = self.graph[op.name].index if op.name in self.graph else -1
        if op.kernel and (named < 0 or self.kind(named) in CONTROL):
            return self._by_kernel.get(op.kernel, named)
        return named

    def kind(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    @cached_property
    def _by_kernel(self) -> dict[str, int]:
        nodes: dict[str, int] = {}
        for node, name in enumerate(self.graph.names):
            kernel = _UNSAFE.sub("_", name)
            nodes[kernel] = -1 if kernel in nodes else node  # of two that would be called the same, none
        return {kernel: node for kernel, node in nodes.items() if node >= 0}


def resolve_ops(events: Events, programs: Mapping[int, Instructions]) -> Events:
    """The same with one op for each instruction, of the name that the text has; an unknown one keeps its own."""
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


_MOST = 1.5e-6  # seconds an event: what is over that is not the recorder's
_AROUND = 0.1  # of an event's cost lies around it, in the loop that runs it
_FAST = 0.25  # the quantile of several times that others on the machine don't disturb much
_STEPS = 50  # of a bisection
# Of what an op would keep if all were shortened alike: it keeps as much, as no event costs the same; and of all.
_LEFT, _LEAST = 0.3, 0.1


@dataclass(frozen=True)
class Overhead:
    """What recording costs: the seconds of each op a call without it, shape `[ops]`; what was taken off for each event
    and altogether; and how many instructions began, a call."""

    seconds: Floats
    each: float
    total: float
    events: float


def undisturbed(seconds: Floats) -> float:
    """Of several times of the same the one that others on the machine disturbed little; NaN of none.

    Example:
        >>> float(undisturbed(np.asarray([1.0, 1.01, 5.0, 0.99, 7.0])))
        1.0
    """
    return float(np.quantile(seconds, _FAST, method="lower")) if len(seconds) else float("nan")


def without_overhead(seconds: Floats, weight: Floats, spare: float, others: float = 0.0) -> tuple[Floats, float]:
    """Take as much as `spare` off, equally from each event, and from no op nearly all that it has.

    Args:
        seconds, weight: Of each op, shape `[ops]`: its time, and how many events it stands for.
        spare: How much longer a recorded call takes; NaN where that is not known.
        others: How many events there are that are no op's, such as the host's, and cost as much.

    Returns:
        What is left, and what was taken off for each event.

    Example:
        >>> left, each = without_overhead(np.asarray([1e-3, 2e-4]), np.asarray([10.0, 100.0]), 1.1e-4)
        >>> left.round(6).tolist(), round(each, 9)
        ([0.00099, 0.0001], 1e-06)
    """
    whole = float(seconds.sum())
    if not spare > 0 or not whole > 0:
        return seconds, 0.0
    most = seconds * (1 - _LEFT * max(1 - spare / whole, _LEAST))
    low, high = 0.0, _MOST
    if np.minimum(most, high * weight).sum() + high * others > spare:
        for _ in range(_STEPS):
            each = (low + high) / 2
            is_more = np.minimum(most, each * weight).sum() + each * others > spare
            low, high = (low, each) if is_more else (each, high)
    return seconds - np.minimum(most, high * weight), high


def overhead_of(
    events: Events, programs: Mapping[int, Instructions], seconds: Floats, count: Floats, spare: float
) -> Overhead:
    """The time of resolved ops without the recorder's: `seconds` and `count` are those of each a call, shape `[ops]`;
    `spare` is that of `without_overhead`."""
    weight = count + _AROUND * _inside(events, programs, count)
    others = (len(events) - float((events.kind == THUNK).sum())) / max(len(events.windows), 1)
    left, each = without_overhead(seconds, weight, spare, others)
    return Overhead(left, each, float((seconds - left).sum()), float(count.sum()))


def _inside(events: Events, programs: Mapping[int, Instructions], count: Floats) -> Floats:
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


# What the runtime calls things, and what they are; the first that is found in the name.
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
    """Seconds a call of each thing that the calling thread did itself, without what it did inside; the longest first.

    They add up to the wall time, less what of the program ran on that thread.
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
        end = min(end, open_[-1][0]) if open_ else end
        own[name] = own.get(name, 0.0) + end - start
        if open_:
            own[open_[-1][1]] -= end - start
        open_.append((end, name))
    runs = int(kept.sum())
    times = {name: seconds / runs for name, seconds in own.items() if name and seconds > 0}
    return dict(sorted(times.items(), key=lambda item: (-item[1], item[0])))


def host_words(host: Mapping[str, float]) -> dict[str, float]:
    """The same in words: what the runtime splits up, such as the start of a program, together; the longest first.

    Example:
        >>> host_words({"PjitFunction(f)": 2e-5, "ExecutePrepare": 1e-5, "ParseArguments": 5e-6})
        {"jit's call of f": 2e-05, 'ExecutePrepare': 1e-05, 'reading the arguments': 5e-06}
    """
    seconds_by_words: dict[str, float] = {}
    for name, seconds in host.items():
        words = next((match.expand(text) for pattern, text in _WORDS if (match := pattern.search(name))), name)
        seconds_by_words[words] = seconds_by_words.get(words, 0.0) + seconds
    return dict(sorted(seconds_by_words.items(), key=lambda item: (-item[1], item[0])))
