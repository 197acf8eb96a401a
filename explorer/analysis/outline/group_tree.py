"""The tree of groups in the making: groups are added, iterations are moved into groups of their own, and what is
trivial goes at the end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Group, Hierarchy, Ints

_MADE = ("phase", "function", "scope", "inputs")  # may go again where they hold one thing; a computation's stay


_AND = " ▸ "


def join_names(outer: str, inner: str) -> str:
    """One name for a group and all that is in it: of more than two its first and its last.

    Example:
        >>> join_names("Linear", "eqx.nn.Linear"), join_names("update ▸ adam", "update_fn")
        ('Linear', 'update ▸ update_fn')
    """
    first = outer.split(_AND)[0]
    return first if first.rpartition(".")[2] == inner.rpartition(".")[2] else f"{first}{_AND}{inner}"


def split(number: Ints, nodes: Ints) -> list[tuple[int, Ints]]:
    """The nodes of each number, in their order; the smallest number first.

    Example:
        >>> [(number, nodes.tolist()) for number, nodes in split(np.asarray([1, 0, 1]), np.asarray([4, 5, 6]))]
        [(0, [5]), (1, [4, 6])]
    """
    order = np.argsort(number, kind="stable")
    numbers, start = np.unique(number[order], return_index=True)
    return [*zip(numbers.tolist(), np.split(nodes[order], start[1:]), strict=True)] if len(nodes) else []


class Tree:
    """Groups by columns, and the group of each node; the group -1 is the top.

    A parent is always added before its children. What a node calls hangs under -1 until the end: where its caller
    belongs may still change.
    """

    def __init__(self, graph: Graph, shared: int = 0) -> None:
        self.shared = shared  # calls deep: in the functions down to there everything was made
        self.group = np.full(len(graph.names), -1, np.int32)
        self.twin = np.arange(len(graph.names), dtype=np.int32)
        self.name: list[str] = []
        self.kind: list[str] = []
        self.parent: list[int] = []
        self.caller: list[int] = []
        self.repeat: list[int] = []
        self.differ: list[int] = []
        self.difference: list[str] = []
        self.level: list[int] = []  # the index in a stack of the frame of this function's own lines
        self.children: dict[int, list[int]] = {}
        self.boxes: set[int] = set()  # computations: what is in one stays in it
        self._index: dict[tuple[int, str, str, int], int] = {}

    def level_of(self, group: int) -> int:
        return self.level[group] if group >= 0 else 0

    def add(self, name: str, kind: str, parent: int, *, caller: int = -1, level: int = 0) -> int:
        index = len(self.name)
        self.name.append(name)
        self.kind.append(kind)
        self.parent.append(parent)
        self.caller.append(caller)
        self.repeat.append(0)
        self.differ.append(0)
        self.difference.append("")
        self.level.append(level)
        if caller < 0:
            self.children.setdefault(parent, []).append(index)
        return index

    def is_made(self, group: int) -> bool:
        """Is it a function or a scope that the nodes' metadata names, not a computation?"""
        return group >= 0 and group not in self.boxes and self.kind[group] in ("function", "scope")

    def child(self, parent: int, name: str, kind: str, key: int = -1, level: int | None = None) -> int:
        """The group of this name and key in `parent`, a new one if there is none."""
        path = (parent, name, kind, key)
        index = self._index.get(path)
        if index is None:
            level = self.level_of(parent) if level is None else level
            index = self._index[path] = self.add(name, kind, parent, level=level)
        return index

    def hang(self, group: int, parent: int) -> None:
        """Move a group with all that is in it."""
        self.children[self.parent[group]].remove(group)
        self.children.setdefault(parent, []).append(group)
        self.parent[group] = parent

    def inside(self, at: int) -> list[int]:
        """`at` and every group inside it."""
        inside, todo = list[int](), [at]
        while todo:
            group = todo.pop()
            inside.append(group)
            todo += self.children.get(group, ())
        return inside

    def is_below(self, at: int, nodes: Ints) -> NDArray[np.bool_]:
        """Whether each of `nodes` is in `at` or in a group inside it."""
        return np.isin(self.group[nodes], self.inside(at))

    def below(self, at: int, nodes: Ints) -> list[tuple[int, Ints]]:
        """The groups in `at` with those of `nodes` that are inside each; groups without any are left out."""
        # One pass over the groups and one over the nodes: a mask for each child made it quadratic in the layers.
        children = self.children.get(at, ())
        child_of = {group: number for number, child in enumerate(children) for group in self.inside(child)}
        groups, row = np.unique(self.group[nodes], return_inverse=True)
        number = np.asarray([child_of.get(group, -1) for group in groups.tolist()], np.int32)[row]
        return [(children[own], inside) for own, inside in split(number, nodes) if own >= 0]

    def path(self, group: int) -> list[int]:
        """The groups around one, outermost first, itself last."""
        path: list[int] = []
        while group >= 0:
            path.append(group)
            group = self.parent[group]
        return path[::-1]

    def common(self, groups: Ints, share: float = 1.0) -> int:
        """The innermost group that holds such a share of what is in `groups`, one entry for each node."""
        ancestors, times = np.unique(groups, return_counts=True)
        held: dict[int, int] = {}
        for group, count in zip(ancestors.tolist(), times.tolist(), strict=True):
            for outer in self.path(group):
                held[outer] = held.get(outer, 0) + count
        enough = [group for group, count in held.items() if count >= share * len(groups)]
        return max(enough, key=lambda group: len(self.path(group)), default=-1)

    def repeat_in(
        self, parent: int, common: int, name: str, nodes: Ints, number: Ints, count: int
    ) -> tuple[int, list[int]]:
        """Make a group in `parent` of `count` iterations; each takes its nodes along with their groups in `common`."""
        at = self.add(name, "repeat", parent, level=self.level_of(common))
        self.repeat[at] = count
        level = self.level[at]
        iterations = [self.add(name, "iteration", at, level=level) for _ in range(count)]
        self.move(nodes, number, common, iterations)
        return at, iterations

    def move(self, nodes: Ints, number: Ints, common: int, into: list[int]) -> None:
        """Move nodes, each into the group that its number says, with copies of their groups below `common`."""
        width = len(into)
        pairs, row = np.unique((self.group[nodes].astype(np.int64) + 1) * width + number, return_inverse=True)
        copies: dict[tuple[int, int], int] = {}

        def copy(group: int, iteration: int) -> int:
            if group == common:
                return into[iteration]
            index = copies.get((group, iteration))
            if index is None:
                parent = copy(self.parent[group], iteration)
                index = self.add(self.name[group], self.kind[group], parent, level=self.level[group])
                copies[group, iteration] = index
            return index

        moved = [copy(int(pair) // width - 1, int(pair) % width) for pair in pairs]
        self.group[nodes] = np.asarray(moved, np.int32)[row]

    def finish(self) -> Hierarchy:
        """The groups from the outside in, without those that hold nothing or only one thing."""
        order = self._order()
        held = self._counts(order)
        removable = self._removable(order)
        new = np.full(len(self.name) + 1, -1, np.int32)
        labels: dict[int, tuple[str, str]] = {}  # of a group that went for holding one thing: its name and kind
        groups: list[Group] = []
        repeat: list[int] = []
        differ: list[int] = []
        difference: list[str] = []
        for index in order:
            parent, may_go = self.parent[index], index in removable
            is_empty = not held[index] and self.caller[index] < 0
            if is_empty or self._is_of_everything(index) or (may_go and self._is_all_of(parent, held)):
                new[index] = new[parent]
                if self._is_of_everything(index) and parent in labels:
                    labels[index] = labels[parent]
                continue
            name, kind = self._label(index, labels.get(parent), may_go)
            if may_go and held[index] == 1:
                new[index] = new[parent]
                labels[index] = name, kind
                continue
            new[index] = len(groups)
            groups.append(Group(name, kind, int(new[parent]), self.caller[index]))
            repeat.append(self.repeat[index])
            differ.append(self.differ[index])
            difference.append(self.difference[index])
        return Hierarchy(groups, new[self.group], repeat, differ, self.twin, difference)

    def _counts(self, order: list[int]) -> NDArray[np.intp]:
        """How many nodes and groups that hold something each group holds itself."""
        held = np.bincount(self.group + 1, minlength=len(self.name) + 1)[1:]
        for index in reversed(order):
            if held[index] and self.parent[index] >= 0:
                held[self.parent[index]] += held[index] if self._is_of_everything(index) else 1
        return held

    def _removable(self, order: list[int]) -> set[int]:
        """The groups that go where they hold one thing; a phase that is a repetition alone stays."""
        repeats = {self.parent[index] for index in order if self.kind[index] == "repeat"}
        made = {index for index in order if self.kind[index] in _MADE and index not in self.boxes}
        return {index for index in made if self.kind[index] != "phase" or index not in repeats}

    def _is_of_everything(self, index: int) -> bool:
        """Is it a function that everything was made in?"""
        return self.kind[index] == "function" and self.level[index] <= self.shared and index not in self.boxes

    def _is_all_of(self, parent: int, held: NDArray[np.intp]) -> bool:
        """Does an iteration or a part hold nothing but this one group?"""
        return parent >= 0 and self.kind[parent] in ("iteration", "part") and held[parent] == 1

    def _label(self, index: int, outer: tuple[str, str] | None, may_go: bool) -> tuple[str, str]:
        """Name and kind of a group; after the name of the group around it, and of its kind, where that one went."""
        name, kind = self.name[index], self.kind[index]
        if outer is None or not (may_go or kind == "repeat"):
            return name, kind
        return join_names(outer[0], name), outer[1] if may_go else kind

    def _order(self) -> list[int]:
        """The groups, each after its parent; what a node calls gets its parent here."""
        children: dict[int, list[int]] = {}
        for index, caller in enumerate(self.caller):
            if caller >= 0:
                self.parent[index] = int(self.group[caller])
            children.setdefault(self.parent[index], []).append(index)
        order: list[int] = []
        todo = children.get(-1, [])[::-1]
        while todo:
            index = todo.pop()
            order.append(index)
            todo += children.get(index, [])[::-1]
        return order
