"""Which kernels of a program are equal: XLA:CPU makes code for one of them, and runs it for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer.analysis.cost.kernels import running_nodes
from explorer.model.graph import Graph, Node

# What makes no difference to the code: names, and where it is from.
_NAMES = frozenset(
    (
        "metadata",
        "calls",
        "to_apply",
        "backend_config",
        "sharding",
        "frontend_attributes",
        "control-predecessors",
        "root",
    )
)


def equal_kernels(graph: Graph) -> Mapping[str, Sequence[str]]:
    """By the name of a fusion, the names of all, itself included, that compute the same from arrays of the same types.

    Code that may overwrite what it reads is other code: the kernels that read an array last are told from the others.
    """
    inside: dict[int, list[int]] = {}
    kernels = graph.kernel.tolist()
    for node, kernel in enumerate(kernels):
        if kernel != node and kernel >= 0:
            inside.setdefault(kernel, []).append(node)
    alike: dict[object, list[str]] = {}
    for node in map(int, running_nodes(graph)):
        if node in inside:
            alike.setdefault(_content(graph, node, inside[node]), []).append(graph.names[node])
    return {name: names for names in alike.values() for name in names}


def _content(graph: Graph, kernel: int, nodes: Sequence[int]) -> object:
    at = {node: index for index, node in enumerate(nodes)}
    rows = [
        (
            *_head(graph, node),
            tuple(at.get(operand, -1) for operand in _operands(graph, node)),
            tuple((key, value) for key, value in Node(graph, node).attributes.items() if key not in _NAMES),
        )
        for node in nodes
    ]
    operands = tuple((_head(graph, each)[1], _is_last_use(graph, each, kernel)) for each in _operands(graph, kernel))
    return (_head(graph, kernel), operands, Node(graph, kernel).attributes.get("kind", ""), tuple(rows))


def _is_last_use(graph: Graph, operand: int, kernel: int) -> bool:
    """Whether a kernel is the last that reads an array which the program made itself."""
    while (op := _head(graph, operand)[0]) == "bitcast":
        operand = _operands(graph, operand)[0]
    start, users = graph.user_columns
    return op != "parameter" and int(users[start[operand] : start[operand + 1]].max(initial=kernel)) <= kernel


def _head(graph: Graph, node: int) -> tuple[str, str]:
    return graph.ops[int(graph.op[node])], graph.types[int(graph.type[node])]


def _operands(graph: Graph, node: int) -> Sequence[int]:
    start, end = graph.operand_start[node : node + 2].tolist()
    return graph.operand[start:end].tolist()
