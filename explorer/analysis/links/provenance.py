"""Which nodes of different stages are the same operation.

Every stage knows, for most of its nodes, the path of scopes and calls around it and where the innermost expression of
the user's source begins. The jaxpr is lowered to StableHLO one equation after the other (`lowering.py`); an instruction
of HLO bears the path and place of the operations that it came from (`matching.py`). What is left to be several is
several: nothing here is exact, for XLA keeps one name of what it merges, and none of what it makes itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.links.dependence import argument_sets, depths, result_sets
from explorer.analysis.links.inlining import Inlined, inline_calls
from explorer.analysis.links.lowering import lowered_from
from explorer.analysis.links.matching import Candidates, Dependence, match
from explorer.analysis.passes.origins import known_sets
from explorer.model.capture import Capture
from explorer.model.equation_sets import EquationSets
from explorer.model.graph import Graph, Ints
from explorer.model.links import Links


def link_stages(capture: Capture) -> Links:
    """Link every stage of a capture to its first one; reads the stages that were not read yet.

    By structure, and from there exactly where the capture has that on record.
    """
    graphs = {stage.name: stage.graph for stage in capture.stages}
    # What is split only when somebody asks for it is split here, of all stages at once: below it is asked everywhere.
    for graph in graphs.values():
        _ = graph.calls, graph.is_equation, graph.parameter_number, graph.returned
    links = _link(graphs)
    for stage, sets in known_sets(capture).items():
        if stage in links.sets:  # a capture may have been left without one of its stages
            links = links.with_exact(stage, sets)
    return links


def _link(graphs: Mapping[str, Graph]) -> Links:
    sets: dict[str, EquationSets] = {}
    is_refined: dict[str, NDArray[np.bool_]] = {}
    arguments: dict[str, Sequence[int]] = {}
    if len(graphs) < 2:
        return Links(graphs, sets, is_refined, arguments)
    first, *others = graphs
    base = "stablehlo" if "stablehlo" in graphs else first
    lowered = _Lowered(graphs[first], graphs[base], is_stablehlo=base == "stablehlo")
    for name in others:
        if name == "stablehlo":
            sets[name] = lowered.sets_of_operations(graphs[name])
            is_refined[name] = np.zeros(len(sets[name]), bool)
            arguments[name] = lowered.arguments_of_operations(graphs[name])
        else:
            sets[name], is_refined[name], arguments[name] = lowered.sets_of_instructions(graphs[name])
    return Links(graphs, sets, is_refined, arguments)


class _Lowered:
    """The operations that instructions are looked up among, and the nodes of the first stage that they came from.

    Args:
        first: The first stage's graph.
        base: StableHLO where there is any, else the first stage's.
    """

    def __init__(self, first: Graph, base: Graph, *, is_stablehlo: bool) -> None:
        self.first = first
        whole = np.arange(len(base.names), dtype=np.int32)
        self.inlined = inline_calls(base) if is_stablehlo else Inlined(base, whole, whole)
        graph = self.inlined.graph
        does, _ = graph.is_equation.tolist(), graph.parameter_number
        if base is first:
            rows = self.inlined.row.tolist()
            origins: Sequence[Sequence[int]] = [(row,) for row in rows]
        else:
            origins = lowered_from(first, self.inlined)
        self.origins = [rows if is_one else () for rows, is_one in zip(origins, does, strict=True)]
        self.candidates = np.asarray([node for node, rows in enumerate(self.origins) if rows], np.int32)
        code: dict[tuple[int, ...], int] = {}
        rows: list[int] = self.candidates.tolist()
        origins = [tuple(self.origins[node]) for node in rows]
        self.origin = np.asarray([code.setdefault(origin, len(code)) for origin in origins], np.int32)
        self.bit: dict[str, int] = {}  # of each argument, by its path: the same in all stages
        self.arguments = argument_sets(graph, self.bit)
        self.results = result_sets(graph)

    def sets_of_operations(self, graph: Graph) -> EquationSets:
        """Of each operation of StableHLO: of all calls of its function."""
        of: list[tuple[int, ...]] = [()] * len(graph.names)
        for node, row in enumerate(self.inlined.row.tolist()):
            if self.origins[node]:
                of[row] += (node,)
        return self._sets(graph, of, self.origins)

    def arguments_of_operations(self, graph: Graph) -> list[int]:
        """Of each operation of StableHLO, the arguments it depends on in any call of its function."""
        sets = [0] * len(graph.names)
        for row, own in zip(self.inlined.row.tolist(), self.arguments, strict=True):
            sets[row] |= own
        return sets

    def sets_of_instructions(self, graph: Graph) -> tuple[EquationSets, NDArray[np.bool_], Sequence[int]]:
        """Of each instruction, whether only dependence made its set so small, and the arguments it depends on."""
        arguments = argument_sets(graph, self.bit)
        codes = _set_codes(self.arguments, arguments), _set_codes(self.results, result_sets(graph))
        dependence = (
            Dependence(codes[0][0], codes[1][0], _depths(self.inlined.graph)),
            Dependence(codes[0][1], codes[1][1], _depths(graph)),
        )
        matches = match(Candidates(self.inlined.graph, self.candidates, self.origin), graph, dependence)
        start: list[int] = matches.start.tolist()
        operation: list[int] = matches.operation.tolist()
        members = [
            sorted(set(chain.from_iterable(self.origins[at] for at in operation[begin:end])))
            for begin, end in pairwise(start)
        ]
        sets = self._sets(graph, _inherited(graph, matches.of), members)
        return sets, matches.by_dependence, arguments

    def _sets(self, graph: Graph, of: Sequence[tuple[int, ...]], members: Sequence[Sequence[int]]) -> EquationSets:
        """The sets of all nodes, given the classes of what does something, and the rows of each class.

        The program's arguments have the same path in all stages.
        """
        code: dict[tuple[int, ...], int] = {(): -1}
        codes = np.asarray([code.setdefault(classes, len(code) - 1) for classes in of], np.int32)
        rows = [[row for own in classes for row in members[own]] for classes in code][1:]
        row_of = {path: row for row, path in _arguments(self.first)}
        for node, path in _arguments(graph):
            if path in row_of:
                codes[node] = len(rows)
                rows.append([row_of[path]])
        return EquationSets.of_classes(rows, codes)


def _depths(graph: Graph) -> list[Ints]:
    return depths(graph, [_LASTING, _LASTING | _ARITHMETIC])


# What no pass adds or takes away, and what may be; both the same in each iteration of an unrolled loop.
_LASTING = frozenset(
    [
        *(
            "dot",
            "convolution",
            "tanh",
            "exponential",
            "log",
            "log-plus-one",
            "sine",
            "cosine",
            "rsqrt",
            "sqrt",
            "power",
        ),
        *("reduce", "sort", "gather", "scatter", "fft", "custom-call", "while", "conditional", "reduce-window", "erf"),
    ]
)
_ARITHMETIC = frozenset(["add", "subtract", "multiply", "divide", "maximum", "minimum", "select", "compare"])


def _inherited(graph: Graph, of: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """With what a reduction applies to each pair of elements, which is the reduction; with fusions, which bear the name
    of what they return; and with other views of a value, which bear the name of what made it."""
    classes = list(of)
    scopes, frames = graph.scope.tolist(), graph.frame.tolist()
    last = [scope.rpartition("/")[2] for scope in graph.scopes]
    views = np.isin(graph.op, [code for code, op in enumerate(graph.ops) if op in _VIEWS])
    first = graph.operand_start[np.flatnonzero(views)]
    sources = dict(zip(np.flatnonzero(views).tolist(), graph.operand[first].tolist(), strict=True))
    callers: list[int] = [*(group.caller for group in graph.groups), -1]
    is_applied: list[bool] = [*(group.kind == "apply" for group in graph.groups), False]
    groups: list[int] = graph.group.tolist()
    for node in range(len(groups)):  # operands stand before what reads them
        source = sources.get(node, -1)
        if source >= 0 and (scopes[source], frames[source]) == (scopes[node], frames[node]):
            classes[node] = classes[source]
    for node in np.flatnonzero(graph.is_root).tolist():
        caller = callers[groups[node]]
        if caller >= 0 and scopes[caller] == scopes[node] and graph.ops[int(graph.op[caller])] == "fusion":
            classes[caller] = classes[node]
    for node, group in enumerate(groups):
        caller = callers[group] if is_applied[group] else -1
        if caller >= 0 and classes[caller] and last[scopes[caller]] == last[scopes[node]]:
            classes[node] = classes[caller]
    return classes


_VIEWS = frozenset(["bitcast", "copy", "reshape", "transpose"])


def _arguments(graph: Graph) -> Iterator[tuple[int, str]]:
    """The program's arguments: each node with its path."""
    entries = np.asarray([group.kind == "entry" for group in graph.groups] + [False])[graph.group]
    is_argument = np.asarray([op == "parameter" for op in graph.ops] + [False])[graph.op] & entries
    for node in np.flatnonzero(is_argument & (graph.frame < 0)).tolist():
        if path := graph.scopes[int(graph.scope[node])]:
            yield node, path


def _set_codes(here: Sequence[int], there: Sequence[int]) -> tuple[Ints, Ints]:
    """Equal sets, equal codes; -1 for the empty set."""
    code: dict[int, int] = {}
    first, other = ([code.setdefault(bits, len(code)) if bits else -1 for bits in sets] for sets in (here, there))
    return np.asarray(first, np.int32), np.asarray(other, np.int32)
