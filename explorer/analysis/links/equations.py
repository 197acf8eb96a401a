"""What the text of a jaxpr or StableHLO module says beyond its graph: what is returned, and what is written twice."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph

__all__ = ["is_dead", "returned_in_order", "twins"]

_EQUATION = re.compile(r"\s*((?:\w++:\S++ ?+)++)= (.*)")
_RETURNED = re.compile(r"\s*in \((.*)\) \}")
_VARIABLE = re.compile(r"(?<![\w:.])[a-z]+(?![\w:\[=.(])")
# A StableHLO operation in its usual form: `%2 = stablehlo.add %0, %1 : tensor<8xf32> loc(#loc3)`.
_OPERATION = re.compile(r"\s*%\w+ = (.*)")
_VALUE = re.compile(r"%\w+")
# These do more than give a value.
_EFFECT = re.compile(
    r"rng_uniform|\.rng$|callback|print|effect|token|feed|send|recv|swap|addupdate|(?<!dynamic_)set$|check|assert|custom"
)


def is_dead(graph: Graph, text: str) -> NDArray[np.bool_]:
    """Which nodes of a jaxpr or StableHLO graph nothing that the program gives depends on, shape `[n]`."""
    returned = _returned(graph, text)
    lives = np.zeros(len(graph.names), bool)
    codes: list[int] = graph.op.tolist()
    ops = [graph.ops[code] for code in codes]
    called: dict[int, list[int]] = {}
    members: dict[int, list[int]] = {}
    for i, group in enumerate(graph.groups):
        called.setdefault(group.caller, []).append(i)
    for node, group in enumerate(graph.group.tolist()):
        members.setdefault(group, []).append(node)
    entries = [i for i, group in enumerate(graph.groups) if group.caller < 0]
    todo = [node for i in entries for node in members.get(i, ()) if node in returned]
    todo += [node for node, op in enumerate(ops) if _EFFECT.search(op)]
    start, operand = graph.operand_start.tolist(), graph.operand.tolist()
    while todo:
        node = todo.pop()
        if lives[node]:
            continue
        lives[node] = True
        todo += operand[start[node] : start[node + 1]]
        for group in called.get(node, ()):
            # A loop's body gives back what it is given: all that it returns counts.
            todo += [inner for inner in members.get(group, ()) if inner in returned]
        caller = graph.groups[int(graph.group[node])].caller if graph.group[node] >= 0 else -1
        if caller >= 0:
            todo.append(caller)
    return ~lives


def _returned(graph: Graph, text: str) -> set[int]:
    """The nodes that a function, a region or an inner jaxpr gives back."""
    if "func.func" in text:
        returns = [i for i, op in enumerate(graph.ops) if op.rpartition(".")[2] == "return"]
        return set(np.flatnonzero(np.isin(graph.op, returns)).tolist())
    node_of = _names(graph, text)
    returns = [match[1] for line in text.split("\n") if (match := _RETURNED.fullmatch(line))]
    return {node_of[name] for names in returns for name in names.split(", ") if name in node_of}


def returned_in_order(graph: Graph, text: str) -> list[int]:
    """The nodes that a jaxpr gives back, in order; -1 for a literal, which is no node."""
    last = text.rstrip().rpartition("\n")[2]
    match = _RETURNED.fullmatch(last)
    node_of = _names(graph, text)
    return [node_of.get(name, -1) for name in match[1].split(", ")] if match else []


def _names(graph: Graph, text: str) -> dict[str, int]:
    """By variable, the node that makes it; in a jaxpr every variable has a name of its own."""
    node_of = {name: i for i, name in enumerate(graph.names)}
    lines = text.split("\n")
    for node in np.flatnonzero(np.char.startswith(_types(graph), "(")).tolist():
        row = int(graph.line[node])
        if 0 <= row < len(lines) and (match := _EQUATION.match(lines[row])):
            node_of |= {variable.partition(":")[0]: node for variable in match[1].split()}
    return node_of


def _types(graph: Graph) -> NDArray[np.str_]:
    return np.asarray([type_[:1] for type_ in graph.types] or [""])[graph.type]


def twins(graph: Graph, text: str) -> dict[int, int]:
    """For each equation that is written as an earlier one is, of the same values, that one."""
    lines = text.split("\n")
    is_mlir = "func.func" in text
    name_of: dict[str, str] = {}  # of each value, the first that is the same
    node_of: dict[tuple[int, str], int] = {}
    found: dict[int, int] = {}
    callers = {group.caller for group in graph.groups}
    rows: list[int] = graph.line.tolist()
    for node, row in enumerate(rows):
        group = int(graph.group[node])
        match = (_OPERATION if is_mlir else _EQUATION).match(lines[row]) if 0 <= row < len(lines) else None
        # What is cut short, calls, or has an effect can't be compared by its text; a value's name is its group's own.
        if match is None or node in callers or "…" in lines[row] or _EFFECT.search(graph.ops[int(graph.op[node])]):
            continue
        value = (match[1].rpartition(" loc(")[0] or match[1]) if is_mlir else match[2]
        scoped = f"{group}:" if is_mlir else ""
        pattern = _VALUE if is_mlir else _VARIABLE
        written = pattern.sub(lambda name, scoped=scoped: name_of.get(scoped + name[0], name[0]), value)
        first = node_of.setdefault((group, written), node)
        if first != node:
            found[node] = first
            name_of[scoped + graph.names[node]] = graph.names[first]
    return found
