"""FLOPs and bytes of each HLO instruction.

Counted like XLA's HloCostAnalysis (xla/service/hlo_cost_analysis.cc): a multiply-add is two FLOPs, and so is one for
each element of an elementwise instruction. Uncalled instructions count zero. Differences:

- a loop's body counts as often as the loop runs, if XLA prints it or the loop proves it; XLA counts it once.
- an exponential, a sine or a square root is one FLOP; XLA counts these separately, as `transcendentals`.
- a sort's comparisons are those of its rows, each sorted alone; XLA counts as for one long row.
- all branches of a conditional count; XLA takes the most expensive. Data that a gather or scatter skips doesn't count.

Only kernels move memory: instructions inside a fusion use registers, so the fusion has the bytes and the sum of FLOPs.
The sum over instructions outside of fusions is therefore that of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.flops import CALLERS, own_flops, result_bytes, window_size
from explorer.analysis.graphs import has_entry, is_op
from explorer.analysis.loops import trip_counts
from explorer.analysis.pallas_costs import CallCost, read_estimate
from explorer.model.graph import ComputationCall, Floats, Graph, Ints
from explorer.model.types import TypeSizes

# A sort counts its comparisons itself, and an asynchronous computation is counted at its done operation.
_UNCOUNTED = ("comparator", "async_computation")
# Control flow: the called computations run as kernels of their own, and count there.
_CONTROL = (
    *("while", "conditional", "call", "call-start", "async-start", "async-update", "async-done", "fusion-start"),
)
_RUNS_IT_ONCE = frozenset(_CONTROL) - {"while"} | {"fusion", "custom-call"}
# Operations that move no bytes.
_FREE = (
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "opt-barrier"),
    *("add-dependency", "partition-id", "replica-id", "domain"),
    *("all-reduce-done", "all-gather-done", "collective-permute-done", "copy-done", "send-done", "recv-done"),
)
# Operations that read only their result's bytes of the first operand.
_SLICING = ("slice", "dynamic-slice", "gather")
# Operations that write into their first operand, and the position of the update.
_IN_PLACE = {"dynamic-update-slice": 1, "scatter": 2}


def cost(graph: Graph, custom: Mapping[int, CallCost] | None = None) -> Mapping[str, Floats]:
    """Return the costs of each instruction of an HLO module in one call of the program, shape `[n]`.

    Args:
        graph: The module.
        custom: Costs of one run of custom calls, by node; a cost estimate in the text itself comes first.

    Returns:
        `flops`: NaN if only the backend knows (a custom call). `bytes`: read and written by a kernel, 0 inside one.
        `runs`: number of executions; NaN inside a loop of unknown length and in a branch, which count once
        (`explorer.analysis.loops` lists these). All are NaN in a module without an entry computation. An empty graph
        has no columns.
    """
    if not len(graph.names):
        return {}
    sizes, called = graph.sizes, graph.calls
    calls = _counted_calls(graph, called, sizes.elements[graph.type])
    inside = _kernel_insides(graph, calls)
    once = own_flops(graph)
    # The cost of a computation that the text lacks is unknown.
    lacks_computation = is_op(graph, CALLERS - {"custom-call"})
    lacks_computation[[call.node for call in called]] = False
    once[lacks_computation] = np.nan
    estimates = _estimates(graph, custom or {})
    for node, estimate in estimates.items():
        once[node] = estimate.flops if np.isnan(once[node]) else once[node]
    flops, counted, exact = _through_calls(graph, calls, once)
    moved = _bytes(graph, sizes, inside)
    for node, estimate in estimates.items():
        # Inside a kernel nothing is moved, also by an estimate.
        moved[node] = estimate.bytes if moved[node] and not np.isnan(estimate.bytes) else moved[node]
    factor = counted[graph.group]
    return {"flops": flops * factor, "bytes": moved * factor, "runs": exact[graph.group]}


def _estimates(graph: Graph, custom: Mapping[int, CallCost]) -> Mapping[int, CallCost]:
    """Return the costs of custom calls that their `pl.CostEstimate` in the text gives, else those of `custom`."""
    costs = {**custom}
    for node in np.flatnonzero(is_op(graph, ("custom-call",))).tolist():
        config = graph.attribute_table.get(node, "backend_config")
        at = config.find('"cost_estimate"')
        if at >= 0 and (estimate := read_estimate(config[at : at + _LONGEST])) is not None:
            costs[node] = estimate
    return costs


_LONGEST = 200  # characters of a cost estimate


@dataclass(frozen=True)
class _Call:
    node: int
    group: int
    times: float
    is_known: bool = True
    is_control: bool = False


def _counted_calls(graph: Graph, called: Sequence[ComputationCall], elements: Floats) -> list[_Call]:
    trips = trip_counts(graph)
    calls: list[_Call] = []
    for node, role, group in called:
        op = graph.ops[int(graph.op[node])]
        if op in CALLERS and role not in _UNCOUNTED:
            times, is_known = _times(graph, elements, node, role, trips)
            calls.append(_Call(node, group, times, is_known, op in _CONTROL))
    return calls


def _times(graph: Graph, elements: Floats, node: int, role: str, trips: Mapping[int, int]) -> tuple[float, bool]:
    op = graph.ops[int(graph.op[node])]
    if op == "while":
        return (float(trips[node]) + (role == "condition"), True) if node in trips else (1.0, False)
    if op in _RUNS_IT_ONCE:
        return 1.0, op != "conditional"
    return _applications(graph, elements, node, role, op), True


def _applications(graph: Graph, elements: Floats, node: int, role: str, op: str) -> float:
    start, end = graph.operand_start[node : node + 2].tolist()
    operands = graph.operand[start:end].tolist()
    if op == "reduce" and operands:
        # n elements are reduced to one by n - 1 applications.
        return max(float(elements[operands[0]] - elements[node]), 0.0)
    if op == "reduce-window":
        return float(elements[node]) * (window_size(graph, node) - 1)
    if op == "select-and-scatter" and len(operands) > 1:
        source = float(elements[operands[1]])
        return source * (window_size(graph, node) - 1) if role == "select" else source
    if op == "scatter" and operands:
        return float(elements[operands[-1]])
    # A sort counts its comparisons itself.
    return 0.0 if op == "sort" else float(elements[node])


def _kernel_insides(graph: Graph, calls: Sequence[_Call]) -> NDArray[np.bool_]:
    """Return a mask of groups: True inside a kernel, for a fusion's body or a reducer.

    The last element is for nodes without a group and always False.
    """
    inside = np.zeros(len(graph.groups) + 1, bool)
    for call in calls:
        inside[call.group] |= not call.is_control
    for _ in range(_REDUCER_DEPTH):
        for call in calls:
            inside[call.group] |= inside[graph.group[call.node]]
    return inside


_REDUCER_DEPTH = 3  # kernels call reducers, which rarely call anything


def _through_calls(graph: Graph, calls: Sequence[_Call], own: Floats) -> tuple[Floats, Floats, Floats]:
    """Return each node's FLOPs per run of its computation, and each computation's runs per program, twice.

    An unknown loop counts once in the first runs and as NaN in the second. The last element of the runs is for nodes
    without a computation.
    """
    count = len(graph.groups)
    of_group: list[list[_Call]] = [[] for _ in range(count)]
    for call in calls:
        of_group[int(graph.group[call.node])].append(call)
    flops = own.copy()
    total = np.bincount(graph.group[graph.group >= 0], own[graph.group >= 0], count)
    for group in reversed(graph.callers_first):
        for call in of_group[group]:
            if not call.is_control and call.times:
                flops[call.node] += call.times * total[call.group]
                total[group] += call.times * total[call.group]
    return flops, *_runs(_starts(graph), of_group, graph.callers_first)


def _runs(starts: Floats, of_group: Sequence[Sequence[_Call]], callers_first: Sequence[int]) -> tuple[Floats, Floats]:
    counted, exact = starts.copy(), starts.copy()
    for group in callers_first:
        for call in of_group[group]:
            counted[call.group] += counted[group] * call.times
            exact[call.group] += exact[group] * (call.times if call.is_known else np.nan)
    return counted, exact


def _starts(graph: Graph) -> Floats:
    """Return how often a call starts each group: once for the entry, else never; NaN for all without an entry.

    The last element is for nodes without a group.
    """
    # XLA's own parser takes the last computation for the entry, which is wrong for a text that was cut.
    if not has_entry(graph):
        return np.full(len(graph.groups) + 1, np.nan)
    return np.asarray([group.kind == "entry" for group in graph.groups] + [True], np.float64)


def _bytes(graph: Graph, sizes: TypeSizes, inside: NDArray[np.bool_]) -> Floats:
    full = sizes.bytes[graph.type]
    op = np.asarray(graph.ops)[graph.op] if len(graph.ops) else np.zeros(0, str)
    reader = np.repeat(np.arange(len(graph.names), dtype=np.int32), np.diff(graph.operand_start))
    position = np.arange(len(graph.operand)) - graph.operand_start[reader]
    is_first = position == 0
    slices = is_first & np.isin(op[reader], _SLICING)
    replaces = is_first & np.isin(op[reader], list(_IN_PLACE))
    is_bitcast = op[reader] == "bitcast"
    has_reader = np.bincount(graph.operand, minlength=len(graph.names)) > 0

    def read_by(needed: Floats) -> Floats:
        """Return the bytes of the operand that each edge's reader needs.

        `needed` has the bytes that each node's readers need, which a bitcast needs too.
        """
        given_on = np.where(is_bitcast, needed[reader], full[graph.operand])
        return np.where(slices, full[reader], np.where(replaces, 0.0, given_on))

    needed = full  # bytes of each array that are read; twice, to see through a bitcast
    for _ in range(2):
        total = np.bincount(graph.operand, read_by(needed), len(graph.names))
        needed = np.where(has_reader, np.minimum(full, total), full)
    read = read_by(needed)
    moved = np.bincount(reader, read, len(graph.names)) + _written(graph, op, full, inside)
    _read_by_fusions(graph, op, reader, read, needed, moved)
    idle = inside[graph.group] | np.isin(op, (*_FREE, *_CONTROL))
    return np.where(idle, 0.0, moved)


def _read_by_fusions(
    graph: Graph, op: NDArray[np.str_], reader: Ints, read: Floats, needed: Floats, moved: Floats
) -> None:
    is_parameter = (op == "parameter") & (graph.group >= 0)
    by_group = np.bincount(graph.group[is_parameter], needed[is_parameter], len(graph.groups))
    by_node = np.bincount(reader, read, len(graph.names))
    for index, group in enumerate(graph.groups):
        if group.kind == "fusion" and group.caller >= 0:
            moved[group.caller] += by_group[index] - by_node[group.caller]


def _written(graph: Graph, op: NDArray[np.str_], full: Floats, inside: NDArray[np.bool_]) -> Floats:
    """Return the bytes that each node writes: its array, or only the part that it replaces."""
    written = full.copy()
    in_place = np.flatnonzero(np.isin(op, list(_IN_PLACE)))
    for node in in_place.tolist():
        operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
        at = _IN_PLACE[str(op[node])]
        if len(operands) > at:
            written[node] = full[operands[at]]
    for node in np.flatnonzero(op == "custom-call").tolist():
        # A library call's type may also list its workspace, which is no result.
        written[node] = result_bytes(graph, node)
    for group in {int(graph.group[node]) for node in in_place if inside[graph.group[node]]}:
        caller = graph.groups[group].caller
        roots: list[int] = np.flatnonzero(graph.is_root & (graph.group == group)).tolist()
        if caller >= 0 and roots:
            written[caller] = _through_bitcasts(graph, op, written, roots[0])
    return written


def _through_bitcasts(graph: Graph, op: NDArray[np.str_], written: Floats, root: int) -> float:
    operands = graph.operand[graph.operand_start[root] : graph.operand_start[root + 1]].tolist()
    if op[root] == "tuple":
        return sum(_through_bitcasts(graph, op, written, node) for node in operands if op[node] != "tuple")
    # Bounded, as a damaged text may have cycles.
    for _ in range(4):
        if op[root] != "bitcast" or not operands:
            break
        root = operands[0]
        operands = graph.operand[graph.operand_start[root] : graph.operand_start[root + 1]].tolist()
    return float(written[root])
