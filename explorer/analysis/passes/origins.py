"""The equations of the instructions of a recorded program: by their own numbers, and by the passes they came through.

Links, lines, costs and fates are read from here. An instruction that the compiler made without metadata is of the
equations that it was born for; a product that bears the name of a transpose is of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from explorer.analysis.fates.operations import HELPERS, NEVER_OWN, WORK, hlo_name
from explorer.analysis.passes.evidence import Evidence, evidence_of
from explorer.analysis.passes.provenance import MOVED, OWN, Provenance, Unit, follow
from explorer.model.capture import Capture
from explorer.model.equation_sets import INFERRED, EquationSets, Grades
from explorer.model.graph import Graph
from explorer.model.passes import Passes

_FAULT = "the recorded passes could not be followed ({}): fates are from the compiler's metadata alone"
_APPLIED = frozenset(("apply", "reducer"))


@dataclass(frozen=True, eq=False)
class Origins:
    """What the passes say of one program.

    Args:
        evidence: What was recorded.
        provenance: Of each row of the last snapshot.
        node_of_row: The instruction of the optimized program that each of these rows is.
        unit_of_equation, unit_of_operation: What was watched for a node of the jaxpr, and for one of StableHLO.
    """

    evidence: Evidence
    provenance: Provenance
    node_of_row: Mapping[int, int]
    unit_of_equation: Mapping[int, int]
    unit_of_operation: Mapping[int, int]

    def sets(self, graph: Graph, own: EquationSets) -> EquationSets:
        """Return the equations of each instruction.

        Args:
            graph: The optimized program.
            own: Those that the instructions' own numbers name; they stay as they are.
        """
        row, equation = own.pairs
        grade, more = own.grade.copy(), list[tuple[int, int]]()
        # What took the place of a call is what the call's computation does: the call itself does nothing.
        calls = {unit.equation for unit in self.provenance.units if "call" in unit.ops}
        for at, origins in self.provenance.origins.items():
            node = self.node_of_row.get(at, -1)
            op = self.evidence.op(at)
            if node < 0 or op in NEVER_OWN:
                continue
            if own.code[node] < 0:
                more += ((node, of) for of, _ in origins)
                grade[node] = INFERRED
            elif op in WORK:
                more += ((node, of) for of, how in origins if how not in (OWN, MOVED) and of not in calls)
        _add_callers(graph, own, grade, more)
        added = np.asarray(more, np.int32).reshape(-1, 2)
        return EquationSets.of_pairs(np.concatenate([row, added[:, 0]]), np.concatenate([equation, added[:, 1]]), grade)


def _add_callers(graph: Graph, own: EquationSets, grade: Grades, more: list[tuple[int, int]]) -> None:
    """Give what a reduction applies, and the kernel around a root, the equations that these got."""
    of: dict[int, list[int]] = {}
    for node, equation in more:
        of.setdefault(node, []).append(equation)
    groups = graph.groups
    for node in np.flatnonzero(graph.is_root).tolist():
        group = groups[int(graph.group[node])] if graph.group[node] >= 0 else None
        if group is not None and group.kind == "fusion" and group.caller >= 0 and own.code[group.caller] < 0:
            equations = of.get(node) or own.of(node).tolist()
            if equations and group.caller not in of:
                of[group.caller] = equations
                grade[group.caller] = INFERRED
                more += ((group.caller, equation) for equation in equations)
    for node in np.flatnonzero(own.code < 0).tolist():
        group = groups[int(graph.group[node])] if graph.group[node] >= 0 else None
        is_applied = group is not None and group.kind in _APPLIED and node not in of and group.caller in of
        if is_applied and group is not None and graph.ops[int(graph.op[node])] not in NEVER_OWN:
            grade[node] = INFERRED
            more += ((node, equation) for equation in of[group.caller])


_found: WeakKeyDictionary[Passes, Origins | str] = WeakKeyDictionary()


def origins_of(capture: Capture) -> Origins | str:
    """Return what the passes say; or in words why nothing, empty where they are not recorded.

    What the passes don't say is a value, never an error. So any error is a defect of ours, or damaged data: it costs
    neither the user their view nor us the knowledge of it.
    """
    if not capture.has_passes:
        return ""
    found = _found.get(capture.passes)
    if found is None:
        try:
            evidence = evidence_of(capture)
            found = "" if evidence is None else _origins(evidence, capture.hlo.graph)
        except Exception as error:
            found = _FAULT.format(f"{type(error).__name__}: {error}")
            warnings.warn(f"explorer: {found}. Please report this.", RuntimeWarning, 2)
        _found[capture.passes] = found
    return found


def known_sets(capture: Capture) -> Mapping[str, EquationSets]:
    """Return the equations of each stage's nodes: by their numbers, and by the passes where these are recorded."""
    known, origins = capture.exact_sets, origins_of(capture)
    if not isinstance(origins, Origins):
        return known
    return {**known, "hlo": origins.sets(capture.hlo.graph, known["hlo"])}


def _origins(evidence: Evidence, hlo: Graph) -> Origins:
    units, unit_of_equation, unit_of_operation = _units(evidence)
    provenance = follow(evidence.passes, units)
    return Origins(evidence, provenance, _nodes(evidence, hlo), unit_of_equation, unit_of_operation)


def _units(evidence: Evidence) -> tuple[list[Unit], dict[int, int], dict[int, int]]:
    """What is watched, and for which equations and StableHLO operations."""
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
        for op in sorted(ops - NEVER_OWN) if does else ():
            alike = [at for at, other in operations if other == op]
            if len(alike) == 1:
                unit_of_operation[alike[0]] = len(units)
                units.append(Unit(of, frozenset([op]), alike[0], function[alike[0]]))
    # An operation that JAX gave no name in StableHLO, as a callback, has one in HLO.
    row, equation = evidence.lines.certain()
    at_first = np.unique(equation[np.isin(row, evidence.versions.rows(0))])
    for of in (of for of in at_first.tolist() if of not in unit_of_equation):
        unit_of_equation[of] = len(units)
        units.append(Unit(of, frozenset(), -1, -1))
    return units, unit_of_equation, unit_of_operation


def _nodes(evidence: Evidence, graph: Graph) -> dict[int, int]:
    """By row of the last snapshot, the node: line by line if both are the same module in one order, else by name."""
    versions = evidence.versions
    rows = versions.rows(len(versions.snapshots) - 1)
    rows = rows[versions.key[rows] >= 0]
    order = np.argsort(graph.line, kind="stable")
    ops = [graph.ops[code] for code in graph.op[order].tolist()]
    if ops == [versions.ops[code] for code in versions.op[rows].tolist()]:
        return dict(zip(rows.tolist(), order.tolist(), strict=True))
    node_of = {name: node for node, name in enumerate(graph.names)}
    if len(node_of) < len(graph.names):
        return {}
    codes: list[int] = graph.op.tolist()
    keys: list[int] = versions.key[rows].tolist()
    pairs = ((row, node_of.get(versions.names[key], -1)) for row, key in zip(rows.tolist(), keys, strict=True))
    return {row: node for row, node in pairs if node >= 0 and evidence.op(row) == graph.ops[codes[node]]}
