"""The instructions of an HLO graph by index, as lists: a hundred thousand of them are asked for one by one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from explorer.model.graph import Graph, Ints
from explorer.model.types import Type, parse_type

_CALLS = ("body", "condition", "to_apply", "true_computation", "false_computation", "branch_computations")
_LONGEST_CHAIN = 100  # bitcasts of bitcasts: real chains are a few long, and damaged text may go round


class Instructions:
    """What the rules of memory ask of instructions.

    Args:
        graph: A module's.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        codes: list[int] = graph.op.tolist()
        self.op = [graph.ops[code] for code in codes]
        attributes = graph.attribute_table
        self.parameter_number: list[int] = graph.parameter_number.tolist()
        self.tuple_index: list[int] = attributes.integers("index").tolist()
        self.has_aliasing = set(attributes.nodes("output_to_operand_aliasing").tolist())
        self.fusion_kinds = attributes.codes("kind")
        self._type: list[int] = graph.type.tolist()
        self._shapes: list[Type | None] = [None] * len(graph.types)
        self._is_root: list[bool] = graph.is_root.tolist()
        self._first: list[int] = graph.operand_start.tolist()
        self._operand: list[int] = graph.operand.tolist()
        self._nodes = _nodes_by_group(graph)
        self._calls = _calls_by_node(graph)
        self._fused = {g.caller: i for i, g in enumerate(graph.groups) if g.kind == "fusion" and g.caller >= 0}

    def __len__(self) -> int:
        return len(self.op)

    @property
    def entry(self) -> int:
        """The computation that runs first: the one marked so, else the last; -1 if there is none."""
        groups = self.graph.groups
        return next((i for i, group in enumerate(groups) if group.kind == "entry"), len(groups) - 1)

    def nodes(self, group: int) -> list[int]:
        """The instructions of a computation, in the text's order."""
        return self._nodes[group].tolist() if 0 <= group < len(self._nodes) else []

    def root(self, nodes: Sequence[int]) -> int:
        """What a computation of these instructions returns; its last one where none is marked, -1 for none."""
        return next((node for node in reversed(nodes) if self._is_root[node]), nodes[-1] if nodes else -1)

    def parameters(self, nodes: Sequence[int]) -> dict[int, int]:
        """The parameters among the instructions of a computation, by their number."""
        return {self.parameter_number[node]: node for node in nodes if self.op[node] == "parameter"}

    def operands(self, node: int) -> list[int]:
        return self._operand[self._first[node] : self._first[node + 1]]

    def shape(self, node: int) -> Type:
        """The arrays of what an instruction gives."""
        code = self._type[node]
        shape = self._shapes[code]
        if shape is None:
            shape = self._shapes[code] = parse_type(self.graph.types[code])
        return shape

    def calls(self, node: int) -> Sequence[tuple[str, int]]:
        """The computations that run inside an instruction: in which role, and which."""
        return self._calls.get(node, ())

    def fused(self, node: int) -> list[int]:
        """The instructions inside a fusion; none for what is no fusion, or one whose computation is missing."""
        return self.nodes(self._fused.get(node, -1))

    def fusion_kind(self, node: int) -> str:
        """`kLoop`, `kInput`, `kOutput`, `kCustom`; empty for none."""
        code = int(self.fusion_kinds[node])
        return self.graph.attribute_table.columns.values[code] if code >= 0 else ""

    def is_tiled(self, node: int) -> bool:
        """Whether an instruction gives arrays in tiles, as a TPU's do."""
        return any(array.tiling for array in self.shape(node).arrays)

    def keeps_tiles(self, node: int) -> bool:
        """Whether a node is a bitcast that gives a TPU's tiles another name, each element where it was."""
        if self.op[node] != "bitcast" or not self.is_tiled(node):
            return False
        before = [array.stored[:3] for operand in self.operands(node) for array in self.shape(operand).arrays]
        return before == [array.stored[:3] for array in self.shape(node).arrays]

    def behind_bitcasts(self, node: int) -> int:
        """The instruction that a chain of bitcasts starts at: they are names for what is there."""
        for _ in range(_LONGEST_CHAIN):
            operands = self.operands(node)
            if self.op[node] != "bitcast" or not operands:
                break
            node = operands[0]
        return node


def _nodes_by_group(graph: Graph) -> list[Ints]:
    order = np.argsort(graph.group, kind="stable").astype(np.int32)
    edges = np.searchsorted(graph.group[order], np.arange(len(graph.groups) + 1))
    return [order[edges[i] : edges[i + 1]] for i in range(len(graph.groups))]


def _calls_by_node(graph: Graph) -> dict[int, list[tuple[str, int]]]:
    calls: dict[int, list[tuple[str, int]]] = {}
    for call in graph.calls:
        if call.role in _CALLS:
            calls.setdefault(call.node, []).append((call.role, call.group))
    return calls
