"""What ended before the first pass: in XLA's import of StableHLO, and in JAX's lowering."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from explorer.analysis.fates.metadata_fates import Row
from explorer.analysis.fates.operations import HELPERS, NEUTRAL, hlo_name, infix
from explorer.analysis.links.dependence import argument_sets
from explorer.model.capture import Capture
from explorer.model.equation_sets import EquationSets
from explorer.model.fates import IMPORT, LOWERING
from explorer.model.graph import Graph, Ints
from explorer.model.text_versions import Versions

_CONSTANT = ("constant", "broadcast")  # as an operand beside one that varies, most often a constant
_DEEPEST = 3  # expressions inside expressions; the rest is names


class _Place(NamedTuple):
    """What stands in the place of an operation that the import took away.

    Args:
        row: Of the first snapshot.
        outermost: The operation that it is read for: the same, or one around it that is gone too.
    """

    row: int
    outermost: int


@dataclass(frozen=True, eq=False)
class Imported:
    """What a stage's nodes became where no snapshot has them.

    Args:
        graph: Of the stage.
        operations: By node, the StableHLO operations that JAX made of it.
        node_of: By StableHLO operation, a node of the stage.
        lowered: StableHLO's graph.
        lines: Its text.
        depends: For each node, which arguments its value depends on; 0 for none.
        places: By StableHLO operation that the import took away and whose value depends on an argument, what is there
            instead, where that is found.
        nameless: By operation and dimensions, a row of the first snapshot that is of no equation.
        versions: What has these rows.
        is_first: Whether the stage is the one that the rows' equations are of.
    """

    graph: Graph
    operations: Mapping[int, Sequence[int]]
    node_of: Mapping[int, int]
    lowered: Graph
    lines: Sequence[str]
    depends: Sequence[int]
    places: Mapping[int, _Place]
    nameless: Mapping[tuple[str, str], int]
    versions: Versions
    is_first: bool

    def row(self, node: int) -> Row | None:
        """The fate of a node that the import, or the lowering to a constant, ended; None if StableHLO lacks it."""
        operations = self.operations.get(node, ())
        if not operations:
            return None
        lowered = self.lowered
        own = [at for at in operations if hlo_name(lowered.ops[int(lowered.op[at])]) not in HELPERS] or operations
        if not any(lowered.is_equation[at] for at in own):
            return Row("folded", (), False, "its value is a constant of the program", LOWERING)
        last = own[-1]
        before = self.lines[int(lowered.line[last])].partition(" loc(")[0].strip()
        if not self.depends[node]:
            if (made_anew := self._made_anew(node)) >= 0:
                line = self.versions.lines[made_anew].strip()
                why = f"{self._expression(node, 0)} → a constant, written out again"
                return Row("rewritten", (), False, why, IMPORT, before, line)
            return Row("folded", (), False, self._expression(node, 0), IMPORT, before)
        place = self.places.get(last)
        after = self.versions.lines[place.row].strip() if place is not None else ""
        return Row("eliminated", (), False, self._formula(node, place), IMPORT, before, after)

    def _made_anew(self, node: int) -> int:
        """The first snapshot's row that says again what the import folded into a constant array; -1 for none.

        XLA has no such constants: of an array of equal numbers it makes a broadcast, which is of no equation.
        """
        shape = self.graph.types[int(self.graph.type[node])].partition("[")[2].partition("]")[0]
        return self.nameless.get((hlo_name(self._op(node)), shape), -1)

    def _formula(self, node: int, place: _Place | None) -> str:
        """An equation as an expression, and what stands in its place: `x × 1.0 → x`."""
        if (operand := self._neutral(node)) >= 0:
            return f"{self._expression(node, _DEEPEST)} → {self._label(operand)}"
        if place is None:
            return self._expression(node, 0)
        outermost = self.node_of.get(place.outermost, node)
        return f"{self._expression(outermost, 0)} → {self._name(place.row)}"

    def _neutral(self, node: int) -> int:
        """The operand that an equation gives as it is, since its other one is a literal that changes nothing; or -1."""
        start, end = self.graph.operand_start[node : node + 2]
        neutral, sides = NEUTRAL.get(hlo_name(self._op(node)), ("", ()))
        literals = self._literals(node)
        if end - start == 1 and any(float(literals.get(side, "nan")) == float(neutral or "inf") for side in sides):
            return int(self.graph.operand[start])
        return -1

    def _expression(self, node: int, depth: int) -> str:
        start, end = self.graph.operand_start[node : node + 2]
        operands = [self._operand(i, depth) for i in self.graph.operand[start:end].tolist()]
        for side, value in self._literals(node).items():
            operands.insert(side, value)
        return infix(self._op(node).removeprefix("stablehlo."), operands)

    def _operand(self, node: int, depth: int) -> str:
        operations = self.operations.get(node, ())
        is_gone = bool(operations) and all(operation in self.places for operation in operations[-1:])
        return self._expression(node, depth + 1) if is_gone and depth < _DEEPEST else self._label(node)

    def _literals(self, node: int) -> dict[int, str]:
        """The literals among an equation's operands, by position, without their types."""
        written = self.graph.attribute_table.get(node, "literals")
        pairs = (literal.partition("=") for literal in written.split(", ") if literal)
        return {int(side): value.partition(":")[0] for side, _, value in pairs if side.isdigit()}

    def _op(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    def _label(self, node: int) -> str:
        """What the user calls an argument, what the stage calls anything else."""
        scope = self.graph.scopes[int(self.graph.scope[node])] if self._op(node) == "parameter" else ""
        return scope or self.graph.names[node]

    def _name(self, row: int) -> str:
        """What the stage calls what a row has, else the instruction's name."""
        equations = self.versions.equations
        of: list[int] = equations.of(row).tolist() if equations is not None and self.is_first else []
        if len(of) == 1:
            return self._label(of[0])
        name = self.versions.names[int(self.versions.key[row])]
        argument = name.rpartition(".")[0]  # XLA counts the names that JAX gives
        return argument if argument in self._arguments else name

    @cached_property
    def _arguments(self) -> frozenset[str]:
        graph = self.graph
        parameters = [i for i, op in enumerate(graph.ops) if op == "parameter"]
        return frozenset(map(self._label, np.flatnonzero(np.isin(graph.op, parameters)).tolist()))


def imported(
    capture: Capture, name: str, equations: EquationSets, lowered: EquationSets, depends: Sequence[int]
) -> Imported:
    """What is needed to say which nodes of a stage ended before the first pass."""
    stage, stablehlo, versions = capture.stage(name), capture.stablehlo, capture.passes.versions
    operations: dict[int, list[int]] = {}
    node_of: dict[int, int] = {}
    own = range(len(stablehlo.graph.names))
    pairs = zip(own, own, strict=True) if name == "stablehlo" else zip(*map(_listed, lowered.pairs), strict=True)
    for operation, node in pairs:
        operations.setdefault(node, []).append(operation)
        node_of[operation] = node
    varies = depends if name == "stablehlo" else capture.links.argument_sets.get("stablehlo", ())
    import_ = _Import(stablehlo.graph, versions, equations, lowered, varies or argument_sets(stablehlo.graph, {}))
    return Imported(
        graph=stage.graph,
        operations=operations,
        node_of=node_of,
        lowered=stablehlo.graph,
        lines=stablehlo.text.splitlines(),
        depends=depends,
        places=import_.places() if versions.snapshots else {},
        nameless=import_.nameless(),
        versions=versions,
        is_first=name == capture.links.first,
    )


def _listed(column: Ints) -> list[int]:
    return column.tolist()


class _Import:
    """StableHLO beside the first snapshot: an operation is the only row of its equation that has its name."""

    def __init__(
        self, graph: Graph, versions: Versions, equations: EquationSets, lowered: EquationSets, varies: Sequence[int]
    ) -> None:
        self.graph, self.versions, self.lowered, self.varies = graph, versions, lowered, varies
        rows: list[int] = versions.rows(0).tolist() if versions.snapshots else []
        self.row_of_key = {int(versions.key[row]): row for row in rows if versions.key[row] >= 0}
        self._equations = equations
        self._rows: dict[tuple[int, str], list[int]] = {}
        for row in self.row_of_key.values():
            for equation in equations.of(row).tolist():
                self._rows.setdefault((equation, self._op(row)), []).append(row)

    def nameless(self) -> Mapping[tuple[str, str], int]:
        """By operation and dimensions, a row that is of no equation."""
        types = self.versions.types
        return {
            (self._op(row), types[int(self.versions.type[row])].partition("[")[2].partition("]")[0]): row
            for row in self.row_of_key.values()
            if self._equations.code[row] < 0
        }

    def places(self) -> Mapping[int, _Place]:
        """By operation that is gone, what its reader reads instead, or what stands for its readers, if these are gone.

        From the results backwards: what stands for a reader is found before what it reads.
        """
        places: dict[int, _Place] = {}
        user_start, user = self.graph.user_columns
        for operation in reversed(range(len(self.graph.names))):
            is_gone = self.graph.is_equation[operation] and self._row_of(operation) < 0
            if not is_gone or not self.varies[operation]:
                continue
            readers: list[int] = user[user_start[operation] : user_start[operation + 1]].tolist()
            candidates = (self._place(operation, reader, places.get) for reader in readers)
            place = next((place for place in candidates if place is not None), None)
            if place is not None:
                places[operation] = place
        return places

    def _place(self, operation: int, reader: int, known: Callable[[int], _Place | None]) -> _Place | None:
        graph, row = self.graph, self._row_of(reader)
        if row < 0:
            return known(reader)
        operands: list[int] = graph.operand[graph.operand_start[reader] : graph.operand_start[reader + 1]].tolist()
        keys = self.versions.operands(row)
        others = {int(self.versions.key[at]) for i in operands if i != operation and (at := self._row_of(i)) >= 0}
        # Not by position: the import moves constants to the right.
        left = list(dict.fromkeys(key for key in keys if key not in others))
        if len(left) > 1:
            left = [key for key in left if self._op(self.row_of_key[key]) not in _CONSTANT]
        if len(keys) != len(operands) or len(left) != 1:
            return None
        return _Place(self.row_of_key[left[0]], operation)

    def _row_of(self, operation: int) -> int:
        equation: list[int] = self.lowered.of(operation).tolist()
        name = hlo_name(self.graph.ops[int(self.graph.op[operation])])
        rows = self._rows.get((equation[0], name), []) if len(equation) == 1 else []
        return rows[0] if len(rows) == 1 else -1

    def _op(self, row: int) -> str:
        return self.versions.ops[int(self.versions.op[row])]
