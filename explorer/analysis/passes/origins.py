"""The equations of the instructions of a recorded program: by their own numbers, and by the passes they came through.

Links, lines, costs and fates are read from here. An instruction that the compiler made without metadata is of the
equations that it was born for; a product that bears the name of a transpose is of both.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from explorer.analysis.fates.operations import HELPERS, NEVER_OWN, WORK, hlo_name
from explorer.analysis.passes.evidence import Evidence, evidence_of
from explorer.analysis.passes.provenance import MOVED, OWN, Provenance, Unit, follow
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.links import INFERRED, EquationSets, Grades

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

    def _calls(self) -> set[int]:
        """The equations that call: what took their place is what is called, and they do nothing themselves."""
        return {unit.equation for unit in self.provenance.units if "call" in unit.ops}

    def sets(self, graph: Graph, own: EquationSets) -> EquationSets:
        """Return the equations of each instruction.

        Args:
            graph: The optimized program.
            own: Those that the instructions' own numbers name; they stay as they are.
        """
        row, equation = own.pairs
        grade, more = own.grade.copy(), list[tuple[int, int]]()
        calls = self._calls()
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
    """The equations whose work an instruction does beside its own."""
    return [equation for equation, how in origins if how not in (OWN, MOVED)]


def _add_callers(graph: Graph, own: EquationSets, grade: Grades, more: list[tuple[int, int]]) -> None:
    """Give what a reduction applies, and the kernel around a root, the equations that these got."""
    of: dict[int, list[int]] = {}
    for node, equation in more:
        of.setdefault(node, []).append(equation)
    for node, kernel in _roots(graph):
        equations = of.get(node) or own.of(node).tolist()
        if own.code[kernel] < 0 and equations and kernel not in of:
            of[kernel] = equations
            grade[kernel] = INFERRED
            more += ((kernel, equation) for equation in equations)
    _add_applied(graph, own, grade, of, more)


def _add_applied(
    graph: Graph, own: EquationSets, grade: Grades, of: Mapping[int, list[int]], more: list[tuple[int, int]]
) -> None:
    """Give what a reduction applies the equations of the reduction."""
    callers = np.asarray([*(group.caller if group.kind in _APPLIED else -1 for group in graph.groups), -1])
    for node in np.flatnonzero((own.code < 0) & (callers[graph.group] >= 0)).tolist():
        equations = of.get(int(callers[graph.group[node]]), []) if node not in of else []
        if equations and graph.ops[int(graph.op[node])] not in NEVER_OWN:
            grade[node] = INFERRED
            more += ((node, equation) for equation in equations)


def _roots(graph: Graph) -> Iterator[tuple[int, int]]:
    """The root of each fusion's computation, with the fusion."""
    kernels = np.asarray([*(group.caller if group.kind == "fusion" else -1 for group in graph.groups), -1])
    for node in np.flatnonzero(graph.is_root & (kernels[graph.group] >= 0)).tolist():
        yield node, int(kernels[graph.group[node]])


def origins_of(capture: Capture) -> Origins | str:
    """Return what the passes say; or in words why nothing, empty where they or their result are not there.

    What the passes don't say is a value, never an error. So any error is a defect of ours, or damaged data: it costs
    neither the user their view nor us the knowledge of it.
    """
    if not capture.has_passes or all(stage.name != "hlo" for stage in capture.stages):
        return ""
    # With the passes, which it refers to: in a table by weak keys neither would ever go.
    kept = capture.passes.__dict__
    origins = cast("Origins | str | None", kept.get("origins"))
    if origins is None:
        try:
            evidence = evidence_of(capture)
            origins = "" if evidence is None else _origins(evidence, capture.hlo.graph)
        except Exception as error:
            origins = _FAULT.format(f"{type(error).__name__}: {error}")
            warnings.warn(f"explorer: {origins}. Please report this.", RuntimeWarning, 2)
        kept["origins"] = origins
    return origins


def known_sets(capture: Capture) -> Mapping[str, EquationSets]:
    """Return the equations of each stage's nodes: by their numbers, and by the passes where these are recorded."""
    exact, origins = capture.exact_sets, origins_of(capture)
    if not isinstance(origins, Origins):
        return exact
    # Beside the origins: the lines and the links of a capture both read them.
    kept = capture.passes.__dict__
    if kept.get("sets_of") is not exact["hlo"]:
        kept["sets"], kept["sets_of"] = origins.sets(capture.hlo.graph, exact["hlo"]), exact["hlo"]
    return {**exact, "hlo": kept["sets"]}


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
        for op, at in _single_of_name(operations) if does else ():
            unit_of_operation[at] = len(units)
            units.append(Unit(of, frozenset([op]), at, function[at]))
    for of in (of for of in _named_at_first(evidence) if of not in unit_of_equation):
        unit_of_equation[of] = len(units)
        units.append(Unit(of, frozenset(), -1, -1))
    return units, unit_of_equation, unit_of_operation


def _named_at_first(evidence: Evidence) -> list[int]:
    """The equations of the first module: one that has no name in StableHLO, as a callback, has one in HLO."""
    return np.unique(evidence.lines.certain(among=evidence.versions.rows(0))[1]).tolist()


def _single_of_name(operations: Sequence[tuple[int, str]]) -> list[tuple[str, int]]:
    """Those operations of an equation that are the only one of their name, by name."""
    places: dict[str, list[int]] = {}
    for at, op in operations:
        places.setdefault(op, []).append(at)
    return [(op, alike[0]) for op, alike in sorted(places.items()) if len(alike) == 1 and op not in NEVER_OWN]


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
