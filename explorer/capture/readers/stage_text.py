"""Lines of a stage without locations, and the attributes of captures saved by version 0.1.0."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from explorer.capture.readers.hlo import read_hlo
from explorer.capture.readers.hlo_attributes import read_header
from explorer.capture.readers.stablehlo import read_stablehlo
from explorer.errors import UnreadableTextError
from explorer.model.attributes import AttributeColumns, Attributes, tabulate
from explorer.model.graph import Graph
from explorer.model.stage import Stage, WrittenLine

_METADATA = re.compile(r', metadata=\{(?:[^{}"]|"(?:[^"\\]|\\.)*")*\}')
_LOCATION = re.compile(r' loc\((?:#\w+|"(?:[^"\\]|\\.)*"|unknown)\)')
_NAME = re.compile(r"((?<=[%@])[\w.\-$]+|(?<=[(, ])[\w.\-]+(?=: ))")  # as MLIR and HLO write it, or a parameter's
_NAMED_VARIABLE = re.compile(r"((?<![\w=%.\[])[a-z]+(?=[:\s)]|$)(?!\[))")  # of a jaxpr
# Of HLO in its short form, which has no % before names: a word that is no opcode (`add(`) and no key (`calls=`).
_WORD = re.compile(r"((?<![\w.\-])[A-Za-z_][\w.\-]*+(?![(=]))")
_DEFINED = re.compile(r"\s*(?:ROOT |ENTRY )?([A-Za-z_][\w.\-]*+)(?: = | \(| \{)")
_HEAD = 50  # lines within which a text shows what it is


def written_lines(stage: Stage) -> tuple[WrittenLine, ...]:
    """Return the lines of a stage without tables and aliases of locations."""
    lines = [*_without_locations(stage.text.splitlines())]
    texts = [text for _, text in lines]
    split = _splitter(texts)
    of_module = _module_lines(texts)
    return tuple(
        WrittenLine(
            number, tuple(split(text)), text.startswith("in ") or text.lstrip()[:1] in ("", "}"), at in of_module
        )
        for at, (number, text) in enumerate(lines)
    )


def _splitter(texts: Sequence[str]) -> Callable[[str], list[str]]:
    """Return a function that splits a line into text and names, alternating."""
    if any("%" in text for text in texts[:_HEAD]):
        return _NAME.split
    if not any(text.startswith("HloModule") for text in texts[:_HEAD]):
        return _NAMED_VARIABLE.split
    names = {match[1] for text in texts if (match := _DEFINED.match(text))} - {"HloModule"}

    def split(text: str) -> list[str]:
        parts = [""]
        for at, piece in enumerate(_WORD.split(text)):
            if at % 2 and piece in names:
                parts += (piece, "")
            else:
                parts[-1] += piece
        return parts

    return split


def _without_locations(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    is_table = False
    for number, line in enumerate(lines):
        is_table = line == "FileNames" or (is_table and not line.endswith("{"))
        if not is_table and not line.startswith("#loc"):
            yield number, _LOCATION.sub("", _METADATA.sub("", line))


def _module_lines(texts: Sequence[str]) -> set[int]:
    headers = {at for at, text in enumerate(texts) if text.startswith(("HloModule", "module"))}
    is_mlir = bool(headers) and min(headers) < _HEAD and not texts[0].startswith("HloModule")
    # MLIR's module has an end of its own.
    return headers | {len(texts) - 1} if is_mlir and texts[-1] == "}" else headers


# Captures of version 0.1.0 were saved without attributes --------------------------------------------------------------

# An equation of a jaxpr as the reader writes it: `b:f32[8] c:f32[] = primitive[parameters] a 2.0:f32[]`.
_EQUATION = re.compile(r"\s*((?:\w++:\S++ ?+)++)= (.*)")
_RETURNED = re.compile(r"(\s*)in \((.*)\) \}")
_LENGTH = re.compile(r"^scan\[.*?\blength=(\d+)")
_VARIABLE = re.compile(r"(?<![\w:.])[a-z]+(?![\w:\[=.(])")


def with_attributes_of(graph: Graph, text: str) -> Graph:
    """Return the graph with attributes that are read from `text`, its source, at the first access."""

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
    """Return the attributes of nodes: `returned`, `operand_results`, a scan's `length`, and `written`.

    `written` is the equation after its `=`, with `_` in place of names.
    """
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
