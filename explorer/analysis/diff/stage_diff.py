"""Comparison of one stage of two captures: matched nodes, and the text of `b` with the names of `a`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.diff.match_graphs import Alignment, Side, match_graphs
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.graph import Frame, Graph, Group, Ints, Node
from explorer.model.passes import Pass, Passes, measured
from explorer.model.stage import WrittenLine
from explorer.model.text_versions import Snapshot, Versions, runs_between

_NONE, _MODULE, _NOWHERE = -2, -3, -4  # groups of lines without a group, of lines of the module, and of no line


@dataclass(frozen=True, eq=False)
class StageDiff:
    """Difference of one stage of two captures.

    Args:
        step: The change in the form of a compiler pass. `born` exists only in `b`, `died` only in `a`. `before`,
            `after` and `diff()` give the texts, `b` with the names of `a`, so that renumbering is no difference.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> x = jnp.ones(8)
        >>> before = explorer.explore(lambda x: jnp.sin(x) + x, x)
        >>> after = explorer.explore(lambda x: jnp.cos(x) + x, x)
        >>> stage = explorer.diff(before, after).jaxpr
        >>> [node.op for node in stage.only_in_a], [node.op for node in stage.only_in_b]
        (['sin'], ['cos'])
        >>> [a.op for a, b in stage.pairs]
        ['parameter', 'add']
    """

    name: str
    a: Side
    b: Side
    alignment: Alignment
    step: Pass

    @property
    def only_in_a(self) -> tuple[Node, ...]:
        return tuple(Node(self.a.graph, int(i)) for i in np.flatnonzero(self.alignment.there < 0))

    @property
    def only_in_b(self) -> tuple[Node, ...]:
        return tuple(Node(self.b.graph, int(i)) for i in np.flatnonzero(self.alignment.back < 0))

    @property
    def pairs(self) -> tuple[tuple[Node, Node], ...]:
        there = self.alignment.there
        return tuple(
            (Node(self.a.graph, int(i)), Node(self.b.graph, int(there[i]))) for i in np.flatnonzero(there >= 0)
        )

    @property
    def is_empty(self) -> bool:
        return not self.step.is_consequential

    def name_of(self, node: Node) -> str:
        """Return a node's name in the text: that in `a`; with a prime if only `b` has it and the name is taken."""
        if node.graph is not self.b.graph or node.graph is self.a.graph:
            return node.name
        partner = int(self.alignment.back[node.index])
        return self.a.graph.names[partner] if partner >= 0 else _primed(node.name, self.a.graph)

    def text(self, context: int = 3) -> str:
        """Return a unified diff of the two texts, without metadata and renumbering.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> x = jnp.ones(8)
            >>> stage = explorer.diff(explorer.explore(jnp.sin, x), explorer.explore(jnp.cos, x)).jaxpr
            >>> "sin" in stage.text()
            True
        """
        return self.step.diff(context)

    @cached_property
    def passes(self) -> Passes:
        """Return the difference as `Passes` with a single pass, which the viewer can show."""
        assert self.step.versions is not None
        return Passes(self.step.versions, [self.step], links=())

    def __repr__(self) -> str:
        effect = str(self.step).partition(": ")[2]
        return f"StageDiff({self.name}: {effect}, of {len(self.a.graph):,} and {len(self.b.graph):,})"


def stage_diff(name: str, one: Capture, other: Capture) -> StageDiff:
    stages = one.stage(name), other.stage(name)
    a, b = (Side(stage.graph, c.sources) for stage, c in zip(stages, (one, other), strict=True))
    alignment = match_graphs(a, b)
    versions = _Overlay(a, b, stages[0].written_lines, stages[1].written_lines, alignment).build()
    (step,) = measured(versions, [(name, f"{one.function} → {other.function}", None, 1)])
    return StageDiff(name, a, b, alignment, step)


class _Text:
    def __init__(self, graph: Graph, lines: Sequence[WrittenLine]) -> None:
        nodes: dict[int, list[int]] = defaultdict(list)
        for node, line in enumerate(graph.line.tolist()):
            nodes[line].append(node)
        self.lines = lines
        self.nodes = [nodes.get(line.number, []) for line in lines]
        self.row_of = {node: row for row, held in enumerate(self.nodes) for node in held}
        self.homes = self.group_of_lines(graph)

    def group_of_lines(self, graph: Graph) -> list[int]:
        held = [int(graph.group[nodes[0]]) if nodes else _NONE for nodes in self.nodes]
        # A line without nodes belongs to the group of the line before or after it.
        before, after = _filled(held), _filled(held[::-1])[::-1]
        return [
            _MODULE if line.is_of_module else b if line.is_end else a
            for line, b, a in zip(self.lines, before, after, strict=True)
        ]


def _filled(groups: Sequence[int]) -> list[int]:
    filled: list[int] = []
    last = _NONE
    for group in groups:
        last = last if group == _NONE else group
        filled.append(last)
    return filled


class _Overlay:
    """Builder of one text with two snapshots, `a` and `b`; equal lines share a row."""

    def __init__(
        self, a: Side, b: Side, old: Sequence[WrittenLine], new: Sequence[WrittenLine], alignment: Alignment
    ) -> None:
        self.a, self.b = a, b
        self.there, self.back = alignment.there, alignment.back
        self.old, self.new = _Text(a.graph, old), _Text(b.graph, new)
        # Nodes of `a` first, then those that only `b` has.
        self.key_of_b = np.where(self.back >= 0, self.back, 0).astype(np.int64)
        only = np.flatnonzero(self.back < 0)
        self.key_of_b[only] = len(a.graph) + np.arange(len(only))
        self.only = only
        self.names = [*a.graph.names, *(_primed(b.graph.names[i], a.graph) for i in only.tolist())]
        self.renames = self.names_by_group()
        self.groups = self.groups_in_a()
        self.computations = {b.graph.groups[i].name: a.graph.groups[at].name for i, at in self.groups.items() if i >= 0}

    def names_by_group(self) -> Mapping[int, dict[str, str]]:
        """Return the new name of each name of `b`, by group of `b`, as names are unique only within a computation."""
        renames: dict[int, dict[str, str]] = defaultdict(dict)
        for name, group, key in zip(
            self.b.graph.names, self.b.graph.group.tolist(), self.key_of_b.tolist(), strict=True
        ):
            renames[group][name.lstrip("%")] = self.names[key].lstrip("%")
        return renames

    def groups_in_a(self) -> dict[int, int]:
        """Return the group of `a` by group of `b`, as indices: same kind and caller, without a caller the same name.

        Groups without a counterpart are missing.
        """
        group_of_a = {self.called(group, group.caller): i for i, group in enumerate(self.a.graph.groups)}
        in_a = {_MODULE: _MODULE, _NONE: _NONE}
        for i, group in enumerate(self.b.graph.groups):
            caller = int(self.back[group.caller]) if group.caller >= 0 else -1
            if (group.caller < 0 or caller >= 0) and (at := group_of_a.get(self.called(group, caller))) is not None:
                in_a[i] = at
        return in_a

    @staticmethod
    def called(group: Group, caller: int) -> tuple[str, int, str]:
        return group.kind, caller, "" if caller >= 0 or group.kind == "entry" else group.name

    def build(self) -> Versions:
        lines = [line.text for line in self.old.lines]
        keys, nodes = [held[0] if held else -1 for held in self.old.nodes], [*self.old.nodes]
        sides = [False] * len(lines)
        plain = self.plain_rows()
        rows: list[int] = []
        for line, held, home in zip(self.new.lines, self.new.nodes, self.new.homes, strict=True):
            row = self.same_row(line, held) if held else plain(line, self.groups.get(home, _NOWHERE))
            if row < 0:
                row = len(lines)
                names = self.renames.get(home, {})
                lines.append(line.renamed(lambda name, of=names: of.get(name, self.computations.get(name, name))))
                keys.append(int(self.key_of_b[held[0]]) if held else -1)
                nodes.append(held)
                sides.append(True)
            rows.append(row)
        before = list(range(len(self.old.lines)))
        snapshots = [
            Snapshot(np.asarray([-1, len(before)], np.int32), 0),
            Snapshot(runs_between(before, rows, len(before)), len(before)),
        ]
        return self.versions(lines, keys, nodes, sides, snapshots)

    def plain_rows(self) -> Callable[[WrittenLine, int], int]:
        """Return a function of a line and a group of `a`: the row of the next unused line of `a`, or -1.

        That line has no nodes, is in the group, and differs only in names.
        """
        rows: dict[tuple[str, int], list[int]] = defaultdict(list)
        for row, (line, held, home) in enumerate(zip(self.old.lines, self.old.nodes, self.old.homes, strict=True)):
            if not held:
                rows[line.without_names, home].append(row)
        # Iterators, so that each line of `a` is used only once.
        left = {key: iter(of_key) for key, of_key in rows.items()}
        return lambda line, home: next(left.get((line.without_names, home), iter(())), -1)

    def same_row(self, line: WrittenLine, held: Sequence[int]) -> int:
        """Return the row in `a` with the same text, nodes and operands, or -1."""
        partners = [int(self.back[node]) for node in held]
        row = self.old.row_of.get(partners[0], -1)
        if row < 0 or self.old.nodes[row] != partners:
            return -1
        ours = [key for node in held for key in self.key_of_b[_operands(self.b.graph, node)].tolist()]
        theirs = [key for node in partners for key in _operands(self.a.graph, node).tolist()]
        is_same = ours == theirs and line.without_names == self.old.lines[row].without_names
        return row if is_same else -1

    def versions(
        self,
        lines: list[str],
        keys: list[int],
        nodes: Sequence[Sequence[int]],
        sides: Sequence[bool],
        snapshots: Sequence[Snapshot],
    ) -> Versions:
        """Return the joint text as `Versions`: operation, type and frame are those of each row's first node, or -1.

        Names, types and frames of both sides are in one table each.
        """
        ops, types, frames = _Table(), _Table(), list(self.a.graph.frames)
        moved = len(frames)
        frames += [_moved(frame, moved) for frame in self.b.graph.frames]
        columns: dict[str, list[int]] = {"op": [], "type": [], "frame": []}
        for held, is_new in zip(nodes, sides, strict=True):
            graph = (self.b if is_new else self.a).graph
            if not held:
                for column in columns.values():
                    column.append(-1)
                continue
            node = held[0]
            columns["op"].append(ops[graph.ops[int(graph.op[node])]])
            columns["type"].append(types[graph.types[int(graph.type[node])]])
            frame = int(graph.frame[node])
            columns["frame"].append(frame + moved * is_new if frame >= 0 else -1)
        operand_start, operand = self.operand_rows(nodes, sides)
        groups = [group.name for group in self.a.graph.groups] + [group.name for group in self.b.graph.groups]
        of_b = self.b.graph.group[self.only]
        home = np.concatenate([self.a.graph.group, np.where(of_b >= 0, of_b + len(self.a.graph.groups), -1)])
        return Versions(
            lines=lines,
            key=np.asarray(keys, np.int32),
            op=np.asarray(columns["op"], np.int32),
            type=np.asarray(columns["type"], np.int32),
            frame=np.asarray(columns["frame"], np.int32),
            operand_start=operand_start,
            operand=operand,
            names=self.names,
            # The last name, which is empty, is for nodes outside of all computations.
            computation=np.where(home >= 0, home, len(groups)).astype(np.int32),
            computations=[*groups, ""],
            ops=list(ops),
            types=list(types),
            frames=frames,
            snapshots=snapshots,
        )

    def operand_rows(self, nodes: Sequence[Sequence[int]], sides: Sequence[bool]) -> tuple[Ints, Ints]:
        """Return the operand keys of each row's nodes as compressed rows: (starts, keys).

        Args:
            nodes: Nodes of each row.
            sides: True for rows whose nodes are in `b`, False for nodes in `a`.
        """
        start, operand = [0], list[int]()
        for held, is_new in zip(nodes, sides, strict=True):
            for node in held:
                read = _operands((self.b if is_new else self.a).graph, node)
                operand += (self.key_of_b[read] if is_new else read).tolist()
            start.append(len(operand))
        return np.asarray(start, np.int32), np.asarray(operand, np.int32)


def _primed(name: str, others: Graph) -> str:
    return name + "′" * (name in others)


class _Table(dict[str, int]):
    def __missing__(self, value: str) -> int:
        self[value] = len(self)
        return self[value]


def _operands(graph: Graph, node: int) -> Ints:
    return graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]


def _moved(frame: Frame, by: int) -> Frame:
    parent = frame.parent + by if frame.parent >= 0 else -1
    return Frame(frame.file, frame.function, frame.line, frame.column, frame.end_line, frame.end_column, parent)
