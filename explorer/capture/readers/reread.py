"""The attributes of a graph whose file has none, from its stage's text: captures of version 0.1.0 were saved so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.hlo_attributes import read_header
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.errors import UnreadableTextError
from explorer.model.attributes import AttributeColumns, Attributes, tabulate
from explorer.model.graph import Graph

# An equation of a jaxpr as the reader writes it: `b:f32[8] c:f32[] = primitive[parameters] a 2.0:f32[]`.
_EQUATION = re.compile(r"\s*((?:\w++:\S++ ?+)++)= (.*)")
_RETURNED = re.compile(r"(\s*)in \((.*)\) \}")
_LENGTH = re.compile(r"^scan\[.*?\blength=(\d+)")
_VARIABLE = re.compile(r"(?<![\w:.])[a-z]+(?![\w:\[=.(])")


def with_attributes_of(graph: Graph, text: str) -> Graph:
    """The graph with the attributes that `text`, from which it was read, tells of; they are read when asked for."""

    def read() -> AttributeColumns:
        try:
            again = _read(text, graph)
        except UnreadableTextError:  # a graph without a node
            return tabulate([], [])
        # Of another text than the graph's the nodes are others; then nothing is known of them.
        return again if len(again.start) == len(graph) + 1 else tabulate([0] * len(graph), [()])

    module = read_header(text.partition("\n")[0])
    return replace(graph, attributes=module, node_attributes=Attributes(read))


def _read(text: str, graph: Graph) -> AttributeColumns:
    if " { lambda " in text[:200]:
        return _jaxpr_columns(text.split("\n"), graph)
    read = read_stablehlo if "func.func" in text else read_hlo
    return read(text).attribute_table.columns


def _jaxpr_columns(lines: Sequence[str], graph: Graph) -> AttributeColumns:
    """`returned`, a scan's `length`, and `written`: an equation without the names of its variables."""
    rows: list[dict[str, str]] = [{} for _ in range(len(graph))]
    # By variable: the node that makes it, and as which of its results.
    node_of = {name: (node, 0) for node, name in enumerate(graph.names)}
    line_of: list[int] = graph.line.tolist()
    for node, at in enumerate(line_of):
        equation = _EQUATION.match(lines[at]) if 0 <= at < len(lines) else None
        if equation is not None:
            for result, variable in enumerate(equation[1].split()):
                node_of[variable.partition(":")[0]] = node, result
            rows[node] = _equation_attributes(equation[2], node_of)
    for line in lines:
        if returned := _RETURNED.fullmatch(line):
            _note_returned(returned[2].split(", "), node_of, rows)
    return tabulate(np.arange(len(rows), dtype=np.int32), [tuple(row.items()) for row in rows])


def _equation_attributes(text: str, node_of: Mapping[str, tuple[int, int]]) -> dict[str, str]:
    """Of an equation's text right of its `=`."""
    attributes = {"written": _VARIABLE.sub("_", text)}
    if length := _LENGTH.search(text):
        attributes["length"] = length[1]
    results = [node_of[name][1] for name in _VARIABLE.findall(text) if name in node_of]
    if any(results):
        attributes["operand_results"] = ",".join(map(str, results))
    return attributes


def _note_returned(
    names: Sequence[str], node_of: Mapping[str, tuple[int, int]], rows: Sequence[dict[str, str]]
) -> None:
    for position, name in enumerate(names):
        if name in node_of:
            node, result = node_of[name]
            own = f"{position}={result}" if result else str(position)
            rows[node]["returned"] = ",".join(filter(None, (rows[node].get("returned", ""), own)))
