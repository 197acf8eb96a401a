"""Views of a profile: text, flame graphs by scope or Python stack, parts of kernels, and several processes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import dropwhile
from os.path import basename
from pathlib import PurePath

import numpy as np

from explorer.analysis.graphs import graph_of
from explorer.analysis.line_costs import split_by_line
from explorer.analysis.profile_recording import COLLECTIVE, HALVES, host_words
from explorer.analysis.source_paths import named_scopes, phase
from explorer.errors import OptionError
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph, Node
from explorer.model.results.profile import EquationTime, OpPart, OpTime, ProcessOp, ProcessProfile, Profile
from explorer.model.results.profile_events import By, Flame, FlameNode, depth_first
from explorer.model.stage import library_of
from explorer.model.text import aligned, cut_end
from explorer.model.units import count_text, duration_text

_MAX_LINES, _MAX_KERNELS, _MAX_HOST = 12, 6, 4
_MAX_WIDTH = 56
_BAR = 10
_MIN_SLOWDOWN = 1.1  # of recorded calls, to be mentioned


def profile_text(profile: Profile) -> str:
    lines, ops = _line_cells(profile), _op_cells(profile)
    head = ("time", "share", "", "line" if lines else "", "source" if lines else "")
    table = aligned([head, *lines, *ops], (0, 1, 3))
    above = [_headline(profile), "", *table[: len(lines) + 1]]
    below = ["", *table[len(lines) + 1 :]] if ops else []
    return "\n".join((*above, *below, "", *_rest(profile)))


def _line_cells(profile: Profile) -> list[tuple[str, ...]]:
    sources = [source for capture in profile.captures.values() for source in capture.sources.items()]
    labels = {file: source.label for file, source in sources}
    is_one_file = len({line.file for line in profile.lines}) <= 1
    rows: list[tuple[str, ...]] = []
    for line in profile.lines[:_MAX_LINES]:
        place = str(line.line) if is_one_file else f"{labels.get(line.file, basename(line.file))}:{line.line}"
        rows.append((*_time(line.seconds, line.share), place, cut_end(line.text, _MAX_WIDTH)))
    rows += _more([line.seconds for line in profile.lines[_MAX_LINES:]], profile.device_seconds, "line")
    if profile.unattributed > 0:
        share = profile.unattributed / profile.device_seconds
        rows.append((*_time(profile.unattributed, share), "", "no line known"))
    return rows


def _op_cells(profile: Profile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for op in profile.ops[:_MAX_KERNELS]:
        times = f"  ×{op.count:,.0f}" if op.count > 1 else ""
        rows.append((*_time(op.seconds, op.share), op.op, f"{op.name}{times}"))
    return rows + _more([op.seconds for op in profile.ops[_MAX_KERNELS:]], profile.device_seconds, "kernel")


def _headline(profile: Profile) -> str:
    calls = f"mean of {profile.runs:,} calls" if profile.runs > 1 else "one call"
    wall, device = duration_text(profile.seconds), duration_text(profile.device_seconds)
    recorded = ""
    if profile.wall_seconds > _MIN_SLOWDOWN * profile.seconds or profile.device_seconds > profile.seconds:
        recorded = f"; recorded {duration_text(profile.wall_seconds)}, of which"
    return f"{profile.function}{profile.signature}: {wall} a call{recorded or ','} {device} on the device ({calls})"


def _rest(profile: Profile) -> Iterable[str]:
    share = f" ({profile.gap_seconds / profile.wall_seconds:.0%} of the call)" if profile.wall_seconds else ""
    yield f"device waits  {duration_text(profile.gap_seconds)}{share}"
    host = list(host_words(profile.host).items())[:_MAX_HOST]
    if host:
        yield f"host          {', '.join(f'{name} {duration_text(seconds)}' for name, seconds in host)}"
    for note in profile.notes:
        yield f"note: {note}"


def _time(seconds: float, share: float) -> tuple[str, str, str]:
    whole = min(share, 1.0) if share > 0 else 0.0  # a share from a file may be any number, or NaN
    return duration_text(seconds), f"{share:.1%}", "█" * round(whole * _BAR) or "▏"


def _more(seconds: Sequence[float], whole: float, what: str) -> list[tuple[str, ...]]:
    if not seconds:
        return []
    total = sum(seconds)
    return [(*_time(total, total / whole if whole else 0.0), "", count_text(len(seconds), f"more {what}"))]


# HLO operations that wait for other devices.
_WAITING = COLLECTIVE | {f"{kind}{half}" for kind in ("ragged-all-to-all", "send", "recv") for half in HALVES}


def merge_profiles(profiles: Iterable[tuple[str, Profile]]) -> ProcessProfile:
    """Return one profile of several processes' profiles of one function, each with its process's name.

    Each profile is read once and released: memory holds one number for each instruction and process.
    """
    names: list[str] = []
    calls: list[float] = []
    columns: dict[ProcessOp, dict[int, float]] = {}
    functions: dict[str, None] = {}
    for at, (name, profile) in enumerate(profiles):
        names.append(name)
        calls.append(profile.seconds)
        functions[profile.function] = None
        for op in profile.ops:
            column = columns.setdefault(_op(op), {})
            column[at] = column.get(at, 0.0) + op.seconds
    # NaN where a process lacks an instruction, which is unlike a time of 0.
    table = np.full((len(columns), len(names)), np.nan)
    for row, column in enumerate(columns.values()):
        table[row, list(column)] = list(column.values())
    order = np.argsort(-np.nanmax(table, axis=1)) if len(columns) else np.zeros(0, int)
    ops = [*columns]
    notes = [] if len(functions) < 2 else [f"they are of several functions: {', '.join(functions)}"]
    return ProcessProfile(
        next(iter(functions), ""),
        tuple(names),
        tuple(ops[int(row)] for row in order),
        table[order],
        np.asarray(calls),
        tuple(notes),
    )


def _op(op: OpTime) -> ProcessOp:
    frame = op.stack[0] if op.stack else None
    file, line = (PurePath(frame.file).name, frame.line) if frame is not None else ("", 0)
    return ProcessOp(op.name, op.op, op.module, file, line, op.op in _WAITING)


def headline(profile: ProcessProfile) -> str:
    count = len(profile.processes)
    text = f"{profile.function} in {count:,} process{'es' * (count != 1)}"
    if not count:
        return text
    most = int(np.argmax(profile.calls))
    text += f": a call takes {duration_text(float(profile.calls[most]))} in process {profile.processes[most]}"
    waiting = profile.waiting
    longest = int(np.argmax(waiting))
    if not waiting[longest] > 0:
        return f"{text}; no time lost in collectives was measured"
    lost = float(waiting[longest])
    waits = f"process {profile.processes[longest]} waits {duration_text(lost)} of a call in collectives for others"
    return f"{text}; {waits}, as far as can be inferred; process {profile.processes[profile.slowest]} computes longest"


def process_profile_text(profile: ProcessProfile) -> str:
    return f"ProcessProfile({headline(profile)})"


_NO_SCOPE, _NO_LINE = "no named scope", "no line is known"


def flame_of_profile(profile: Profile, by: By = "stack") -> Flame:
    """Return the flame graph of a profile, with files named as the user knows them."""
    sources = [source for capture in profile.captures.values() for source in capture.sources.items()]
    labels = {file: source.label for file, source in sources}
    return flame(profile.ops, by, profile.function, labels, profile.op_parts)


def flame(
    ops: Sequence[OpTime],
    by: By,
    function: str,
    labels: Mapping[str, str] | None = None,
    parts: Sequence[OpPart] | None = None,
) -> Flame:
    """Return the flame graph of a profile's operations.

    Args:
        ops: Operations that ran; each is a box inside its callers.
        by: `scope` for named scopes and modules; `stack` for the user's Python, outermost call first, where all
            frames of a library are one box.
        function: Name of the root.
        labels: Display name of each file, such as `cell [4]`; by default the file's name.
        parts: Parts of the ops, each with its own place; if None, each op is placed by its stack and scope.

    Raises:
        OptionError: `by` is another text.
    """
    if by not in ("scope", "stack"):
        raise OptionError(f"a flame graph goes by 'scope' or 'stack', not {by!r}.")
    programs = _program_names(ops)
    boxes = _Boxes(function)
    places: dict[tuple[int, object], int] = {}
    for part in _whole(ops) if parts is None else parts:
        if part.seconds <= 0:
            continue
        program = ops[part.op].program
        # Parts of one place share one stack object, so each stack is walked once.
        place = (program, part.scope if by == "scope" else id(part.stack))
        if place not in places:
            path = _scopes(part.scope) if by == "scope" else [*_frames(part.stack, labels or {})]
            if len(programs) > 1:
                path.insert(0, FlameNode(programs[program], "module", 0.0))
            places[place] = boxes.nested(path)
        kernel = FlameNode(ops[part.op].title, "kernel", 0.0, op=part.op)
        boxes.own[boxes.child(places[place], part.op, kernel)] += part.seconds
    return Flame(depth_first(boxes.summed()), by)


def _whole(ops: Sequence[OpTime]) -> list[OpPart]:
    return [OpPart(i, op.seconds, op.stack, op.scope) for i, op in enumerate(ops)]


class _Boxes:
    """A growing tree. A box is identified by its parent and a key, and added on first use."""

    def __init__(self, function: str) -> None:
        self.nodes = [FlameNode(function, "root", 0.0)]
        self.own: list[float] = [0.0]
        self._index: dict[tuple[int, object], int] = {}

    def nested(self, path: Sequence[FlameNode]) -> int:
        at = 0
        for node in path:
            at = self.child(at, (node.kind, node.name, node.frame and node.frame.file), node)
        return at

    def child(self, parent: int, key: object, node: FlameNode) -> int:
        if (parent, key) not in self._index:
            self._index[parent, key] = len(self.nodes)
            self.nodes.append(replace(node, parent=parent))
            self.own.append(0.0)
        return self._index[parent, key]

    def summed(self) -> list[FlameNode]:  # a parent precedes its children, so sum from the end
        """Return the boxes with the seconds of their children added."""
        seconds = list(self.own)
        for i in range(len(seconds) - 1, 0, -1):
            seconds[self.nodes[i].parent] += seconds[i]
        return [replace(node, seconds=seconds[i], own=self.own[i]) for i, node in enumerate(self.nodes)]


def _scopes(scope: str) -> list[FlameNode]:
    boxes = [FlameNode(name, "scope", 0.0) for name in scope.split("/") if name]
    return boxes or [FlameNode(_NO_SCOPE, "none", 0.0)]


def _frames(stack: Sequence[Frame], labels: Mapping[str, str]) -> Iterator[FlameNode]:
    frames = [(frame, library_of(frame.file)) for frame in reversed(stack)]
    if not frames:
        yield FlameNode(_NO_LINE, "none", 0.0)
    # Frames around the user's outermost frame only run the program: a notebook's kernel, a test runner.
    users = list(dropwhile(lambda frame: frame[1], frames))
    around = ""
    for frame, package in users or frames:
        label = labels.get(frame.file) or basename(frame.file)
        name = package or f"{frame.function or '?'} ({label}:{frame.line})"
        if name != around:  # nested calls on one line are one place, and all frames of a library one box
            yield FlameNode(name, "package", 0.0) if package else FlameNode(name, "frame", 0.0, frame=frame)
        around = name


def _program_names(ops: Sequence[OpTime]) -> dict[int, str]:
    by_name: dict[str, list[int]] = {}
    for program, name in {op.program: op.module for op in ops}.items():
        by_name.setdefault(name, []).append(program)
    return {
        program: f"{name} #{number}" if len(programs) > 1 else name
        for name, programs in by_name.items()
        for number, program in enumerate(programs, 1)
    }


def op_parts(profile: Profile) -> list[OpPart]:
    """Return the ops in parts, split like their lines; an op without a capture is one part. Parts sum to the ops."""
    by_program = {program: _Places(capture) for program, capture in profile.captures.items()}
    parts: list[OpPart] = []
    for index, op in enumerate(profile.ops):
        places = by_program.get(op.program)
        of_op = places.of(op.name) if places is not None else ()
        whole = sum(seconds for seconds, _, _ in of_op)
        if not whole > 0:
            parts.append(OpPart(index, op.seconds, op.stack, op.scope))
            continue
        for seconds, stack, scope in of_op:
            parts.append(OpPart(index, op.seconds * seconds / whole, stack or op.stack, scope if stack else op.scope))
    return parts


class _Places:
    def __init__(self, capture: Capture) -> None:
        self.split = split = split_by_line(capture)
        self.graph = graph = split.graph
        self.stacks: dict[tuple[int, int], tuple[Frame, ...]] = {}
        self.scopes: dict[str, str] = {}
        self.differentiates = any(phase(scope) == "backward" for scope in graph.scopes)
        self.parts: dict[str, list[tuple[float, int]]] = defaultdict(list)
        times = split.times()
        if times is None:
            return
        pairs, at = np.unique(times[0].astype(np.int64) * len(graph.names) + times[1], return_inverse=True)
        seconds = np.bincount(at, times[2], len(pairs))
        for pair, part in zip(pairs.tolist(), seconds.tolist(), strict=True):
            if part > 0:
                kernel, node = divmod(int(pair), len(graph.names))
                self.parts[graph.names[kernel]].append((part, node))

    def of(self, kernel: str) -> list[tuple[float, tuple[Frame, ...], str]]:
        by_place: dict[tuple[int, str], list[float]] = {}
        stacks: dict[int, tuple[Frame, ...]] = {}
        for seconds, node in self.parts.get(kernel, ()):
            stack, scope = self.place(node)
            # By identity, because hashing a stack hashes all its frames.
            by_place.setdefault((id(stack), scope), []).append(seconds)
            stacks[id(stack)] = stack
        return [(sum(seconds), stacks[stack], scope) for (stack, scope), seconds in by_place.items()]

    def place(self, node: int) -> tuple[tuple[Frame, ...], str]:
        """Return the stack of an instruction's line, one object per stack, and its scope; (), "" without a line."""
        at, row = self.split.origin(node)
        if at < 0:
            return (), ""
        jaxpr = self.split.jaxpr
        graph, of = (jaxpr, row) if row >= 0 and jaxpr is not None else (self.graph, at)
        key = (int(graph.frame[of]), int(row >= 0))
        if key not in self.stacks:
            self.stacks[key] = self.split.stack(node)
        return self.stacks[key], self.scope(graph, of)

    def scope(self, graph: Graph, node: int) -> str:
        path = graph.scopes[int(graph.scope[node])]
        if path not in self.scopes:
            phases = (phase(path) or "update",) if self.differentiates else ()
            self.scopes[path] = "/".join((*phases, *named_scopes(path)))
        return self.scopes[path]


def equation_times(profile: Profile) -> list[EquationTime]:
    """Return each equation's time in the kernels linked to it, longest first; equations without time are left out.

    An instruction linked to several equations is divided equally. An instruction without links, such as a copy that the
    compiler added, counts for none.
    """
    modules = {op.program: op.module for op in profile.ops}
    rows = [
        row
        for number, capture in profile.captures.items()
        if graph_of(capture, "jaxpr") is not None
        for row in _times_of(capture, number, modules.get(number, ""), profile.device_seconds)
    ]
    return sorted(rows, key=lambda row: (-row.seconds, row.program, row.name))


def _times_of(capture: Capture, number: int, module: str, device: float) -> list[EquationTime]:
    jaxpr = capture.jaxpr.graph
    linked = capture.links.table("hlo", "jaxpr")
    seconds = np.zeros(len(jaxpr.names))
    split = split_by_line(capture)
    times = split.times()
    if times is None:
        return []
    of_node = np.bincount(times[1], times[2], len(capture.hlo.graph.names))
    for node in np.flatnonzero(of_node > 0).tolist():
        at, row = split.origin(node)
        rows = [row] if row >= 0 and at == node else linked.get(node, ())
        for row in rows:
            seconds[row] += of_node[node] / len(rows)
    times_of_equations: list[EquationTime] = []
    for equation in map(partial(Node, jaxpr), np.flatnonzero(seconds > 0).tolist()):
        file, line = (place.file, place.line) if (place := equation.place) is not None else ("", 0)
        time = float(seconds[equation.index])
        share = time / device if device else 0.0
        times_of_equations.append(EquationTime(equation.name, equation.op, module, number, time, share, file, line))
    return times_of_equations
