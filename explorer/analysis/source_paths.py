"""The path to a node in the user's program: functions called and named scopes entered, outermost first.

The stack of frames shows the calls. The scope path shows the scopes opened by `jax.named_scope`, a module library or
another framework. A scope was opened in the call that all stacks with that scope share.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from explorer.model.declared import cached_property
from explorer.model.graph import Graph, Ints
from explorer.model.stage import is_library_file

_TRANSFORM = re.compile(r"^(?:jvp|transpose|vmap|pmap|remat|checkpoint|rematted_computation|custom_\w+)\((.*)\)$")
_JIT = re.compile(r"^(?:p?jit|xla_call)\((.*)\)$")
_CONTROL = re.compile(
    r"^(?:while|body|cond|scan|branch_\d+_fun|checkpoint|remat\d?|rematted_computation|closed_call|core_call|shard_map"
    r"|custom_[jv]vp_call\w*|pjit|jit|main)$"
)
_MIN_SHARED = 0.995  # share of nodes; a function that was lowered elsewhere and cached may be missing
_NO_NAME = re.compile(r"[,>()=\[\]']|^$")  # excludes subscripts of an einsum


class Step(NamedTuple):
    """One step inwards: into a function (`key` is the frame of the call) or a scope."""

    name: str
    kind: str
    key: int
    level: int  # the index in the stack of the frame inside it


def named_scopes(scope: str, *, with_jit: bool = False) -> tuple[str, ...]:
    """Return the named scopes in a path of transforms, control flow and primitives.

    Example:
        >>> named_scopes("jit(step)/transpose(jvp(encoder))/attention/while/body/dot_general")
        ('encoder', 'attention')
    """
    names: list[str] = []
    for number, part in enumerate(scope.rpartition(";")[2].split("/")[:-1]):
        jit = _JIT.match(part)
        if jit is not None:
            if with_jit and number:
                names.append(jit[1])
            continue
        while (inner := _TRANSFORM.match(part)) is not None:
            part = inner[1]
        if not _CONTROL.match(part) and not _NO_NAME.search(part):
            names.append(part)
    return tuple(names)


def phase(scope: str) -> str:
    """Return `backward` for a scope with `transpose(jvp(…))`, `forward` with `jvp(…)`, else an empty text."""
    if "transpose(" in scope:
        return "backward"
    return "forward" if "jvp(" in scope else ""


_LAST_KEY = re.compile(r"[\[\].']([A-Za-z_]\w*)'?\]?(?:\[\d+\])*(?:\.value)?$")


def parameter_names(graph: Graph, nodes: Ints) -> list[str]:
    """Return the names of parameters that nodes read, without their containers, the most read first.

    A plain argument, `x`, isn't a parameter of a model: only arrays in a container count.
    """
    if "parameter" not in graph.ops:
        return []
    code = graph.ops.index("parameter")
    times: Counter[str] = Counter()
    for node in nodes.tolist():
        for operand in graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist():
            if graph.op[operand] == code and (key := _LAST_KEY.search(graph.scopes[int(graph.scope[operand])])):
                times[key[1]] += 1
    return [name for name, _ in times.most_common()]


class SourcePaths:
    """The steps to every node of a graph, and the innermost frame of each node or of the node it belongs to.

    `line` is like `frame`, but equal for all frames that the same calls made on one line.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        by = graph.placed
        own = np.arange(len(by), dtype=np.int32)
        self.frame = np.where(by >= 0, graph.frame[by], np.int32(-1))
        self.scope = graph.scope[np.where(by >= 0, by, own)]
        self.is_known = by >= 0
        self.stacks = _merged_stacks(graph)
        innermost = np.asarray([*[stack[-1] if stack else -1 for stack in self.stacks], -1], np.int32)
        self.line = innermost[self.frame]
        self._steps: dict[tuple[int, int], list[Step]] = {}
        has_frames = bool((graph.frame >= 0).any())
        self.scopes = [named_scopes(scope, with_jit=not has_frames) for scope in graph.scopes]

    @cached_property
    def shared(self) -> int:
        """Return the stack depth of the innermost function that made nearly all nodes.

        Calls outside that function, such as a launcher's, carry no information.
        """
        frames, times = np.unique(self.frame[self.frame >= 0], return_counts=True)
        stacks_ = [self.stack(int(frame)) for frame in frames]
        enough, depth = _MIN_SHARED * times.sum(), 0
        path: tuple[int, ...] = ()
        # Ends, because each round goes one frame deeper.
        while True:
            weight: Counter[int] = Counter()
            for stack, count in zip(stacks_, times.tolist(), strict=True):
                if len(stack) > depth + 1 and stack[:depth] == path:
                    weight[stack[depth]] += count
            ((at, most),) = weight.most_common(1) or [(-1, 0)]
            if most < enough or not most:
                return depth
            path, depth = (*path, at), depth + 1

    def stack(self, frame: int) -> tuple[int, ...]:
        return self.stacks[frame] if frame >= 0 else ()

    def steps(self, frame: int, scope: int) -> list[Step]:
        """Return the functions and scopes around a frame and scope, outermost first, without the program itself."""
        steps = self._steps.get((frame, scope))
        if steps is None:
            steps = self._steps[frame, scope] = self._walk(frame, self.scopes[scope] if scope >= 0 else ())
        return steps

    def _walk(self, frame: int, scopes: tuple[str, ...]) -> list[Step]:
        stack = self.stack(frame)
        steps: list[Step] = []
        entered = 0
        outer = ""
        for level, at in enumerate(stack):
            name = self._name(at)
            # A lambda or a comprehension belongs to its function, and recursion is one function.
            if level and name and not name.startswith("<") and name != outer:
                steps.append(Step(name, "function", stack[level - 1], level))
            outer = name
            while entered < len(scopes) and self._opened_in.get(scopes[: entered + 1], 0) <= level + 1:
                steps.append(Step(scopes[entered], "scope", -1, level))
                entered += 1
        return steps + [Step(name, "scope", -1, max(len(stack) - 1, 0)) for name in scopes[entered:]]

    def _name(self, frame: int) -> str:
        """Return the name of a frame's function; empty for a library's private function. `__call__` gives the class."""
        function, file = self.graph.frames[frame].function, self.graph.frames[frame].file
        outer, _, name = function.rpartition(".")
        name = (outer.rpartition(".")[2] or name) if name == "__call__" else name
        return "" if name.startswith("_") and is_library_file(file) else name

    @cached_property
    def _opened_in(self) -> dict[tuple[str, ...], int]:
        """Return the number of frames that all stacks inside a scope share, by the path of the scope.

        The function that opened the scope counts as a shared frame.
        """
        common: dict[tuple[str, ...], tuple[tuple[int, ...], int]] = {}
        width = max(len(self.graph.scopes), 1)
        # 100,000 nodes have few distinct pairs of frame and scope.
        pairs = np.unique(self.frame.astype(np.int64) * width + self.scope)
        for pair in pairs:
            frame, scope = divmod(int(pair), width)
            stack, names = self.stack(frame), self.scopes[scope]
            if not stack:
                continue
            for end in range(1, len(names) + 1):
                shared = common.get(names[:end])
                if shared is None:
                    common[names[:end]] = (stack, len(stack))
                else:
                    # Two lines of one function share all frames but the last.
                    first, length = shared
                    same = 0
                    for a, b in zip(first[:length], stack, strict=False):
                        if a != b:
                            break
                        same += 1
                    common[names[:end]] = (first, min(length, same + 1, len(stack)))
        return {names: length for names, (_, length) in common.items()}


def _merged_stacks(graph: Graph) -> list[tuple[int, ...]]:
    """Return each frame's stack, outermost first, with one frame for all columns of a line.

    A cached lowering may put one stack onto another; then the inner one counts. Frames of libraries above user code are
    left out: launchers and wrappers carry no information, and one function's stacks may start at different ones.
    """
    own = {file: not is_library_file(file) for file in {frame.file for frame in graph.frames}}
    is_own = [own[frame.file] for frame in graph.frames]
    texts = [(frame.file, frame.function, frame.line) for frame in graph.frames]
    frame_of_text: dict[tuple[int, tuple[str, str, int]], int] = {}  # by the frame of the caller
    result: list[tuple[int, ...]] = []
    for stack in stacks(graph):
        again = max([level for level, at in enumerate(stack) if texts[at] == texts[stack[0]]], default=0)
        parent = -1
        path: list[int] = []
        rest = stack[again:]
        last_own = max([level for level, at in enumerate(rest) if is_own[at]], default=-1)
        for level, at in enumerate(rest):
            if level < last_own and not is_own[at]:
                continue
            parent = frame_of_text.setdefault((parent, texts[at]), at)
            path.append(parent)
        result.append(tuple(path))
    return result


_MAX_DEPTH = 1_000  # calls, Python's own limit; ends a cycle in damaged input


def stacks(graph: Graph) -> Sequence[tuple[int, ...]]:
    """Return for each frame the indices of its stack, outermost first."""
    stack_of: dict[int, tuple[int, ...]] = {}
    count = len(graph.frames)
    for i in range(count):
        walk: list[int] = []
        seen: set[int] = set()
        at = i
        while 0 <= at < count and at not in stack_of and len(walk) < _MAX_DEPTH and at not in seen:
            walk.append(at)
            seen.add(at)
            at = graph.frames[at].parent
        base = stack_of.get(at, ())
        for frame in reversed(walk):
            base = stack_of[frame] = (*base[-_MAX_DEPTH:], frame)
    return [stack_of[frame] for frame in range(count)]
