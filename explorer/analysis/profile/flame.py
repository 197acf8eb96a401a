"""A profile in parts: flame graphs by named scope or Python stack, the places inside each kernel, and equations.

A loop's body hangs below the line that made the loop, as its stack says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from os.path import basename

import numpy as np

from explorer.analysis.cost.lines import split_by_line
from explorer.analysis.outline.source_paths import named_scopes, phase
from explorer.errors import OptionError
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph
from explorer.model.results.flame import By, Flame, FlameNode, depth_first
from explorer.model.results.profile import Profile
from explorer.model.results.profile_rows import EquationTime, OpPart, OpTime
from explorer.model.source import library_of

_NO_SCOPE, _NO_LINE = "no named scope", "no line is known"


def flame_of_profile(profile: Profile, by: By = "stack") -> Flame:
    """The flame graph of what ran in a profile, with its files called as the user knows them."""
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
    """The flame graph of a profile's operations.

    Args:
        ops: What ran; each is a box of its own, inside those that it comes from.
        by: `scope` for named scopes and modules; `stack` for the user's Python, from the outermost call inwards, where
            what a library does is one box.
        function: What the root is called.
        labels: What a person calls each file: `cell [4]`; its name where that isn't said.
        parts: The parts of the ops, each with a place of its own; if None, each op is where its stack and scope say.

    Raises:
        OptionError: `by` is neither.
    """
    if by not in ("scope", "stack"):
        raise OptionError(f"a flame graph goes by 'scope' or 'stack', not {by!r}.")
    if parts is None:
        parts = [OpPart(i, op.seconds, op.stack, op.scope) for i, op in enumerate(ops)]
    programs = _program_names(ops)
    boxes = _Boxes(function)
    places: dict[tuple[int, object], int] = {}
    for part in parts:
        if part.seconds <= 0:
            continue
        program = ops[part.op].program
        # Parts of one place share their stack as one object, so each stack is walked once.
        place = (program, part.scope if by == "scope" else id(part.stack))
        if place not in places:
            path = _scopes(part.scope) if by == "scope" else [*_frames(part.stack, labels or {})]
            if len(programs) > 1:
                path.insert(0, FlameNode(programs[program], "module", 0.0))
            places[place] = boxes.nested(path)
        kernel = FlameNode(ops[part.op].title, "kernel", 0.0, op=part.op)
        boxes.own[boxes.child(places[place], part.op, kernel)] += part.seconds
    return Flame(depth_first(boxes.summed()), by)


class _Boxes:
    """A tree that grows: a box is known by the one around it and a key, and added where it is not there yet."""

    def __init__(self, function: str) -> None:
        self.nodes = [FlameNode(function, "root", 0.0)]
        self.own: list[float] = [0.0]
        self._index: dict[tuple[int, object], int] = {}

    def nested(self, path: Sequence[FlameNode]) -> int:
        """The innermost of boxes inside one another, of which the first is in the root."""
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

    def summed(self) -> list[FlameNode]:
        """The boxes with their seconds; a box comes after the one around it, so sums are taken from the last one."""
        seconds = list(self.own)
        for i in range(len(seconds) - 1, 0, -1):
            seconds[self.nodes[i].parent] += seconds[i]
        return [replace(node, seconds=seconds[i], own=self.own[i]) for i, node in enumerate(self.nodes)]


def _scopes(scope: str) -> list[FlameNode]:
    names = [name for name in scope.split("/") if name]
    return [FlameNode(name, "scope", 0.0) for name in names] or [FlameNode(_NO_SCOPE, "none", 0.0)]


def _frames(stack: Sequence[Frame], labels: Mapping[str, str]) -> Iterator[FlameNode]:
    frames = [(frame, library_of(frame.file)) for frame in reversed(stack)]
    if not frames:
        yield FlameNode(_NO_LINE, "none", 0.0)
    # What is around the user's outermost frame only runs the user's program: a notebook's kernel, a test runner.
    users = list(dropwhile(lambda frame: frame[1], frames))
    around = ""
    for frame, package in users or frames:
        label = labels.get(frame.file) or basename(frame.file)
        name = package or f"{frame.function or '?'} ({label}:{frame.line})"
        if name != around:  # a call within another on one line is the same place; a library is one box
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
    """The ops in parts, split as their lines are; one without a capture is one part. They sum to the ops."""
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
            by_place.setdefault((id(stack), scope), []).append(seconds)
            stacks[id(stack)] = stack
        return [(sum(seconds), stacks[stack], scope) for (stack, scope), seconds in by_place.items()]

    def place(self, node: int) -> tuple[tuple[Frame, ...], str]:
        """The stack that an instruction's line is of, one object for each, and the scope there."""
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
    """What each equation has of the kernels whose instructions are linked to it; those that have nothing are left out.

    An instruction that may be of several equations is shared equally. One that is linked to none has no part here:
    what the compiler made itself, copies and layout.
    """
    modules = {op.program: op.module for op in profile.ops}
    rows = [
        row
        for number, capture in profile.captures.items()
        if any(stage.name == "jaxpr" for stage in capture.stages)
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
        row = split.origin(node)[1] if split.origin(node)[0] == node else -1
        rows = [row] if row >= 0 else linked.get(node, ())
        for row in rows:
            seconds[row] += of_node[node] / len(rows)
    times_of_equations: list[EquationTime] = []
    for equation in np.flatnonzero(seconds > 0).tolist():
        place = jaxpr.attribution.place(equation)
        times_of_equations.append(
            EquationTime(
                jaxpr.names[equation],
                jaxpr.ops[int(jaxpr.op[equation])],
                module,
                number,
                float(seconds[equation]),
                float(seconds[equation]) / device if device else 0.0,
                place.file if place is not None else "",
                place.line if place is not None else 0,
            )
        )
    return times_of_equations
