"""A graph's nodes as layers of Model Explorer: what a node calls is inside of it, and the edges lead through.

A layer there is a path of names, and an edge leads from node to node. So a fusion is a layer with the instructions of
its body and, as the last of them, the fusion itself: its operands lead to the parameters of the body, its users from
itself. Nothing is a box of its own without an edge.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from explorer.model.graph import Graph

_RETURNS = frozenset(("return", "func.return", "stablehlo.return"))
# What is applied to each element has no value of its own for a parameter.
_APPLIED = "apply"


class Layers:
    """The path of layers of each node of a graph, and where its edges come from.

    Args:
        graph: Of any stage.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.kinds: dict[str, str] = {}
        """Of each layer, the kind of the group that it is."""
        self._words = graph.kernel_words
        self._used: Counter[str] = Counter()
        self._of_group: list[str] = []
        self._of_node: dict[int, str] = {}
        self._callees = Counter(group.caller for group in graph.hierarchy.groups if group.caller >= 0)
        tree = graph.hierarchy
        children = Counter(group.parent for group in tree.groups)
        for index, group in enumerate(tree.groups):
            times = children[index] if group.kind == "repeat" else tree.repeat[index] if tree.repeat else 0
            suffix = f" x{times:,}" if times > 1 else ""  # its font has no ×
            if group.caller >= 0:
                path = self._inside_of(group.caller, group.kind, suffix)
            else:
                parent = self._of_group[group.parent] if group.parent >= 0 else ""
                path = self._add(parent, group.name + suffix, group.kind)
            self._of_group.append(path)
        self._groups: list[int] = tree.group.tolist()
        self._sources = self._edges()

    def path(self, node: int) -> str:
        """The layers that a node is in, outermost first, with `/` between; empty at the top."""
        if node in self._of_node:
            return self._of_node[node]
        group = self._groups[node]
        return self._of_group[group] if group >= 0 else ""

    def label(self, node: int) -> str:
        """What stands on a node: its operation; its name where it is an argument, or a kernel's result."""
        op = self.graph.ops[int(self.graph.op[node])]
        return self.graph.names[node] if op in ("parameter", "fusion") else op

    def sources(self, node: int) -> Sequence[int]:
        """The nodes that the edges into a node come from."""
        return self._sources[node] if node in self._sources else self._operands(node)

    def _operands(self, node: int) -> list[int]:
        start, end = self.graph.operand_start[node : node + 2]
        return self.graph.operand[start:end].tolist()

    def _inside_of(self, caller: int, kind: str, suffix: str) -> str:
        """The layer of a called computation: its caller's own, or inside of that where the caller calls several."""
        layer = self._of_node.get(caller)
        is_alone = self._callees[caller] == 1
        if layer is None:
            group = int(self.graph.hierarchy.group[caller])
            title = self._title(caller) + suffix * is_alone
            layer = self._of_node[caller] = self._add(self._of_group[group] if group >= 0 else "", title, kind)
        return layer if is_alone else self._add(layer, kind + suffix, kind)

    def _title(self, caller: int) -> str:
        """What a layer computes, or which operation it is; and the name that the compiler gave it."""
        name, op = self.graph.names[caller], self.graph.ops[int(self.graph.op[caller])].removeprefix("stablehlo.")
        words = self._words.get(caller) or ("" if name.startswith(op) else op)
        return f"{words} ({name})" if words else name

    def _add(self, parent: str, name: str, kind: str) -> str:
        """A new layer; of two of one name side by side the second is numbered."""
        # A slash would be a level of its own; its font has neither a triangle nor a division slash.
        step = name.replace("/", "|").replace("▸", ">").strip() or "group"
        path = f"{parent}/{step}" if parent else step
        self._used[path] += 1
        while self._used[path] > 1:
            path = f"{path} ({self._used[path]})"
            self._used[path] += 1
        self.kinds[path] = kind
        return path

    def _edges(self) -> dict[int, list[int]]:
        """The sources of what a call's edges change: the parameters of its body, and the calling node."""
        parameters, results = self._ends()
        sources: dict[int, list[int]] = {}
        branches: Counter[int] = Counter()  # of each caller, those before
        for index, group in enumerate(self.graph.groups):
            caller = group.caller
            if caller < 0:
                continue
            left = sources.get(caller, self._operands(caller))
            if group.kind != _APPLIED:
                inner, given = parameters.get(index, []), self._operands(caller)
                if group.kind == "branch":
                    given = _arguments_of_branch(given, len(inner), branches[caller])
                    branches[caller] += 1
                reached = dict(zip(inner, given, strict=False))
                sources.update((parameter, [operand]) for parameter, operand in reached.items())
                left = [source for source in left if source not in reached.values()]
            sources[caller] = [*left, *(node for node in results.get(index, ()) if node not in left)]
        return sources

    def _ends(self) -> tuple[Mapping[int, list[int]], Mapping[int, list[int]]]:
        """Of each computation, its parameters by number, and what it returns."""
        graph = self.graph
        is_parameter = np.asarray([op == "parameter" for op in graph.ops] or [False], bool)[graph.op]
        returns = np.asarray([op in _RETURNS for op in graph.ops] or [False], bool)[graph.op] | graph.is_root
        returns[graph.returned] = True
        numbers = graph.parameter_number
        parameters: dict[int, list[int]] = {}
        results: dict[int, list[int]] = {}
        for node in np.flatnonzero(is_parameter & (graph.group >= 0)).tolist():
            parameters.setdefault(int(graph.group[node]), []).append(node)
        for node in np.flatnonzero(returns & (graph.group >= 0)).tolist():
            results.setdefault(int(graph.group[node]), []).append(node)
        for nodes in parameters.values():
            nodes.sort(key=lambda node: int(numbers[node]))  # stable: those without a number stay in the text's order
        return parameters, results


def _arguments_of_branch(operands: list[int], parameters: int, number: int) -> list[int]:
    """What a branch gets of a conditional's operands, the first of which chooses: in HLO its own one, else all."""
    return operands[1:] if len(operands) == parameters + 1 else operands[number + 1 : number + 2]
