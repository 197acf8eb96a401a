"""A profile's operations as a flame graph: by named scope, or by the Python stack that made each instruction.

A loop's body hangs below the line that made the loop, as its stack says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import dropwhile
from os.path import basename

from explorer.errors import OptionError
from explorer.model.graph import Frame
from explorer.model.results.profile import OpPart, OpTime, Profile
from explorer.model.results.profile_events import By, Flame, FlameNode, depth_first
from explorer.model.stage import library_of

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
    """The boxes of a stack, the outermost call first."""
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
    """What each program is called; those of one name are numbered."""
    by_name: dict[str, list[int]] = {}
    for program, name in {op.program: op.module for op in ops}.items():
        by_name.setdefault(name, []).append(program)
    return {
        program: f"{name} #{number}" if len(programs) > 1 else name
        for name, programs in by_name.items()
        for number, program in enumerate(programs, 1)
    }
