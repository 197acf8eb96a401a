"""What became of an equation that no instruction bears the name of: inferred, where only one answer is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from explorer.analysis.fates.metadata_fates import Row, Told, only_calls
from explorer.analysis.links.equations import is_dead, twins
from explorer.model.graph import Graph
from explorer.model.types import elements

if TYPE_CHECKING:
    from explorer.model.capture import Capture

__all__ = ["infer"]

_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier"])
# These change nothing where they give the type that they take.
_MAYBE_NOTHING = frozenset(["convert_element_type", "broadcast_in_dim", "reshape", "squeeze", "copy", "copy_p"])
# Only another view of the same elements, in any stage.
_VIEWS = frozenset(["reshape", "squeeze", "expand_dims", "stablehlo.reshape"])


def infer(capture: Capture, stage: str, told: Told) -> None:
    """Fill what is unmapped where only one answer is left."""
    graph, rows = told.graph, told.rows
    if not any(row.kind in ("unmapped", "inlined") for row in rows):
        return
    text = capture.stage(stage).text
    dead = is_dead(graph, text).tolist()
    same = twins(graph, text)
    alike: dict[int, list[int]] = {}
    for node, one in same.items():
        alike.setdefault(one, [one]).append(node)
    for node, row in enumerate(rows):
        if row.kind == "inlined" and dead[node]:
            rows[node] = Row("eliminated", (), True, "nothing that is returned depends on it")
        elif row.kind != "unmapped":
            continue
        elif dead[node]:
            rows[node] = Row("eliminated", (), True, "nothing that is returned depends on it")
        elif _does_nothing(graph, node):
            rows[node] = Row("eliminated", (), True, "it changes no value")
        else:
            others = alike.get(same.get(node, node), ())
            kept = next((i for i in others if rows[i].kernels), None)
            if kept is not None:
                rows[node] = Row("eliminated", (), True, f"the same as {graph.names[kept]}, which stands for both")
    depends = told.links.reach(stage)
    _fold(told, depends)
    _with_callers(told)
    _with_transposes(told)
    _Between(told, depends).fill()


def _does_nothing(graph: Graph, node: int) -> bool:
    op = graph.ops[int(graph.op[node])]
    operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
    is_same = len(operands) == 1 and graph.type[operands[0]] == graph.type[node]
    return op in _NOTHING or (op in _MAYBE_NOTHING and is_same)


def _with_callers(told: Told) -> None:
    """What a reduction or a scatter applies to each pair is where that is."""
    graph, rows = told.graph, told.rows
    callers = [group.caller for group in graph.groups] + [-1]
    for node, row in enumerate(rows):
        caller = callers[int(graph.group[node])]
        if row.kind != "unmapped" or caller < 0 or only_calls(graph.ops[int(graph.op[caller])]):
            continue
        if rows[caller].kernels:
            above = rows[caller]
            rows[node] = Row(above.kind, above.kernels, True, f"part of {graph.names[caller]}")


def _fold(told: Told, depends: Sequence[int]) -> None:
    """A number that depends on no argument is computed while compiling; a whole array may be made where it is read."""
    graph, rows = told.graph, told.rows
    is_number = [elements(type_) == 1 for type_ in graph.types]
    for node, row in enumerate(rows):
        if row.kind != "unmapped" or depends[node] or node in told.calls or not is_number[int(graph.type[node])]:
            continue
        operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()
        if all(rows[i].kind in ("", "folded") and is_number[int(graph.type[i])] for i in operands):
            rows[node] = Row("folded", (), True, "it depends on no argument: computed while compiling")


def _with_transposes(told: Told) -> None:
    """A product that is transposed is computed transposed: then the instruction has the transpose's name."""
    graph, rows, hlo = told.graph, told.rows, told.hlo
    user_start, user = graph.user_columns
    for node, row in enumerate(rows):
        code = hlo.named.get(_PRODUCTS.get(graph.ops[told.op[node]], ""), -1)
        if row.kind != "unmapped" or code < 0:
            continue
        readers: list[int] = user[user_start[node] : user_start[node + 1]].tolist()
        if len(readers) != 1 or not graph.ops[told.op[readers[0]]].endswith("transpose"):
            continue
        products = [i for i in told.linked.get(readers[0], ()) if hlo.code[i] == code]
        if len(products) == 1 and rows[readers[0]].kernels:
            above = rows[readers[0]]
            rows[node] = Row(above.kind, above.kernels, True, f"computed transposed, with {graph.names[readers[0]]}")


_PRODUCTS = {
    "dot_general": "dot",
    "conv_general_dilated": "convolution",
    "stablehlo.dot_general": "dot",
    "stablehlo.convolution": "convolution",
}


class _Between:
    """What is made and read in one kernel happens in that kernel, or not at all."""

    def __init__(self, told: Told, depends: Sequence[int]) -> None:
        self.told, self.graph, self.rows = told, told.graph, told.rows
        self.depends = depends
        self.users: list[list[int]] = [[] for _ in range(len(self.graph))]
        start, operand = self.graph.operand_start.tolist(), self.graph.operand.tolist()
        self.operands = [operand[start[i] : start[i + 1]] for i in range(len(self.graph))]
        for node, operands in enumerate(self.operands):
            for i in operands:
                self.users[i].append(node)

    def fill(self) -> None:
        open_ = [node for node, row in enumerate(self.rows) if row.kind == "unmapped"]
        found = {node: row for node in open_ if (row := self.between(node)) is not None}
        for node, row in found.items():
            self.rows[node] = row

    def between(self, node: int) -> Row | None:
        makers, readers = self.ends(node, self.operands), self.ends(node, self.users)
        if makers is None or not readers:
            return None
        if makers == readers and len(readers) == 1:
            return Row("fused", tuple(readers), True, "all that it reads and all that reads it is in this kernel")
        ran = sorted({i for i in makers if self.told.hlo.op(i) != "parameter"} | readers)
        if len(ran) > _MOST or not self.reads_only(readers, makers):
            return None
        if not makers:
            # A constant that several kernels read may be in each of them.
            is_made_there = not self.depends[node] and len(readers) == 1
            return (
                Row("fused", tuple(ran), True, "only this kernel reads it, and nothing else makes it")
                if is_made_there
                else None
            )
        if self.graph.ops[int(self.graph.op[node])] in _VIEWS:
            return Row("eliminated", (), True, "only another view: its reader takes the value as it is")
        why = (
            "no kernel runs between what it reads and this one"
            if len(ran) == 1
            else "in some of these: no other runs between"
        )
        return Row("fused", tuple(ran), True, why)

    def ends(self, node: int, along: Sequence[Sequence[int]]) -> set[int] | None:
        """The kernels and arguments at the ends of the unmapped equations around one; None where one is not known."""
        found: set[int] = set()
        seen, todo = {node}, list(along[node])
        if not todo and along is self.users:
            return None  # it is returned
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            row = self.rows[at]
            if row.kernels:
                found.update(row.kernels)
            elif row.kind in ("unmapped", "eliminated") and along[at] and len(seen) < _FARTHEST:
                todo += along[at]
            elif row.kind == "" and len(self.told.linked.get(at, ())) == 1:
                found.add(self.told.linked[at][0])
            elif row.kind == "" and not self.depends[at] and not self.operands[at]:
                pass  # a constant is made nowhere
            elif row.kind != "folded" or along is self.users:
                return None
        return found

    def reads_only(self, readers: set[int], makers: set[int]) -> bool:
        """Whether kernels take all these values as they are: nothing unknown stands between."""
        operands, taken = self.operands_of_kernel, set[int]()
        todo = [i for reader in readers for i in operands(reader)]
        for at in todo:  # grows while it is walked
            if at in makers:
                taken.add(at)
            elif self.told.hlo.op(at) in _PASSING and len(todo) < _FARTHEST:
                todo += operands(at)
            elif at not in self.told.known and self.depends_on(at, makers):
                return False
        return taken == makers - readers

    def depends_on(self, kernel: int, makers: set[int]) -> bool:
        """Whether a kernel of which it is not known what it is may have one of some values from anywhere."""
        todo = [kernel]
        for at in todo:
            if at in makers or len(todo) > _FARTHEST:
                return True
            if at not in self.told.known:
                todo += self.operands_of_kernel(at)
        return False

    def operands_of_kernel(self, kernel: int) -> list[int]:
        graph = self.told.hlo.graph
        return graph.operand[graph.operand_start[kernel] : graph.operand_start[kernel + 1]].tolist()


_PASSING = ("bitcast", "get-tuple-element", "tuple")
_FARTHEST = 32
_MOST = 4  # kernels: that it is in one of many says nothing
