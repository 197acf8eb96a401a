"""What a kernel does for several places of the program, in parts: each with its stack and its scope."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from explorer.analysis.cost.lines import split_by_line
from explorer.analysis.outline.source_paths import named_scopes, phase
from explorer.model.capture import Capture
from explorer.model.graph import Frame, Graph
from explorer.model.results.profile import OpPart, Profile


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
    """Where the instructions inside each kernel of one program come from."""

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
        """Of a kernel, seconds with stack and scope, those of one place together."""
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
