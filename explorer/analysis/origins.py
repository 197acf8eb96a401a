"""Equations of the instructions of a recorded program, from their own numbers and from the passes.

Links, lines, costs and fates are based on these equations. An instruction that the compiler made without metadata
belongs to the equations it was made for; a product that carries the name of a transpose belongs to both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.hlo_operations import HELPERS, NEVER_OWN, WORK, hlo_name
from explorer.analysis.provenance import MOVED, OWN, Provenance, Unit, follow
from explorer.model.capture import Capture
from explorer.model.declared import cached_property, uncollected
from explorer.model.graph import Graph, Ints
from explorer.model.links import EXACT, INFERRED, EquationSets, Grades
from explorer.model.passes import Passes
from explorer.model.text_versions import Versions

_CALLS = ("call", "func.call")


class Named(NamedTuple):
    """The equations that lines or operations name.

    Args:
        sets: Equations of each row.
        code: A number shared by rows with the same equations; -1 if they are in doubt.
        row, equation: The pairs that are certain, by row.
    """

    sets: EquationSets
    code: Ints
    row: Ints
    equation: Ints

    @staticmethod
    def of(sets: EquationSets) -> Named:
        code = np.where(sets.grade == EXACT, sets.code, -1).astype(np.int32)
        row, equation = sets.pairs
        is_certain = code[row] >= 0
        return Named(sets, code, row[is_certain], equation[is_certain])

    def among(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the (row, equation) pairs of `rows` that are certain, by row."""
        is_wanted = np.zeros(len(self.code), bool)
        is_wanted[rows] = True
        wanted = is_wanted[self.row]
        return self.row[wanted], self.equation[wanted]


@dataclass(frozen=True, eq=False)
class Evidence:
    """The recorded data that all fates of a capture are derived from.

    Args:
        passes: Recorded passes, with the equations of each line.
        lines: The first stage's equations of each line, and of each later state of a line.
        lowered: The same for StableHLO's operations.
        lowering: StableHLO's graph.
        text: StableHLO's lines.
        first: Name of the first stage.
    """

    passes: Passes
    lines: Named
    lowered: Named
    lowering: Graph
    text: Sequence[str]
    first: str

    @cached_property
    def versions(self) -> Versions:
        return self.passes.versions

    @cached_property
    def does(self) -> NDArray[np.bool_]:
        """Return a mask of the operations that compute, shape `[operations]`."""
        return self.lowering.is_equation

    @cached_property
    def is_all_lowered(self) -> bool:
        """Return True if the equation of every operation that computes is known."""
        # JAX itself adds sharding constraints to arguments and results that are keys.
        computes = np.asarray([not op.startswith("sdy.") for op in self.lowering.ops] or [False], bool)
        return bool((self.lowered.code[self.does & computes[self.lowering.op]] >= 0).all())

    def op(self, row: int) -> str:
        code = int(self.versions.op[row])
        return self.versions.ops[code] if code >= 0 else ""

    def equations_of(self, row: int) -> list[int]:
        return self.lines.sets.of(row).tolist()

    def outermost(self) -> tuple[Ints, Ints]:
        """Return operations and equations, without operations in a region of another one of the same equation.

        A reduction's addition and a loop's counter live as long as their caller, and may remain for a while afterwards.
        """
        graph, code = self.lowering, self.lowered.code
        operation, equation = self.lowered.row, self.lowered.equation
        caller = graph.caller[graph.group[operation]]
        calls = np.asarray([op in _CALLS for op in graph.ops] or [False], bool)[graph.op]
        is_inner = (caller >= 0) & (code[caller] == code[operation]) & ~calls[caller]
        return operation[~is_inner], equation[~is_inner]

    def functions(self) -> Ints:
        """Return the group of the function around each StableHLO operation, or -1."""
        outermost: list[int] = []  # by group; a group comes after its parent
        for at, group in enumerate(self.lowering.groups):
            is_inside = group.kind not in ("function", "entry") and 0 <= group.parent < at
            outermost.append(outermost[group.parent] if is_inside else at)
        return np.asarray([*outermost, -1], np.int32)[self.lowering.group]

    def codes_of_operations(self, operation: Ints, equation: Ints) -> tuple[Ints, NDArray[np.int64]]:
        """Return operations, and for each the number `equation * len(versions.ops) + op` by HLO's name.

        Operations whose HLO name no line has are left out.
        """
        ops = self.versions.ops
        code = {op: i for i, op in enumerate(ops)}
        own_code = np.asarray([code.get(hlo_name(op), -1) for op in self.lowering.ops] or [-1], np.int64)
        op = own_code[self.lowering.op[operation]]
        return operation[op >= 0], (equation.astype(np.int64) * len(ops) + op)[op >= 0]


def evidence_of(capture: Capture, passes: Passes, exact: Mapping[str, EquationSets]) -> Evidence | None:
    """Return the recorded data that fates are derived from; None if equations of a line or a stage are unknown.

    The stages are `stablehlo` and `hlo`.
    """
    versions, equations = passes.versions, passes.versions.equations
    if equations is None or not {"hlo", "stablehlo"} <= exact.keys():
        return None
    lowering, text, sets = capture.stablehlo.graph, capture.stablehlo.text, exact["stablehlo"]
    # Everything that the walk reads of the model.
    _ = equations.pairs, sets.pairs, exact["hlo"].pairs, versions.ends, passes.effect_at, capture.hlo.graph
    lines, lowered = Named.of(equations), Named.of(sets)
    return Evidence(passes, lines, lowered, lowering, text.splitlines(), capture.stages[0].name)


_FAULT = "the recorded passes could not be followed ({}): fates are from the compiler's metadata alone"
_APPLIED = frozenset(("apply", "reducer"))


@dataclass(frozen=True, eq=False)
class Origins:
    """Origins of one program's instructions according to the passes.

    Args:
        evidence: The recorded data.
        provenance: Origins of each row of the last snapshot.
        node_of_row: Instruction of the optimized program for each row of the last snapshot.
        unit_of_equation, unit_of_operation: Unit that was watched for a node of the jaxpr, and of StableHLO.
    """

    evidence: Evidence
    provenance: Provenance
    node_of_row: Mapping[int, int]
    unit_of_equation: Mapping[int, int]
    unit_of_operation: Mapping[int, int]

    def sets(self, graph: Graph, own: EquationSets) -> EquationSets:
        """Return the equations of each instruction: its own, and those that the passes show, graded as inferred.

        Args:
            graph: The optimized program.
            own: Equations named by the instructions' own numbers, which stay.
        """
        row, equation = own.pairs
        grade, more = own.grade.copy(), list[tuple[int, int]]()
        # The called computation replaced these.
        calls = {unit.equation for unit in self.provenance.units if "call" in unit.ops}
        for at, origins in self.provenance.origins.items():
            node, op = self.node_of_row.get(at, -1), self.evidence.op(at)
            if node < 0 or op in NEVER_OWN:
                continue
            if own.code[node] < 0:
                more += ((node, of) for of, _ in origins)
                grade[node] = INFERRED
            elif op in WORK:
                more += ((node, of) for of in _taken(origins) if of not in calls)
        _add_callers(graph, own, grade, more)
        added = np.asarray(more, np.int32).reshape(-1, 2)
        return EquationSets.of_pairs(np.concatenate([row, added[:, 0]]), np.concatenate([equation, added[:, 1]]), grade)


def _taken(origins: Sequence[tuple[int, int]]) -> list[int]:
    """Return the equations whose work an instruction does in addition to its own."""
    return [equation for equation, how in origins if how not in (OWN, MOVED)]


def _add_callers(graph: Graph, own: EquationSets, grade: Grades, more: list[tuple[int, int]]) -> None:
    """Give kernels without equations those of their root, and the operations that a reduction applies its own.

    `more` gets (node, equation) pairs, with an inferred `grade`.
    """
    of: dict[int, list[int]] = {}
    for node, equation in more:
        of.setdefault(node, []).append(equation)
    for node, kernel in _roots(graph):
        code = int(own.code[node])
        equations = of.get(node) or (own.node[own.start[code] : own.start[code + 1]].tolist() if code >= 0 else [])
        if own.code[kernel] < 0 and equations and kernel not in of:
            of[kernel] = equations
            grade[kernel] = INFERRED
            more += ((kernel, equation) for equation in equations)
    _add_applied(graph, own, grade, of, more)


def _add_applied(
    graph: Graph, own: EquationSets, grade: Grades, of: Mapping[int, list[int]], more: list[tuple[int, int]]
) -> None:
    """Add a reduction's equations to operations without equations in the computation that the reduction applies.

    `of` has the reductions' equations by node. `more` gets (node, equation) pairs, with an inferred `grade`.
    """
    callers = np.asarray([*(group.caller if group.kind in _APPLIED else -1 for group in graph.groups), -1])
    for node in np.flatnonzero((own.code < 0) & (callers[graph.group] >= 0)).tolist():
        equations = of.get(int(callers[graph.group[node]]), []) if node not in of else []
        if equations and graph.ops[int(graph.op[node])] not in NEVER_OWN:
            grade[node] = INFERRED
            more += ((node, equation) for equation in equations)


def _roots(graph: Graph) -> Iterator[tuple[int, int]]:
    kernels = np.asarray([*(group.caller if group.kind == "fusion" else -1 for group in graph.groups), -1])
    for node in np.flatnonzero(graph.is_root & (kernels[graph.group] >= 0)).tolist():
        yield node, int(kernels[graph.group[node]])


@uncollected()
def origins_of(capture: Capture, passes: Passes | None, exact: Mapping[str, EquationSets]) -> Origins | str:
    """Return the equations of the `hlo` stage's instructions according to the passes.

    An error message if reading failed, an empty text if passes or equations are missing.

    Missing evidence is a value, never an error. So an error is our defect or damaged data: the view continues, and a
    warning reports it.
    """
    if passes is None or all(stage.name != "hlo" for stage in capture.stages):
        return ""
    # Kept with the passes, which it refers to: a table with weak keys would never release either.
    kept = passes.__dict__
    origins = cast("Origins | str | None", kept.get("origins"))
    if origins is None:
        try:
            evidence = evidence_of(capture, passes, exact)
            origins = "" if evidence is None else _origins(evidence, capture.hlo.graph)
        # A fault here costs only the origins, not the rest of the view.
        except Exception as error:
            origins = _FAULT.format(f"{type(error).__name__}: {error}")
            warnings.warn(f"explorer: {origins}. Please report this.", RuntimeWarning, 2)
        kept["origins"] = origins
    return origins


def known_sets(
    capture: Capture, origins: Origins | str, exact: Mapping[str, EquationSets]
) -> Mapping[str, EquationSets]:
    """Return the equations of each node, by stage name.

    They are those of `exact`, and in `hlo` also those of `origins` if passes are recorded.
    """
    if not isinstance(origins, Origins):
        return exact
    # With the origins: captures that share the passes share the sets.
    kept = origins.evidence.passes.__dict__
    if kept.get("sets_of") is not exact["hlo"]:
        sets = kept["sets"] = origins.sets(capture.hlo.graph, exact["hlo"])
        kept["sets_of"], _ = exact["hlo"], sets.pairs
    return {**exact, "hlo": kept["sets"]}


def _origins(evidence: Evidence, hlo: Graph) -> Origins:
    units, unit_of_equation, unit_of_operation = _units(evidence)
    provenance = follow(evidence.passes, units)
    return Origins(evidence, provenance, _nodes(evidence, hlo), unit_of_equation, unit_of_operation)


def _units(evidence: Evidence) -> tuple[list[Unit], dict[int, int], dict[int, int]]:
    """Return the units to watch, and the index of each unit by equation and by StableHLO operation.

    A unit is an equation, or a single operation of an equation.
    """
    lowering, function = evidence.lowering, evidence.functions().tolist()
    names = [hlo_name(op) for op in lowering.ops]
    of_equation: dict[int, list[tuple[int, str]]] = {}
    for at, of in zip(*(column.tolist() for column in evidence.outermost()), strict=True):
        of_equation.setdefault(of, []).append((at, names[int(lowering.op[at])]))
    units: list[Unit] = []
    unit_of_equation: dict[int, int] = {}
    unit_of_operation: dict[int, int] = {}
    for of, operations in of_equation.items():
        ops, last = {op for _, op in operations}, max(at for at, _ in operations)
        unit_of_equation[of] = len(units)
        units.append(Unit(of, frozenset(ops - HELPERS or ops - NEVER_OWN), last, function[last]))
        does = [at for at, _ in operations if evidence.does[at]]
        if len(does) == 1:
            unit_of_operation[does[0]] = unit_of_equation[of]
            continue
        for op, at in _single_of_name(operations) if does else ():
            unit_of_operation[at] = len(units)
            units.append(Unit(of, frozenset([op]), at, function[at]))
    for of in (of for of in _named_at_first(evidence) if of not in unit_of_equation):
        unit_of_equation[of] = len(units)
        units.append(Unit(of, frozenset(), -1, -1))
    return units, unit_of_equation, unit_of_operation


def _named_at_first(evidence: Evidence) -> list[int]:
    """Return the equations that lines of the first snapshot name; some, such as a callback, StableHLO doesn't name."""
    return np.unique(evidence.lines.among(evidence.versions.ends[0])[1]).tolist()


def _single_of_name(operations: Sequence[tuple[int, str]]) -> list[tuple[str, int]]:
    """Return those of an equation's (operation, name) pairs whose name occurs once, as (name, operation), by name."""
    places: dict[str, list[int]] = {}
    for at, op in operations:
        places.setdefault(op, []).append(at)
    return [(op, alike[0]) for op, alike in sorted(places.items()) if len(alike) == 1 and op not in NEVER_OWN]


def _nodes(evidence: Evidence, graph: Graph) -> dict[int, int]:
    """Return the node of `graph` by row of the last snapshot: line by line if operations agree, else by name.

    Empty if names repeat.
    """
    versions = evidence.versions
    rows = versions.ends[1]
    rows = rows[versions.key[rows] >= 0]
    order = np.argsort(graph.line, kind="stable")
    ops = [graph.ops[code] for code in graph.op[order].tolist()]
    # Usually the last snapshot is the program, line by line. Names are the second way.
    if ops == [versions.ops[code] for code in versions.op[rows].tolist()]:
        return dict(zip(rows.tolist(), order.tolist(), strict=True))
    node_of = {name: node for node, name in enumerate(graph.names)}
    if len(node_of) < len(graph.names):
        return {}
    codes: list[int] = graph.op.tolist()
    keys: list[int] = versions.key[rows].tolist()
    pairs = ((row, node_of.get(versions.names[key], -1)) for row, key in zip(rows.tolist(), keys, strict=True))
    return {row: node for row, node in pairs if node >= 0 and evidence.op(row) == graph.ops[codes[node]]}
