"""How a sentence names lines of the source."""

from __future__ import annotations

from collections.abc import Iterable
from os.path import basename

from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.text import list_names


def line_text(capture: Capture, file: str, line: int) -> str:
    """`line 3`; of another file than the function's, `line 3 of layers.py`."""
    if file == capture.file:
        return f"line {line}"
    source = capture.sources.get(file)
    return f"line {line} of {source.label if source is not None else basename(file)}"


def lines_of(capture: Capture, graph: Graph, nodes: Iterable[int]) -> str:
    """`line 3`, `lines 3 and 7`, of the lines that nodes belong to; empty where none is known."""
    attribution = graph.attribution
    codes = {int(attribution.line[node]) for node in nodes}
    places = {(attribution.places[code].file, attribution.places[code].line) for code in codes if code >= 0}
    own = sorted(line for file, line in places if file == capture.file)
    others = [line_text(capture, file, line) for file, line in sorted(places) if file != capture.file]
    if not others:
        return f"line{'s' if len(own) > 1 else ''} {list_names([*map(str, own)])}" if own else ""
    return list_names([*(f"line {line}" for line in own), *others])
