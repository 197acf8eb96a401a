"""StableHLO with each call in place of the function that it calls, as XLA inlines it, and its paths as HLO has them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from explorer.model.attributes import AttributeColumns, Attributes
from explorer.model.graph import Graph, Group, Ints

_FUNCTIONS = ("entry", "function")
_MOST = 500_000  # operations: functions that call others twice, which call others twice, …


class Inlined(NamedTuple):
    """A graph without shared functions.

    Args:
        graph: One node for each operation and each way to reach it; its scopes are whole paths, and what had no frame
            has that of the call.
        row: The operation in the original graph, of each node.
        order: The nodes as the program runs: a function's after its call.
    """

    graph: Graph
    row: Ints
    order: Ints


class _Copy(NamedTuple):
    """One function at one place where it is called: its first node, its path and frame, and the node that calls it."""

    function: int
    base: int
    prefix: str
    frame: int
    caller: int


class _Functions:
    """The functions of a graph: the rows of each in program order, those that call, and what they call."""

    def __init__(self, graph: Graph) -> None:
        self.owner: list[int] = []
        for index, group in enumerate(graph.groups):  # callers stand before what they call, regions after their node
            is_region = group.kind not in _FUNCTIONS and group.caller >= 0
            at = int(graph.group[group.caller]) if is_region else index
            self.owner.append(self.owner[at] if at < index else index)
        owners = np.asarray([*self.owner, -1], np.int32)[graph.group]
        self.rows = {function: np.flatnonzero(owners == function).astype(np.int32) for function in set(self.owner)}
        self.groups = {function: [i for i, own in enumerate(self.owner) if own == function] for function in self.rows}
        self.callee = {call.node: call.group for call in graph.calls if graph.groups[call.group].kind == "function"}
        callers = np.asarray(sorted(self.callee), np.int32)
        self.callers = {function: rows[np.isin(rows, callers)] for function, rows in self.rows.items()}


def inline_calls(graph: Graph) -> Inlined:
    """Put the operations of each called function in place of each call to it."""
    functions = _Functions(graph)
    entries = [i for i, group in enumerate(graph.groups) if group.kind == "entry"]
    copies: list[_Copy] = []
    pieces: list[Ints] = []
    size = 0

    def visit(function: int, prefix: str, frame: int, caller: int, depth: int) -> None:
        nonlocal size
        rows, base = functions.rows[function], size
        copies.append(_Copy(function, base, prefix, frame, caller))
        size += len(rows)
        begin = 0
        callers: list[int] = functions.callers[function].tolist()
        for row in callers:
            place = int(np.searchsorted(rows, row))
            pieces.append(np.arange(base + begin, base + place + 1, dtype=np.int32))
            begin = place + 1
            own = int(graph.frame[row])
            if depth < 64 and size < _MOST:  # a function that calls itself, in damaged input, ends there
                path = _joined(prefix, graph.scopes[int(graph.scope[row])])
                visit(functions.callee[row], path, own if own >= 0 else frame, base + place, depth + 1)
        pieces.append(np.arange(base + begin, base + len(rows), dtype=np.int32))

    for entry in entries:
        visit(entry, "", -1, -1, 0)
    return _assemble(graph, functions, copies, pieces)


def _assemble(graph: Graph, functions: _Functions, copies: list[_Copy], pieces: list[Ints]) -> Inlined:
    nothing = np.zeros(0, np.int32)
    row = np.concatenate([nothing, *(functions.rows[copy.function] for copy in copies)])
    code: dict[str, int] = {}
    groups: list[Group] = []
    scope, group, frame, operand = [nothing], [nothing], [nothing], [nothing]
    counts = np.diff(graph.operand_start)
    at = np.full(len(graph.names) + 1, -1, np.int32)
    new_group = np.full(len(graph.groups) + 1, -1, np.int32)
    for copy in copies:
        rows = functions.rows[copy.function]
        at[rows] = np.arange(copy.base, copy.base + len(rows))
        for old in functions.groups[copy.function]:
            own = graph.groups[old]
            is_region = old != copy.function
            new_group[old] = len(groups)
            caller = int(at[own.caller]) if is_region else copy.caller
            groups.append(Group(own.name, own.kind, int(new_group[own.parent]) if is_region else -1, caller))
        used, codes = np.unique(graph.scope[rows], return_inverse=True)
        paths = [_joined(copy.prefix, graph.scopes[int(old)]) for old in used]
        scope.append(np.asarray([code.setdefault(path, len(code)) for path in paths] or [0], np.int32)[codes])
        group.append(new_group[graph.group[rows]])
        frame.append(np.where(graph.frame[rows] < 0, copy.frame, graph.frame[rows]))
        operand.append(at[_operands(graph, rows, counts)])
    start = np.concatenate([[0], np.cumsum(counts[row])]).astype(np.int32)
    copied = replace(
        graph,
        names=[graph.names[i] for i in row.tolist()],
        op=graph.op[row],
        type=graph.type[row],
        line=graph.line[row],
        scope=np.concatenate(scope),
        group=np.concatenate(group),
        frame=np.concatenate(frame).astype(np.int32),
        operand_start=start,
        operand=np.concatenate(operand),
        scopes=list(code),
        groups=groups,
        measure=None,
        node_attributes=Attributes(lambda: _attributes(graph, row)),
    )
    return Inlined(copied, row, np.concatenate([nothing, *pieces]))


def _operands(graph: Graph, rows: Ints, counts: Ints) -> Ints:
    """The operands of some rows, one after the other."""
    own = counts[rows]
    begin = np.repeat(graph.operand_start[rows] - np.concatenate([[0], np.cumsum(own)[:-1]]), own)
    return graph.operand[(begin + np.arange(len(begin))).astype(np.int64)]


def _attributes(graph: Graph, row: Ints) -> AttributeColumns:
    columns = graph.attribute_table.columns
    counts = np.diff(columns.start)
    own = counts[row]
    start = np.concatenate([[0], np.cumsum(own)]).astype(np.int32)
    at = (np.repeat(columns.start[row] - start[:-1], own) + np.arange(int(own.sum()))).astype(np.int64)
    return AttributeColumns(start, columns.key[at], columns.value[at], columns.keys, columns.values)


def _joined(prefix: str, path: str) -> str:
    return f"{prefix}/{path}" if prefix and path else prefix or path
