"""The fates that the recorded passes tell, of the equations of a jaxpr and of StableHLO's operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.evidence import Evidence
from explorer.analysis.fates.imported import imported
from explorer.analysis.fates.metadata_fates import MetadataFates, Row, only_calls
from explorer.analysis.fates.operations import HELPERS, NEVER_OWN, hlo_name
from explorer.analysis.fates.recorded import Life, follow
from explorer.analysis.fates.running import running
from explorer.model.fates import LOWERING
from explorer.model.graph import Graph, Ints

_CALLS = ("call", "func.call")
_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier", "copy_p"])


@dataclass(frozen=True, eq=False)
class StageFates:
    """The fates of one stage's nodes, and what is known of them without the passes.

    Args:
        name: Of the stage.
        fates: What the metadata says; its rows are replaced.
        computes: Which nodes do more than bring a value into another form or place, shape `[n]`.
        depends: For each node, which arguments its value depends on; 0 for none.
        dead: Which nodes nothing that the program gives depends on, shape `[n]`.
        literals: The code of each node's literals among its attributes, -1 for none, shape `[n]`.
    """

    name: str
    fates: MetadataFates
    computes: NDArray[np.bool_]
    depends: Sequence[int]
    dead: NDArray[np.bool_]
    literals: Ints


def replace_by_recorded(evidence: Evidence, stages: Sequence[StageFates]) -> None:
    """Replace the rows of each stage's fates by what the passes say.

    Args:
        evidence: What they say.
        stages: The first one first.
    """
    pairs = [
        _rows_of_equations(evidence, stage) if stage.name == evidence.first else _rows_of_operations(evidence)
        for stage in stages
    ]
    lives = follow(evidence.passes, evidence.snapshots, pairs)
    for stage, of_stage in zip(stages, lives, strict=True):
        _Reading(evidence, stage, of_stage, stages[0].fates.rows).replace_rows()


class _Reading:
    """What the passes say of one stage.

    Args:
        evidence: What they say.
        stage: Whose fates' rows are replaced.
        lives: What they say of each node that some snapshot has.
        first: The fates of the first stage's nodes, which are replaced before those of any other.
    """

    def __init__(self, evidence: Evidence, stage: StageFates, lives: Mapping[int, Life], first: Sequence[Row]) -> None:
        self.evidence, self.stage, self.fates, self.lives, self.first = evidence, stage, stage.fates, lives, first
        self.is_first = stage.name == evidence.first
        self.before = imported(evidence, stage.name, stage.fates.graph, stage.depends, stage.literals)
        self.hlo_node = _hlo_nodes(evidence, stage.fates)
        self.alone = {} if self.is_first else _alone(evidence)
        self.alive = running(stage.fates, evidence) if self.is_first else None
        certain = evidence.lines.certain()[1].tolist()
        self.in_doubt = set(evidence.lines.equation.tolist()).difference(certain)
        if not self.is_first:
            self.in_doubt |= _translated(evidence)
        elif evidence.is_all_lowered:  # a call whose results nobody takes: JAX left it out
            self.in_doubt &= set(evidence.lowered.equation.tolist())

    def replace_rows(self) -> None:
        fates, alive = self.fates, self.alive
        ops, dead = fates.graph.ops, self.stage.dead.tolist()
        codes: list[int] = fates.graph.op.tolist()
        for node, row in enumerate(fates.rows):
            if not row.kind or row.kind == "inlined":
                continue
            if node in self.alone:
                fates.rows[node] = self.first[self.alone[node]]
                continue
            if ops[codes[node]] in _CALLS:
                fates.rows[node] = Row("inlined", (), False, "what it calls stands in its place")
                continue
            life = self.lives.get(node)
            if life is not None:
                new = self._row_of_life(node, row, life)
            elif node in self.in_doubt:
                new = Row("unknown")
            else:
                new = self._row_before_passes(node, is_dead=dead[node])
            if alive is not None and alive.runs[node] and new.kind in ("eliminated", "folded"):
                is_gone = life is not None and life.changes_nothing and not alive.as_it_was[node]
                new = new if is_gone else _row_of_running(row, new, as_it_was=bool(alive.as_it_was[node]))
            # A loop or a branch that is gone leaves what is in it.
            gone = new.kind in ("eliminated", "rewritten") and node in fates.callers and not row.kernels
            fates.rows[node] = Row("inlined", (), False, new.why, new.step, new.before, new.after) if gone else new

    def _row_of_life(self, equation: int, row: Row, life: Life) -> Row:
        """The fate of an equation that some snapshot has."""
        fates, step = self.fates, life.position + 1
        node = self.hlo_node.get(life.row, -1) if life.row >= 0 else -1
        kernel = fates.hlo.kernel[node] if node >= 0 else -1
        if life.kind == "lives":
            if row.kernels:
                return row
            if kernel < 0:
                return row if row.kind != "unknown" else Row("unknown")
            return Row("kept" if kernel == node else "fused", (kernel,))
        why = life.why
        if life.kind == "merged" and life.other >= 0 and self.is_first:
            names = [str(fates.graph.names[i]) for i in self.evidence.equations_of(life.other)]
            why = f"the same as {' and '.join(names)}, which stands for both" if names else why
        if life.kind != "rewritten":
            return Row(life.kind, (), False, why, step, life.before, life.after)
        if kernel >= 0:
            return Row("rewritten", row.kernels or (kernel,), False, why, step, life.before, life.after)
        if life.row >= 0 and node < 0:  # the last snapshot has it; where it is in the program isn't known
            return Row("rewritten", row.kernels, False, why, step, life.before, life.after)
        if node >= 0 and self.stage.computes[equation]:
            # A bitcast reads what does it now, as of a convolution that became the transpose of another one.
            return Row("unknown", (), False, f"it was rewritten, and only a view of what does it is known: {why}")
        return Row("eliminated", (), False, why, step, life.before, life.after)

    def _row_before_passes(self, node: int, *, is_dead: bool) -> Row:
        """The fate of an equation that the first snapshot lacks."""
        fates = self.fates
        graph = fates.graph
        if (row := self.before.row(node)) is not None:
            return row
        caller = graph.groups[int(graph.group[node])].caller if graph.group[node] >= 0 else -1
        if caller >= 0 and fates.rows[caller].kernels and not only_calls(graph.ops[int(graph.op[caller])]):
            above = fates.rows[caller]
            return Row(above.kind, above.kernels, True, f"part of {graph.names[caller]}")
        if is_dead:
            return Row("eliminated", (), False, "nothing that is returned depends on it", LOWERING)
        op = graph.ops[int(graph.op[node])]
        if op in _NOTHING:
            return Row("eliminated", (), False, "it changes no value", LOWERING)
        if self.evidence.is_all_lowered:
            return Row("eliminated", (), False, "JAX made no operation of it: nothing needs its value", LOWERING)
        return Row("unknown")


def _alone(evidence: Evidence) -> dict[int, int]:
    """By each StableHLO operation that is all that an equation was lowered to, the equation."""
    operation, equation = evidence.lowered.certain()
    does = evidence.does[operation] & (np.bincount(operation, minlength=len(evidence.does))[operation] == 1)
    operation, equation = operation[does], equation[does]
    _, place, count = np.unique(equation, return_inverse=True, return_counts=True)
    is_alone = count[place] == 1
    return dict(zip(operation[is_alone].tolist(), equation[is_alone].tolist(), strict=True))


def _translated(evidence: Evidence) -> set[int]:
    """The StableHLO operations that the import may have made something else of: no name in HLO tells them.

    Of an equation that the first snapshot has, another form of a value may be of another name there, and so may what is
    not StableHLO's own; of several of one name some may be left.
    """
    lines, versions, graph = evidence.lines, evidence.versions, evidence.lowering
    at_first = lines.exact & np.isin(lines.row, evidence.snapshots[0] if evidence.snapshots else ())
    names = {
        (equation, versions.ops[op] if op >= 0 else "")
        for equation, op in zip(
            lines.equation[at_first].tolist(), versions.op[lines.row[at_first]].tolist(), strict=True
        )
    }
    inferred = set(lines.equation[~lines.exact].tolist())
    present = {equation for equation, _ in names} | inferred
    doubtful: set[int] = set()
    for operation, equation in zip(*(column.tolist() for column in evidence.lowered.certain()), strict=True):
        op = graph.ops[int(graph.op[operation])]
        is_named = op.startswith("stablehlo.") and hlo_name(op) not in HELPERS
        is_left = not is_named or equation in inferred or (equation, hlo_name(op)) in names
        if equation in present and is_left:
            doubtful.add(operation)
    return doubtful


def _hlo_nodes(evidence: Evidence, fates: MetadataFates) -> dict[int, int]:
    """By row of the last snapshot, the node: line by line if both are the same module in one order, else by name."""
    versions = evidence.versions
    rows = evidence.snapshots[-1]
    rows = rows[versions.key[rows] >= 0]
    graph = fates.hlo.graph
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


_Pairs = tuple[Ints, Ints, NDArray[np.bool_]]


def _rows_of_equations(evidence: Evidence, stage: StageFates) -> _Pairs:
    """Pairs of a line and an equation of the first stage that it names, and whether it does what the equation does.

    Without what only comes along with an equation, and without equations that the first snapshot lacks: an instruction
    may name several, though the import made it of one. `select(not not p, …)` becomes a select of p that names both
    negations.
    """
    versions, lines = evidence.versions, evidence.since_they_came()
    helps, never = (np.asarray([*(op in ops for op in versions.ops), True], bool) for ops in (HELPERS, NEVER_OWN))
    op = versions.op[lines.row]
    counts = np.where(stage.computes[lines.equation], ~helps[op], ~never[op])
    row, equation, op = lines.row[counts], lines.equation[counts], op[counts]
    outermost = _outermost(evidence)
    _, own_codes = evidence.codes_of_operations(*outermost)
    own = np.isin(equation.astype(np.int64) * len(versions.ops) + op, own_codes)
    end = versions.snapshots[1].first if len(versions.snapshots) > 1 else len(versions.lines)
    was_there = np.zeros(len(stage.computes), bool)
    last = _last_operation(*outermost, len(was_there))
    is_left = _is_left(row, equation, own, last, _functions(evidence.lowering))
    was_there[equation[(row < end) & is_left]] = True
    # In a function that JAX makes for a primitive nothing has a number until the call is inlined.
    calls = np.asarray([*(op == "call" for op in versions.ops), False], bool)[versions.op[lines.row]]
    in_doubt = np.isin(equation, lines.equation[(lines.row < end) & (calls | ~lines.exact)])
    was_there[equation[in_doubt & own & is_left & (lines.code[row] >= 0)]] = True
    # In a function that is called several times no line says for which call it is: that is enough to be there at first.
    kept = was_there[equation] & (lines.code[row] >= 0)
    return row[kept], equation[kept], own[kept]


def _is_left(row: Ints, equation: Ints, own: NDArray[np.bool_], last: Ints, function: Ints) -> NDArray[np.bool_]:
    """Of pairs of a line and an equation, whether the line is what the import left of the equation.

    Of several that it made one of, as of three reshapes, the last one; where it is the operation of none of them, all.

    Args:
        row, equation: The pairs.
        own: Whether the line does what the equation does.
        last: Of each equation, its last StableHLO operation: one for all calls of a function.
        function: Of each StableHLO operation. JAX may write a function twice, for calls that use other results of it;
            the import makes nothing one that is in two.
    """
    functions = int(function.max(initial=-1)) + 2
    place = row.astype(np.int64) * functions + np.append(function, -1)[last[equation]] + 1
    places, at = np.unique(place, return_inverse=True)
    of_place = np.full(len(places), -1, np.int32)
    np.maximum.at(of_place, at[own], last[equation[own]])
    has_own = np.zeros(int(row.max(initial=-1)) + 1, bool)
    has_own[row[own]] = True
    return np.where(own, last[equation] == of_place[at], ~has_own[row])


def _functions(lowered: Graph) -> Ints:
    """Of each StableHLO operation the group of the function that it is in, -1 for none."""
    groups = lowered.groups
    outermost: list[int] = []  # by group; a group is after the one around it
    for at, group in enumerate(groups):
        is_inside = group.kind not in ("function", "entry") and 0 <= group.parent < at
        outermost.append(outermost[group.parent] if is_inside else at)
    return np.asarray([*outermost, -1], np.int32)[lowered.group]


def _outermost(evidence: Evidence) -> tuple[Ints, Ints]:
    """The StableHLO operations with their equations, but for those in a region of another one of the same equation.

    A reduction's addition and a loop's counter are there as long as it is, and may be left behind for a while.
    """
    graph, code = evidence.lowering, evidence.lowered.code
    operation, equation = evidence.lowered.certain()
    caller = np.asarray([*(group.caller for group in graph.groups), -1], np.int32)[graph.group[operation]]
    calls = np.asarray([op in _CALLS for op in graph.ops] or [False], bool)[
        graph.op
    ]  # as of a primitive's own function
    is_inner = (caller >= 0) & (code[caller] == code[operation]) & ~calls[caller]
    return operation[~is_inner], equation[~is_inner]


def _last_operation(operation: Ints, equation: Ints, count: int) -> Ints:
    """Of each equation the last StableHLO operation; calls of one function have the same."""
    last = np.full(count, -1, np.int32)
    np.maximum.at(last, equation, operation)
    return last


def _rows_of_operations(evidence: Evidence) -> _Pairs:
    """Pairs of a line and the StableHLO operation that it does, the only one of its equation with that name."""
    versions, lines = evidence.versions, evidence.since_they_came()
    operation, keys = evidence.codes_of_operations(*evidence.lowered.certain())
    keys, first, count = np.unique(keys, return_index=True, return_counts=True)
    keys, first = keys[count == 1], first[count == 1]
    row, of = lines.certain()
    wanted = of.astype(np.int64) * len(versions.ops) + versions.op[row]
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    hit = keys[at] == wanted if len(keys) else np.zeros(len(row), bool)
    return row[hit], operation[first[at[hit]]], np.ones(int(hit.sum()), bool)


def _row_of_running(row: Row, gone: Row, *, as_it_was: bool) -> Row:
    """The fate of an equation that seems to be `gone` though an instruction of its runs, as the metadata's `row` says.

    Its line can be missing where it is looked for: in a function that is called several times, in a loop's body that
    was taken out of the loop.
    """
    if not row.kernels or row.kind not in ("kept", "fused", "duplicated"):
        return Row("unknown")
    if as_it_was or not gone.step:
        return row
    return Row("rewritten", row.kernels, False, gone.why, gone.step, gone.before, gone.after)
