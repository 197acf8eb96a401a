"""The fates that the recorded passes tell, of the equations of a jaxpr and of StableHLO's operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from explorer.analysis.fates.before_passes import before_passes
from explorer.analysis.fates.metadata_fates import Instructions, Row, only_calls, running
from explorer.analysis.fates.operations import HELPERS, hlo_name
from explorer.analysis.links.equations import is_dead, varies
from explorer.analysis.passes.origins import Origins
from explorer.analysis.passes.provenance import MOVED, TAKEN, Ending
from explorer.model.fates import LOWERING
from explorer.model.graph import Graph

_CALLS = ("call", "func.call")
_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier", "copy_p", "copy"])
_CONTROL = frozenset(["while", "conditional", "call"])


class Recorded:
    """What the passes say of the units, and where each runs.

    Args:
        origins: What they say.
        hlo: The instructions of the optimized program.
        names: Of each equation.
    """

    def __init__(self, origins: Origins, hlo: Instructions, names: Sequence[str]) -> None:
        self.origins, self.evidence, self.provenance = origins, origins.evidence, origins.provenance
        self.units, self.hlo, self.names = origins.provenance.units, hlo, names
        self._native: dict[int, list[tuple[int, int]]] = {}
        self._other: dict[int, list[tuple[int, int]]] = {}
        self._all: dict[int, list[int]] = {}  # by equation
        self._lives: set[int] = set()
        for row, (native, standing) in self.provenance.counts.items():
            node, how = origins.node_of_row.get(row, -1), dict(self.provenance.origins[row])
            for equation in how if node >= 0 else ():
                self._all.setdefault(equation, []).append(node)
            for places, numbers in ((self._native, native), (self._other, standing)):
                for number in numbers if node >= 0 else ():
                    equation = self.units[number].equation
                    places.setdefault(number, []).append((node, how[equation]))
                    self._lives.add(equation)

    def row(self, number: int) -> Row | None:
        """The fate of a unit that some snapshot has; None for another one."""
        if number not in self.provenance.met:
            return None
        native, other = self._native.get(number, []), self._other.get(number, [])
        mine = [node for node, how in native if how != MOVED]
        if control := [node for node in mine if self.hlo.graph.ops[self.hlo.op_code[node]] in _CONTROL]:
            return Row("kept", tuple(control), False, "it is the loop, branch or call itself")
        if mine:
            return self._running(number, mine)
        return self._elsewhere(number, (*native, *other), [node for node, _ in other])

    def _elsewhere(self, number: int, places: Sequence[tuple[int, int]], other: Sequence[int]) -> Row:
        """The fate of a unit that nothing runs for in its own place."""
        walk = self.provenance
        moved = [node for node, how in places if how == MOVED]
        if moved and number in walk.moved:
            return self._row(walk.moved[number], "moved", self._kernels(moved))
        if other:
            end = walk.rewritten.get(number)
            return running(self.hlo, other) if end is None else self._row(end, "rewritten", self._kernels(other))
        end = walk.ended.get(number)
        return self._ended(end) if end is not None else Row("unknown")

    def _running(self, number: int, mine: Sequence[int]) -> Row:
        """The fate of a unit that instructions of its own operation run for."""
        row = running(self.hlo, mine, along=self._all[self.units[number].equation])
        split = self.provenance.split.get(number)
        if split is not None and len(row.kernels) > 1:
            return self._row(split, "split", row.kernels)
        is_taken = all(how >= TAKEN for _, how in self._native.get(number, ()))
        taken = self.provenance.rewritten.get(number) if is_taken else None
        return self._row(taken, "rewritten", row.kernels) if taken is not None else row

    def _ended(self, end: Ending) -> Row:
        kind, why = end.kind, end.why
        names = [self.names[equation] for equation, _ in end.target]
        if kind == "merged" and names:
            why = f"the same as {' and '.join(names)}, which stands for both"
        if kind == "folded into":
            return self._folded_into(end)
        return self._row(end._replace(why=why), kind, ())

    def _folded_into(self, end: Ending) -> Row:
        there = [equation for equation, _ in end.target if equation in self._lives]
        if not there:  # and that is gone too
            return self._row(end, "eliminated", ())
        nodes = [node for equation in there for node in self._nodes_of(equation)]
        names, verb = [self.names[equation] for equation in there], "does" if len(there) == 1 else "do"
        why = f"{' and '.join(names)} {verb} both: {end.why}"
        return self._row(end._replace(why=why), "folded into", self._kernels(nodes))

    def _nodes_of(self, equation: int) -> list[int]:
        """The instructions that run for an equation, as themselves or as another operation."""
        units = self.units.of_equation[equation]
        return [node for places in (self._native, self._other) for unit in units for node, _ in places.get(unit, ())]

    def _kernels(self, nodes: Sequence[int]) -> tuple[int, ...]:
        return tuple(sorted({self.hlo.kernel[node] for node in nodes} - {-1}))

    def _row(self, end: Ending, kind: str, kernels: tuple[int, ...]) -> Row:
        lines = self.evidence.versions.lines
        before, after = (lines[row].strip() if row >= 0 else "" for row in (end.before, end.after))
        return Row(kind, kernels, False, end.why, end.position + 1, before, after)

    def rows(self, stage: str, graph: Graph) -> list[Row]:
        """The fates of one stage's nodes."""
        varying, dead = varies(graph), is_dead(graph)
        is_first = stage == self.evidence.first
        before = before_passes(self.evidence, stage, graph, varying, graph.attribute_table.codes("literals"))
        units = self.origins.unit_of_equation if is_first else self.origins.unit_of_operation
        callers = {group.caller for group in graph.groups}

        def row_of(node: int) -> Row | None:
            op, number = graph.ops[int(graph.op[node])], units.get(node, -1)
            if op in _CALLS or (node in callers and only_calls(op)):
                return self._of_call(number)
            row = self.row(number)
            if row is None and (is_first or self._is_gone(number, op)):
                return before.row(node) or self._not_lowered(op, is_dead=bool(dead[node]))
            return row

        flags = enumerate(graph.is_equation.tolist())
        rows = [row_of(node) or Row("unknown") if is_equation else Row() for node, is_equation in flags]
        _take_from_callers(graph, rows)
        return rows

    def _is_gone(self, number: int, op: str) -> bool:
        """Whether an operation that no snapshot has ended before: the import may have made another form of a value."""
        if number < 0:
            return False
        whole = self.origins.unit_of_equation[self.units[number].equation]
        return whole not in self.provenance.met or hlo_name(op) not in HELPERS

    def _of_call(self, number: int) -> Row:
        row = self.row(number)
        if row is not None and row.kind == "kept":
            return row
        # A loop or a branch that is gone leaves what is in it.
        if row is not None and row.step > 0 and "call" not in self.units[number].ops:
            return replace(row, kind="inlined", kernels=())
        return Row("inlined", (), False, "what it calls stands in its place")

    def _not_lowered(self, op: str, *, is_dead: bool) -> Row:
        if is_dead:
            return Row("eliminated", (), False, "nothing that is returned depends on it", LOWERING)
        if op in _NOTHING:
            return Row("eliminated", (), False, "it changes no value", LOWERING)
        if self.evidence.is_all_lowered:
            return Row("eliminated", (), False, "JAX made no operation of it", LOWERING)
        return Row("unknown")


def _take_from_callers(graph: Graph, rows: list[Row]) -> None:
    """What a reduction or a scatter applies to each pair is where that is."""
    callers = [*(group.caller for group in graph.groups), -1]
    for node, row in enumerate(rows):
        caller = callers[int(graph.group[node])]
        is_left_out = row.kind == "unknown" or (row.kind == "eliminated" and row.step == LOWERING)
        if caller >= 0 and is_left_out and rows[caller].kernels and not only_calls(graph.ops[int(graph.op[caller])]):
            above = rows[caller]
            rows[node] = Row(above.kind, above.kernels, True, f"part of {graph.names[caller]}")
