"""The groups that a person reads a graph by, made from what every user has: calls and transforms.

A training step is 100,000 instructions in a handful of computations. Inside each computation the nodes are grouped by
forward, backward and update (JAX marks them in the scope path), then by the Python functions on their stack. A
computation that a node calls hangs under that node.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from explorer.model.graph import Graph, Group, Ints
from explorer.model.provenance import phase, placed, stacks

__all__ = ["Hierarchy", "nest"]

_FLAT = ("fusion", "apply")  # a kernel is read whole, a reducer is two operations
_MADE = ("phase", "function", "inputs")  # groups made here, which may go again; a computation's stay


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of groups over a graph: `group[i]` is the group of node `i`, an index into `groups`, -1 for the top.

    A group's `parent` comes before it, or is -1. Its `kind` is the computation's (`fusion`, `body`, …), `phase`,
    `function`, or `inputs`.
    """

    groups: list[Group]
    group: Ints


def nest(graph: Graph) -> Hierarchy:
    """Group a graph's nodes by computation, phase and Python call stack."""
    return _Nesting(graph).nest()


class _Nesting:
    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.groups: list[Group] = []
        self.index: dict[tuple[int, str, str], int] = {}
        by = placed(graph)
        self.place = np.where(by >= 0, graph.frame[by], np.int32(-1))
        self.scope = np.where(by >= 0, graph.scope[by], np.int32(-1))
        self.stacks = stacks(graph)
        self.phases = [phase(scope) for scope in graph.scopes]
        self.differentiates = "backward" in self.phases

    def nest(self) -> Hierarchy:
        graph = self.graph
        group = np.full(len(graph), -1, np.int32)
        entries = [i for i, g in enumerate(graph.groups) if g.caller < 0]
        # The caller's own group must be known before what it calls: computations from the outside in.
        members = _members(graph)
        called: dict[int, list[int]] = {}
        for i, g in enumerate(graph.groups):
            if g.caller >= 0:
                called.setdefault(int(graph.group[g.caller]), []).append(i)
        # The entry alone needs no box of its own: it is the picture.
        todo = [(i, -1) for i in entries]
        seen: set[int] = set()
        while todo:
            computation, parent = todo.pop()
            if computation in seen:
                continue
            seen.add(computation)
            g = graph.groups[computation]
            box = parent
            if g.caller >= 0 or (len(entries) > 1 and g.kind != "entry"):
                self.groups.append(Group(g.name, g.kind, parent, g.caller))
                box = len(self.groups) - 1
            self.fill(members[computation], g, box, group)
            for inner in called.get(computation, ()):
                todo.append((inner, int(group[graph.groups[inner].caller])))
        return _without_trivial(Hierarchy(self.groups, group))

    def fill(self, nodes: Ints, computation: Group, box: int, group: Ints) -> None:
        """Put a computation's nodes under `box`, one group per call on the stack below the caller's own."""
        graph = self.graph
        is_entry = computation.caller < 0
        base = -1 if is_entry else int(self.place[computation.caller])
        if computation.kind in _FLAT or (not is_entry and base < 0):
            group[nodes] = box
            return
        depth = len(self.stacks[base]) if base >= 0 else 0
        inputs = graph.ops.index("parameter") if is_entry and "parameter" in graph.ops else -1
        cache: dict[tuple[int, int], int] = {}
        for node in nodes.tolist():
            if graph.op[node] == inputs:
                group[node] = self.child(box, "inputs", "inputs")
                continue
            key = (int(self.place[node]), int(self.scope[node]) if is_entry else -1)
            at = cache.get(key)
            if at is None:
                at = cache[key] = self.descend(box, key[0], self.phase_of(key[1]), depth)
            group[node] = at

    def phase_of(self, scope: int) -> str:
        return (self.phases[scope] or "update") if self.differentiates and scope >= 0 else ""

    def descend(self, box: int, frame: int, phase: str, depth: int) -> int:
        """The group of a place: its phase, then one group per named function below the computation's own `depth`."""
        if frame < 0:
            return box
        at = self.child(box, phase, "phase") if phase else box
        # The outermost frame is the function itself: its name stands above the picture already.
        names = [self.graph.frames[i].function.rpartition(".")[2] for i in self.stacks[frame]]
        for outer, name in zip(names[max(depth - 1, 0) :], names[max(depth, 1) :], strict=False):
            # A lambda or a comprehension is its function's own text, and recursion one function.
            if name and not name.startswith("<") and name != outer:
                at = self.child(at, name, "function")
        return at

    def child(self, parent: int, name: str, kind: str) -> int:
        key = (parent, name, kind)
        index = self.index.get(key)
        if index is None:
            index = self.index[key] = len(self.groups)
            self.groups.append(Group(name, kind, parent))
        return index


def _members(graph: Graph) -> list[Ints]:
    """The nodes of each computation, in text order."""
    order = np.argsort(graph.group, kind="stable").astype(np.int32)
    start = np.searchsorted(graph.group[order], np.arange(len(graph.groups) + 1))
    return [order[start[i] : start[i + 1]] for i in range(len(graph.groups))]


def _without_trivial(tree: Hierarchy) -> Hierarchy:
    """Drop groups made around a single child; a single child that is a group itself takes the name along."""
    children = np.bincount(tree.group[tree.group >= 0], minlength=len(tree.groups))
    for group in tree.groups:
        if group.parent >= 0:
            children[group.parent] += 1
    new: list[int] = []
    kept: list[Group] = []
    prefix: dict[int, tuple[str, str]] = {}  # of a dropped group: what its child's name begins with, and its kind
    for i, group in enumerate(tree.groups):
        parent = new[group.parent] if group.parent >= 0 else -1
        before, kind = prefix.get(group.parent, ("", group.kind)) if group.kind in _MADE else ("", group.kind)
        name = before + group.name
        if group.kind in _MADE and children[i] == 1:
            new.append(parent)
            prefix[i] = (f"{name} ▸ ", kind)
        else:
            new.append(len(kept))
            kept.append(Group(name, kind, parent, group.caller))
    index = np.asarray([*new, -1], np.int32)
    return Hierarchy(kept, index[tree.group])
