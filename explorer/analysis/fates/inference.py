"""What became of an equation that no instruction bears the name of: inferred, where only one answer is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from explorer.analysis.fates.metadata_fates import Instructions, MetadataFates, Row, only_calls
from explorer.analysis.links.equations import is_dead, twins
from explorer.model.graph import Graph
from explorer.model.types import elements

_NOTHING = frozenset(["stop_gradient", "name", "pvary", "optimization_barrier"])
# These change nothing where they give the type that they take.
_MAYBE_NOTHING = frozenset(["convert_element_type", "broadcast_in_dim", "reshape", "squeeze", "copy", "copy_p"])
# Only another view of the same elements, in any stage.
_VIEWS = frozenset(["reshape", "squeeze", "expand_dims", "stablehlo.reshape"])
_DEAD = Row("eliminated", (), True, "nothing that is returned depends on it")


def infer(fates: MetadataFates, depends: Sequence[int]) -> None:
    """Replace the rows of `fates` that are unmapped where only one answer is left.

    Args:
        fates: Of one stage.
        depends: For each node, which arguments its value depends on; 0 for none.
    """
    # The order counts: each step takes what the ones before it found for settled.
    _eliminate(fates)
    _fold(fates, depends)
    _take_from_caller(fates)
    _take_from_transpose(fates)
    _place_between(fates, depends)


def _unmapped(fates: MetadataFates) -> list[int]:
    return [node for node, row in enumerate(fates.rows) if row.kind == "unmapped"]


def _eliminate(fates: MetadataFates) -> None:
    """What nothing reads, changes nothing, or is written twice is gone."""
    graph, rows = fates.graph, fates.rows
    dead = is_dead(graph).tolist()
    first_of = twins(graph)
    alike: dict[int, list[int]] = {}
    for node, first in first_of.items():
        alike.setdefault(first, [first]).append(node)
    for node, row in enumerate(rows):
        if dead[node] and row.kind in ("inlined", "unmapped"):
            rows[node] = _DEAD
        elif row.kind != "unmapped":
            continue
        elif _does_nothing(graph, node):
            rows[node] = Row("eliminated", (), True, "it changes no value")
        else:
            others = alike.get(first_of.get(node, node), ())
            kept = [i for i in others if rows[i].kernels]
            if kept:
                rows[node] = Row("eliminated", (), True, f"the same as {graph.names[kept[0]]}, which stands for both")


def _does_nothing(graph: Graph, node: int) -> bool:
    op = graph.ops[int(graph.op[node])]
    operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]]
    is_same = len(operands) == 1 and graph.type[operands[0]] == graph.type[node]
    return op in _NOTHING or (op in _MAYBE_NOTHING and is_same)


def _fold(fates: MetadataFates, depends: Sequence[int]) -> None:
    """A number that depends on no argument is computed while compiling; a whole array may be made where it is read."""
    graph, rows = fates.graph, fates.rows
    is_number = [elements(type_) == 1 for type_ in graph.types]
    for node in _unmapped(fates):
        if depends[node] or node in fates.callers or not is_number[int(graph.type[node])]:
            continue
        operands = graph.operand[graph.operand_start[node] : graph.operand_start[node + 1]].tolist()
        if all(rows[i].kind in ("", "folded") and is_number[int(graph.type[i])] for i in operands):
            rows[node] = Row("folded", (), True, "it depends on no argument: computed while compiling")


def _take_from_caller(fates: MetadataFates) -> None:
    """What a reduction or a scatter applies to each pair is where that is."""
    graph, rows = fates.graph, fates.rows
    callers = [group.caller for group in graph.groups] + [-1]
    for node in _unmapped(fates):
        caller = callers[int(graph.group[node])]
        if caller >= 0 and rows[caller].kernels and not only_calls(graph.ops[int(graph.op[caller])]):
            above = rows[caller]
            rows[node] = Row(above.kind, above.kernels, True, f"part of {graph.names[caller]}")


def _take_from_transpose(fates: MetadataFates) -> None:
    """A product that is transposed is computed transposed: then the instruction has the transpose's name."""
    graph, rows, hlo = fates.graph, fates.rows, fates.hlo
    user_start, user = graph.user_columns
    for node in _unmapped(fates):
        code = hlo.code.get(_PRODUCTS.get(graph.ops[int(graph.op[node])], ""), -1)
        readers: list[int] = user[user_start[node] : user_start[node + 1]].tolist()
        if code < 0 or len(readers) != 1 or not graph.ops[int(graph.op[readers[0]])].endswith("transpose"):
            continue
        products = [i for i in fates.linked.get(readers[0], ()) if hlo.op_code[i] == code]
        if len(products) == 1 and rows[readers[0]].kernels:
            above = rows[readers[0]]
            rows[node] = Row(above.kind, above.kernels, True, f"computed transposed, with {graph.names[readers[0]]}")


_PRODUCTS = {
    "dot_general": "dot",
    "conv_general_dilated": "convolution",
    "stablehlo.dot_general": "dot",
    "stablehlo.convolution": "convolution",
}


@dataclass(frozen=True)
class _Surroundings:
    """A stage's dataflow around the equations that are still unmapped.

    Args:
        fates: The fates as they are before any equation is placed between others.
        depends: For each node, which arguments its value depends on; 0 for none.
        operands, users: Of each node.
    """

    fates: MetadataFates
    depends: Sequence[int]
    operands: Sequence[Sequence[int]]
    users: Sequence[Sequence[int]]


def _place_between(fates: MetadataFates, depends: Sequence[int]) -> None:
    """What is made and read in one kernel happens in that kernel, or not at all."""
    graph = fates.graph
    start, operand = graph.operand_start.tolist(), graph.operand.tolist()
    operands: list[list[int]] = [operand[start[i] : start[i + 1]] for i in range(len(start) - 1)]
    users: list[list[int]] = [[] for _ in operands]
    for node, read in enumerate(operands):
        for i in read:
            users[i].append(node)
    around = _Surroundings(fates, depends, operands, users)
    # All are found before any is written: one inference is no evidence for the next.
    placed = {node: row for node in _unmapped(fates) if (row := _between(around, node)) is not None}
    for node, row in placed.items():
        fates.rows[node] = row


def _between(around: _Surroundings, node: int) -> Row | None:
    graph, hlo = around.fates.graph, around.fates.hlo
    makers, readers = _makers(around, node), _readers(around, node)
    if makers is None or not readers:
        return None
    if makers == readers and len(readers) == 1:
        return Row("fused", tuple(readers), True, "all that it reads and all that reads it is in this kernel")
    kernels = tuple(sorted(_without_arguments(hlo, makers) | readers))
    if len(kernels) > _MOST or not _reads_only(around.fates, readers, makers):
        return None
    if not makers:
        return _in_only_reader(around, node, kernels)
    if graph.ops[int(graph.op[node])] in _VIEWS:
        return Row("eliminated", (), True, "only another view: its reader takes the value as it is")
    if len(kernels) == 1:
        return Row("fused", kernels, True, "no kernel runs between what it reads and this one")
    return Row("fused", kernels, True, "in some of these: no other runs between")


def _in_only_reader(around: _Surroundings, node: int, readers: tuple[int, ...]) -> Row | None:
    """The fate of a constant, which nothing makes; one that several kernels read may be in each of them."""
    if around.depends[node] or len(readers) > 1:
        return None
    return Row("fused", readers, True, "only this kernel reads it, and nothing else makes it")


def _without_arguments(hlo: Instructions, makers: set[int]) -> set[int]:
    return {i for i in makers if hlo.graph.ops[hlo.op_code[i]] != "parameter"}


def _makers(around: _Surroundings, node: int) -> set[int] | None:
    """The kernels and arguments whose values reach an equation through unmapped ones; None where one is not known."""
    return _ends(around, node, around.operands, may_be_folded=True)


def _readers(around: _Surroundings, node: int) -> set[int] | None:
    """The kernels that its value reaches through unmapped equations; None where one is not known or it is returned."""
    return _ends(around, node, around.users, may_be_folded=False) if around.users[node] else None


def _ends(around: _Surroundings, node: int, along: Sequence[Sequence[int]], *, may_be_folded: bool) -> set[int] | None:
    rows, linked = around.fates.rows, around.fates.linked
    ends: set[int] = set()
    seen, todo = {node}, list(along[node])
    while todo:
        at = todo.pop()
        if at in seen:
            continue
        seen.add(at)
        row = rows[at]
        if row.kernels:
            ends.update(row.kernels)
        elif row.kind in ("unmapped", "eliminated") and along[at] and len(seen) < _FARTHEST:
            todo += along[at]
        elif row.kind == "" and len(linked.get(at, ())) == 1:
            ends.add(linked[at][0])
        elif not _is_made_nowhere(around, at, may_be_folded):
            return None
    return ends


def _is_made_nowhere(around: _Surroundings, node: int, may_be_folded: bool) -> bool:
    """Is it a constant, of the function or, where these count, of the compiled program?"""
    if around.fates.rows[node].kind == "folded":
        return may_be_folded
    return around.fates.rows[node].kind == "" and not around.depends[node] and not around.operands[node]


def _reads_only(fates: MetadataFates, readers: set[int], makers: set[int]) -> bool:
    """True if kernels take all these values as they are: no kernel of an unknown equation stands between."""
    taken = set[int]()
    todo = [i for reader in readers for i in _kernel_operands(fates, reader)]
    for at in todo:  # grows while it is walked
        if at in makers:
            taken.add(at)
        elif fates.hlo.graph.ops[fates.hlo.op_code[at]] in _PASSING and len(todo) < _FARTHEST:
            todo += _kernel_operands(fates, at)
        elif at not in fates.attributed and _may_consume(fates, at, makers):
            return False
    return taken == makers - readers


def _may_consume(fates: MetadataFates, kernel: int, makers: set[int]) -> bool:
    """True if `kernel`, whose equation is unknown, may consume one of `makers` through any path."""
    todo = [kernel]
    for at in todo:  # grows while it is walked
        if at in makers or len(todo) > _FARTHEST:
            return True
        if at not in fates.attributed:
            todo += _kernel_operands(fates, at)
    return False


def _kernel_operands(fates: MetadataFates, kernel: int) -> list[int]:
    graph = fates.hlo.graph
    return graph.operand[graph.operand_start[kernel] : graph.operand_start[kernel + 1]].tolist()


_PASSING = ("bitcast", "get-tuple-element", "tuple")
_FARTHEST = 32
_MOST = 4  # kernels: that it is in one of many says nothing
