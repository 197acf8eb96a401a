"""The fates that the recorded passes tell, of the equations of a jaxpr and of StableHLO's operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.imported import Imported, imported
from explorer.analysis.fates.metadata_fates import MetadataFates, Row, only_calls
from explorer.analysis.fates.operations import HELPERS, NEVER_OWN, hlo_name
from explorer.analysis.fates.recorded import Life, Tracker
from explorer.analysis.fates.running import running
from explorer.analysis.links.equations import is_dead
from explorer.model.capture import Capture
from explorer.model.equation_sets import EXACT, EquationSets
from explorer.model.fates import LOWERING
from explorer.model.graph import Graph, Ints
from explorer.model.text_versions import Versions

_CALLS = ("call", "func.call")
_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier", "copy_p"])


@dataclass(frozen=True, eq=False)
class _Stage:
    """A stage whose fates the passes tell.

    Args:
        name: Of the stage.
        fates: What the metadata says; its rows are replaced.
        computes: Which nodes do more than bring a value into another form or place.
        equations: Of every line of the passes, the nodes of the first stage that it is of, only where that is exact.
        lowered: Of every StableHLO operation, likewise.
        hlo_node: By row of the last snapshot, the node of the `hlo` stage.
        is_all_lowered: Whether it is known of every StableHLO operation which equation it is of.
    """

    name: str
    fates: MetadataFates
    computes: NDArray[np.bool_]
    equations: EquationSets
    lowered: EquationSets
    hlo_node: Mapping[int, int]
    is_all_lowered: bool


def recorded_fates(
    capture: Capture,
    name: str,
    fates: MetadataFates,
    computes: NDArray[np.bool_],
    depends: Sequence[int],
    first: Sequence[Row],
) -> None:
    """Replace the rows of `fates` by what the passes say.

    Args:
        capture: Whose passes are recorded with the equations of each line.
        name: Of the stage.
        fates: Of its nodes, as the metadata has them.
        computes: Which of them do more than bring a value into another form or place, shape `[n]`.
        depends: For each of them, which arguments its value depends on; 0 for none.
        first: The fates of the first stage, empty while these are asked for.
    """
    versions = capture.passes.versions
    assert versions.equations is not None
    lowered = capture.links.sets["stablehlo"]
    stage = _Stage(
        name,
        fates,
        computes,
        versions.equations.only(EXACT),
        lowered.only(EXACT),
        _hlo_nodes(versions, fates),
        bool((lowered.grade[capture.stablehlo.graph.is_equation] == EXACT).all()),
    )
    is_first = name == capture.links.first
    lowering = capture.stablehlo.graph
    pairs = _rows_of_equations(versions, stage, lowering) if is_first else _rows_of_operations(versions, stage)
    lives = Tracker(capture.passes, *pairs).lives()
    in_doubt = set(versions.equations.pairs[1].tolist()) - set(stage.equations.pairs[1].tolist())
    before = imported(capture, name, stage.equations, stage.lowered, depends)
    dead = is_dead(fates.graph)
    alone = {} if is_first else _alone(stage.lowered, capture.stablehlo.graph)
    in_doubt |= set() if is_first else _translated(stage, capture.passes.versions)
    alive = running(fates, capture.links.sets["hlo"].only(EXACT), stage.lowered, lowering) if is_first else None
    for node, row in enumerate(fates.rows):
        if not row.kind or row.kind == "inlined":
            continue
        if node in alone:
            fates.rows[node] = first[alone[node]]
            continue
        if fates.graph.ops[int(fates.graph.op[node])] in _CALLS:
            fates.rows[node] = Row("inlined", (), False, "what it calls stands in its place")
            continue
        life = lives.get(node)
        if life is not None:
            new = _row_or_unknown(capture, stage, row, life, is_computed=bool(computes[node]))
        elif node in in_doubt:
            new = Row("unknown")
        else:
            new = _row_before_passes(stage, node, before, is_dead=bool(dead[node]))
        if alive is not None and alive.runs[node] and new.kind in ("eliminated", "folded"):
            new = _row_of_running(row, new, as_it_was=bool(alive.as_it_was[node]))
        # A loop or a branch that is gone leaves what is in it.
        gone = new.kind in ("eliminated", "rewritten") and node in fates.callers and not row.kernels
        fates.rows[node] = Row("inlined", (), False, new.why, new.step, new.before, new.after) if gone else new


def _alone(sets: EquationSets, lowered: Graph) -> dict[int, int]:
    """By each StableHLO operation that is all that an equation was lowered to, the equation."""
    operation, equation = sets.pairs
    does = lowered.is_equation[operation] & (sets.size[operation] == 1)
    operation, equation = operation[does], equation[does]
    _, place, count = np.unique(equation, return_inverse=True, return_counts=True)
    is_alone = count[place] == 1
    return dict(zip(operation[is_alone].tolist(), equation[is_alone].tolist(), strict=True))


def _translated(stage: _Stage, versions: Versions) -> set[int]:
    """The StableHLO operations that the import may have made something else of: no name in HLO tells them.

    Of an equation that the first snapshot has, another form of a value may be of another name there, and so may what is
    not StableHLO's own; of several of one name some may be left.
    """
    graph = stage.fates.graph
    names: set[tuple[int, str]] = set()
    for row in versions.rows(0).tolist():
        name = versions.ops[int(versions.op[row])] if versions.op[row] >= 0 else ""
        names.update((equation, name) for equation in stage.equations.of(row).tolist())
    present = {equation for equation, _ in names}
    assert versions.equations is not None
    row, equation = versions.equations.pairs
    inferred = set(equation[versions.equations.grade[row] != EXACT].tolist())
    present |= inferred
    doubtful: set[int] = set()
    for operation, equation in zip(*(column.tolist() for column in stage.lowered.pairs), strict=True):
        op = graph.ops[int(graph.op[operation])]
        is_named = op.startswith("stablehlo.") and hlo_name(op) not in HELPERS
        is_left = not is_named or equation in inferred or (equation, hlo_name(op)) in names
        if equation in present and is_left:
            doubtful.add(operation)
    return doubtful


def _hlo_nodes(versions: Versions, fates: MetadataFates) -> dict[int, int]:
    """By row of the last snapshot, the node: line by line, since both are the same module."""
    rows = versions.rows(len(versions.snapshots) - 1)
    rows = rows[versions.key[rows] >= 0]
    graph = fates.hlo.graph
    order = np.argsort(graph.line, kind="stable")
    ops = [graph.ops[code] for code in graph.op[order].tolist()]
    if ops != [versions.ops[code] for code in versions.op[rows].tolist()]:
        return {}
    return dict(zip(rows.tolist(), order.tolist(), strict=True))


_Pairs = tuple[Ints, Ints, NDArray[np.bool_]]


def _rows_of_equations(versions: Versions, stage: _Stage, lowered: Graph) -> _Pairs:
    """Pairs of a line and an equation of the first stage that it names, and whether it does what the equation does.

    Without what only comes along with an equation, and without equations that the first snapshot lacks: an instruction
    may name several, though the import made it of one. `select(not not p, …)` becomes a select of p that names both
    negations.
    """
    row, equation = _pairs(versions, versions.equations or stage.equations)
    helps, never = (np.asarray([*(op in ops for op in versions.ops), True], bool) for ops in (HELPERS, NEVER_OWN))
    op = versions.op[row]
    counts = np.where(stage.computes[equation], ~helps[op], ~never[op])
    row, equation, op = row[counts], equation[counts], op[counts]
    outermost = _outermost(stage.lowered, lowered)
    _, own_codes = _codes_of_operations(versions, *outermost, lowered)
    own = np.isin(equation.astype(np.int64) * len(versions.ops) + op, own_codes)
    end = versions.snapshots[1].first if len(versions.snapshots) > 1 else len(versions.lines)
    was_there = np.zeros(len(stage.computes), bool)
    was_there[equation[(row < end) & _is_left(row, equation, own, _last_operation(*outermost, len(was_there)))]] = True
    # In a function that is called several times no line says for which call it is: that is enough to be there at first.
    kept = was_there[equation] & (stage.equations.code[row] >= 0)
    return row[kept], equation[kept], own[kept]


def _is_left(row: Ints, equation: Ints, own: NDArray[np.bool_], last: Ints) -> NDArray[np.bool_]:
    """Of pairs of a line and an equation, whether the line is what the import left of the equation.

    Of several that it made one of, as of three reshapes, the last one; where it is the operation of none of them, all.

    Args:
        row, equation: The pairs.
        own: Whether the line does what the equation does.
        last: Of each equation, its last StableHLO operation: one for all calls of a function.
    """
    of_row = np.full(int(row.max(initial=-1)) + 1, -1, np.int32)
    np.maximum.at(of_row, row[own], last[equation[own]])
    return np.where(own, last[equation] == of_row[row], of_row[row] < 0)


def _pairs(versions: Versions, equations: EquationSets) -> tuple[Ints, Ints]:
    """Each line with the equations that it named when it came; what a pass gives it later, another instruction had."""
    row, equation = equations.pairs
    is_line = row < len(versions.lines)
    return row[is_line], equation[is_line]


def _codes_of_operations(versions: Versions, operation: Ints, equation: Ints, lowered: Graph) -> tuple[Ints, Ints]:
    """Of pairs of a StableHLO operation and an equation, `equation * len(versions.ops) + op` with what HLO calls it.

    Without the operations whose name no line has; the operations that are left, and these codes.
    """
    code = {op: i for i, op in enumerate(versions.ops)}
    own_code = np.asarray([code.get(hlo_name(op), -1) for op in lowered.ops], np.int64)
    op = own_code[lowered.op[operation]]
    return operation[op >= 0], (equation.astype(np.int64) * len(versions.ops) + op)[op >= 0]


def _outermost(sets: EquationSets, lowered: Graph) -> tuple[Ints, Ints]:
    """The StableHLO operations with their equations, but for those in a region of another one of the same equation.

    A reduction's addition and a loop's counter are there as long as it is, and may be left behind for a while.
    """
    operation, equation = sets.pairs
    caller = np.asarray([*(group.caller for group in lowered.groups), -1], np.int32)[lowered.group[operation]]
    is_inner = (caller >= 0) & (sets.code[caller] == sets.code[operation])
    return operation[~is_inner], equation[~is_inner]


def _last_operation(operation: Ints, equation: Ints, count: int) -> Ints:
    """Of each equation the last StableHLO operation; calls of one function have the same."""
    last = np.full(count, -1, np.int32)
    np.maximum.at(last, equation, operation)
    return last


def _rows_of_operations(versions: Versions, stage: _Stage) -> _Pairs:
    """Pairs of a line and the StableHLO operation that it does, the only one of its equation with that name."""
    graph = stage.fates.graph
    operation, keys = _codes_of_operations(versions, *stage.lowered.pairs, graph)
    keys, first, count = np.unique(keys, return_index=True, return_counts=True)
    keys, first = keys[count == 1], first[count == 1]
    row, of = _pairs(versions, stage.equations)
    wanted = of.astype(np.int64) * len(versions.ops) + versions.op[row]
    at = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    hit = keys[at] == wanted if len(keys) else np.zeros(len(row), bool)
    return row[hit], operation[first[at[hit]]], np.ones(int(hit.sum()), bool)


def _row_or_unknown(capture: Capture, stage: _Stage, row: Row, life: Life, *, is_computed: bool) -> Row:
    try:
        return _row_of_life(capture, stage, row, life, is_computed=is_computed)
    except (LookupError, ValueError) as error:  # a fault of one equation's doesn't cost those of all others
        return Row("unknown", (), False, f"what the passes say of it could not be read ({type(error).__name__})")


def _row_of_life(capture: Capture, stage: _Stage, row: Row, life: Life, *, is_computed: bool) -> Row:
    """The fate of an equation that some snapshot has."""
    fates, step = stage.fates, life.position + 1
    node = stage.hlo_node.get(life.row, -1) if life.row >= 0 else -1
    kernel = fates.hlo.kernel[node] if node >= 0 else -1
    if life.kind == "lives":
        if row.kernels:
            return row
        if kernel < 0:
            return row if row.kind != "unknown" else Row("unknown")
        return Row("kept" if kernel == node else "fused", (kernel,))
    why = life.why
    if life.kind == "merged":
        others = capture.passes.versions.equations
        names: list[str] = []
        if others is not None and life.other >= 0 and stage.name == capture.links.first:
            names = [str(fates.graph.names[i]) for i in others.of(life.other).tolist()]
        if names:
            why = f"the same as {' and '.join(names)}, which stands for both"
    if life.kind != "rewritten":
        return Row(life.kind, (), False, why, step, life.before, life.after)
    if kernel >= 0:
        return Row("rewritten", row.kernels or (kernel,), False, why, step, life.before, life.after)
    if node >= 0 and is_computed:
        # A bitcast reads what does it now, as of a convolution that became the transpose of another one.
        return Row("unknown", (), False, f"it was rewritten, and only a view of what does it is known: {why}")
    return Row("eliminated", (), False, why, step, life.before, life.after)


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


def _row_before_passes(stage: _Stage, node: int, before: Imported, *, is_dead: bool) -> Row:
    """The fate of an equation that the first snapshot lacks."""
    fates = stage.fates
    graph = fates.graph
    if (row := before.row(node)) is not None:
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
    if stage.is_all_lowered:
        return Row("eliminated", (), False, "JAX made no operation of it: nothing needs its value", LOWERING)
    return Row("unknown")
