"""The tree of groups under construction.

Groups are added, iterations are moved into their own groups, and trivial groups are removed at the end. Nodes before
and after a loop of layers get groups too, so that the first view shows: forward ▸ embed, block ×24, loss; and the same
names in the backward pass.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.source_paths import SourcePaths, parameter_names
from explorer.model.graph import Graph, Group, Hierarchy, Ints

_MADE = ("phase", "function", "scope", "inputs")  # removed if they hold one thing, unlike computations


_AND = " ▸ "


def join_names(outer: str, inner: str) -> str:
    """Return one name, `outer ▸ inner`, for a group and the only group inside it.

    If `outer` is already joined, only its first name counts. If both names end alike, only that name is returned.

    Example:
        >>> join_names("Linear", "eqx.nn.Linear"), join_names("update ▸ adam", "update_fn")
        ('Linear', 'update ▸ update_fn')
    """
    first = outer.split(_AND)[0]
    return first if first.rpartition(".")[2] == inner.rpartition(".")[2] else f"{first}{_AND}{inner}"


def split(number: Ints, nodes: Ints) -> list[tuple[int, Ints]]:
    """Return the nodes of each number, in their order; the smallest number first.

    Example:
        >>> [(number, nodes.tolist()) for number, nodes in split(np.asarray([1, 0, 1]), np.asarray([4, 5, 6]))]
        [(0, [5]), (1, [4, 6])]
    """
    order = np.argsort(number, kind="stable")
    numbers, start = np.unique(number[order], return_index=True)
    return [*zip(numbers.tolist(), np.split(nodes[order], start[1:]), strict=True)] if len(nodes) else []


class Tree:
    """Columns of groups, and the group of each node; -1 is the top.

    A parent is added before its children. A called computation hangs below -1 until the end, because its caller may
    move.
    """

    def __init__(self, graph: Graph, shared: int = 0) -> None:
        self.shared = shared  # depth of the function in which everything was made
        self.group = np.full(len(graph.names), -1, np.int32)
        self.twin = np.arange(len(graph.names), dtype=np.int32)
        self.name: list[str] = []
        self.kind: list[str] = []
        self.parent: list[int] = []
        self.caller: list[int] = []
        self.repeat: list[int] = []
        self.differ: list[int] = []
        self.difference: list[str] = []
        self.level: list[int] = []  # stack index of the frame with this function's own lines
        self.children: dict[int, list[int]] = {}
        self.boxes: set[int] = set()  # computations; nodes never leave one
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
        return group >= 0 and group not in self.boxes and self.kind[group] in ("function", "scope")

    def child(self, parent: int, name: str, kind: str, key: int = -1, level: int | None = None) -> int:
        path = (parent, name, kind, key)
        index = self._index.get(path)
        if index is None:
            level = self.level_of(parent) if level is None else level
            index = self._index[path] = self.add(name, kind, parent, level=level)
        return index

    def hang(self, group: int, parent: int) -> None:
        self.children[self.parent[group]].remove(group)
        self.children.setdefault(parent, []).append(group)
        self.parent[group] = parent

    def inside(self, at: int) -> list[int]:
        inside, todo = list[int](), [at]
        while todo:
            group = todo.pop()
            inside.append(group)
            todo += self.children.get(group, ())
        return inside

    def is_below(self, at: int, nodes: Ints) -> NDArray[np.bool_]:
        return np.isin(self.group[nodes], self.inside(at))

    def below(self, at: int, nodes: Ints) -> list[tuple[int, Ints]]:
        """Return (child, nodes inside) for each direct child of `at`; children without any of `nodes` are left out."""
        # One pass over groups and one over nodes: a mask for each child was quadratic in the number of layers.
        children = self.children.get(at, ())
        child_of = {group: number for number, child in enumerate(children) for group in self.inside(child)}
        groups, row = np.unique(self.group[nodes], return_inverse=True)
        number = np.asarray([child_of.get(group, -1) for group in groups.tolist()], np.int32)[row]
        return [(children[own], inside) for own, inside in split(number, nodes) if own >= 0]

    def path(self, group: int) -> list[int]:
        path: list[int] = []
        while group >= 0:
            path.append(group)
            group = self.parent[group]
        return path[::-1]

    def common(self, groups: Ints, share: float = 1.0) -> int:
        """Return the innermost group around at least `share` of `groups`, the group of each node; -1 for the top."""
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
        """Add a group of `count` iterations to `parent`; each gets its nodes with their groups below `common`.

        Return the group and its iterations.
        """
        at = self.add(name, "repeat", parent, level=self.level_of(common))
        self.repeat[at] = count
        level = self.level[at]
        iterations = [self.add(name, "iteration", at, level=level) for _ in range(count)]
        self.move(nodes, number, common, iterations)
        return at, iterations

    def move(self, nodes: Ints, number: Ints, common: int, into: list[int]) -> None:
        """Move each node into the group of its number, with copies of its groups below `common`."""
        width = len(into)
        # One number for each pair of group and iteration, because each pair gets one copy.
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
        """Return the groups, parents first, and each node's group, without empty groups and groups of one thing."""
        order = self._order()
        held = self._counts(order)
        removable = self._removable(order)
        new = np.full(len(self.name) + 1, -1, np.int32)
        labels: dict[int, tuple[str, str]] = {}  # name and kind of groups removed for holding one thing
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
        held = np.bincount(self.group + 1, minlength=len(self.name) + 1)[1:]
        for index in reversed(order):
            if held[index] and self.parent[index] >= 0:
                held[self.parent[index]] += held[index] if self._is_of_everything(index) else 1
        return held

    def _removable(self, order: list[int]) -> set[int]:
        """Return the groups that are removed if they hold one thing; a phase that is one repetition stays."""
        repeats = {self.parent[index] for index in order if self.kind[index] == "repeat"}
        made = {index for index in order if self.kind[index] in _MADE and index not in self.boxes}
        return {index for index in made if self.kind[index] != "phase" or index not in repeats}

    def _is_all_of(self, parent: int, held: NDArray[np.intp]) -> bool:
        """Return True if `parent` is an iteration or a part that holds one thing."""
        return parent >= 0 and self.kind[parent] in ("iteration", "part") and held[parent] == 1

    def _is_of_everything(self, index: int) -> bool:
        return self.kind[index] == "function" and self.level[index] <= self.shared and index not in self.boxes

    def _label(self, index: int, outer: tuple[str, str] | None, may_go: bool) -> tuple[str, str]:
        """Return a group's name and kind, joined with those of a removed group around it."""
        name, kind = self.name[index], self.kind[index]
        if outer is None or not (may_go or kind == "repeat"):
            return name, kind
        return join_names(outer[0], name), outer[1] if may_go else kind

    def _order(self) -> list[int]:
        """Return the groups, parents first; sets the parents of called computations."""
        children: dict[int, list[int]] = {}
        for index, caller in enumerate(self.caller):
            if caller >= 0:
                self.parent[index] = int(self.group[caller])
            children.setdefault(self.parent[index], []).append(index)
        order: list[int] = []
        # Reversed, because the stack returns the last element first.
        todo = children.get(-1, [])[::-1]
        while todo:
            index = todo.pop()
            order.append(index)
            todo += children.get(index, [])[::-1]
        return order


_PHASES = ("forward", "update", "backward")  # the backward pass reuses the names of the forward pass
_MIN_MEMBERS = 3  # before or after a loop outside of a phase, for a group of their own
_MAX_NAMED = 2  # parameters in a name


class Loop(NamedTuple):
    """A loop: the groups of its iterations, their parent, name, and first and last line."""

    groups: list[int]
    parent: int
    name: str
    lines: tuple[int, int]


class _Side(NamedTuple):
    groups: list[int]
    inside: list[Ints]
    loose: list[Ints]

    def nodes(self) -> Ints:
        return np.concatenate([np.zeros(0, np.int32), *self.loose, *self.inside])


def group_loop_context(tree: Tree, graph: Graph, places: SourcePaths, loops: list[Loop]) -> None:
    names: dict[tuple[str, tuple[int, int], str], str] = {}
    # The forward pass first: its names are reused by the backward pass.
    for loop in sorted(loops, key=lambda loop: _phase_order(tree, loop.parent)):
        _group_sides(tree, graph, places, loop, names)


def _phase_order(tree: Tree, group: int) -> int:
    outermost = tree.name[tree.path(group)[0]] if group >= 0 else ""
    return _PHASES.index(outermost) if outermost in _PHASES else -1


def _group_sides(
    tree: Tree, graph: Graph, places: SourcePaths, loop: Loop, names: dict[tuple[str, tuple[int, int], str], str]
) -> None:
    """Add a group for the nodes before a loop and for those after it, if there are enough nodes.

    `names` has the names of such groups in earlier phases, which are reused; new names join it.
    """
    function = loop.parent
    level = tree.level_of(function)
    sides = _sides(tree, graph, places, loop, level)
    is_phase = _phase_order(tree, function) >= 0
    parent = _lift_only_function(tree, function) if is_phase else function
    for which, side in sides.items():
        if not _is_worth_a_group(tree, side, is_phase):
            continue
        key = (tree.name[function] if function >= 0 else "", loop.lines, which)
        if key not in names:
            names[key] = _name(tree, graph, side.nodes(), loop.name, function, which, is_phase)
        part = tree.add(names[key], "part", parent, level=level)
        for group in side.groups:
            tree.hang(group, part)
        for nodes in side.loose:
            tree.group[nodes] = part


def _sides(tree: Tree, graph: Graph, places: SourcePaths, loop: Loop, level: int) -> dict[str, _Side]:
    sides = {"before": _Side([], [], []), "after": _Side([], [], [])}
    beside = _Side([], [], [])
    first, last = loop.lines

    def side_of(frame: int) -> _Side:
        stack = places.stack(frame)
        line = graph.frames[stack[level]].line if len(stack) > level else 0
        return sides["before"] if 0 < line < first else sides["after"] if line > last else beside

    direct = np.flatnonzero(tree.group == loop.parent).astype(np.int32)
    for frame in np.unique(places.frame[direct]).tolist():
        side_of(frame).loose.append(direct[places.frame[direct] == frame])
    for child, inside in tree.below(loop.parent, np.arange(len(graph.names), dtype=np.int32)):
        if child not in loop.groups and (tree.is_made(child) or tree.kind[child] in ("repeat", "single")):
            side = side_of(int(places.frame[inside[0]]))
            side.groups.append(child)
            side.inside.append(inside)
    return sides


def _lift_only_function(tree: Tree, function: int) -> int:
    """Move the contents of a phase's only function into the phase; return the phase.

    If `function` isn't its phase's only group, change nothing and return `function`.
    """
    phase = tree.parent[function]
    if tree.kind[function] != "function" or len(tree.children[phase]) != 1:
        return function
    # A copy, because `hang` changes the list.
    for child in tree.children[function][:]:
        tree.hang(child, phase)
    tree.group[tree.group == function] = phase
    return phase


def _is_worth_a_group(tree: Tree, side: _Side, is_phase: bool) -> bool:
    things = len(side.groups) + sum(map(len, side.loose))
    # A single group already has a name, except for a repetition, whose name doesn't show its place.
    has_name = things == len(side.groups) == 1 and tree.kind[side.groups[0]] != "repeat"
    return not has_name and things >= (1 if is_phase else _MIN_MEMBERS)


def _name(tree: Tree, graph: Graph, nodes: Ints, loop: str, function: int, which: str, is_phase: bool) -> str:
    """Return the name of the group before or after a loop.

    That of the function after a loop in a phase of a differentiated program, else the names of the parameters read,
    else `before` or `after` and the loop's name.
    """
    if which == "after" and is_phase and tree.kind[function] == "function":
        return tree.name[function]
    parameters = parameter_names(graph, nodes)
    return ", ".join(parameters) if 0 < len(parameters) <= _MAX_NAMED else f"{which} {loop}"
