"""How often the body of a loop runs, where the stage's text says so."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.model.graph import Graph

__all__ = ["trips"]

_LOOPS = ("while", "scan", "stablehlo.while")
_XLA = re.compile(r'known_trip_count[\\"]*:\{[\\"]*n[\\"]*:[\\"]*(\d+)')
_SCAN = re.compile(r"\blength=(\d+)")
_FAR = 40  # lines of text that an equation's parameters may take


def trips(graph: Graph, text: str) -> dict[int, int]:
    """The number of iterations of each loop of a graph, by the loop's node.

    XLA writes what it found out as `known_trip_count`, a scan says its `length`.
    """
    loops = {code for code, op in enumerate(graph.ops) if op in _LOOPS}
    if not loops:
        return {}
    nodes = [node for node, op in enumerate(graph.op.tolist()) if op in loops and graph.line[node] >= 0]
    lines = text.split("\n") if nodes else []
    found: dict[int, int] = {}
    for node in nodes:
        count = _count(lines, int(graph.line[node]), graph.ops[int(graph.op[node])])
        if count > 1:
            found[node] = count
    return found


def _count(lines: Sequence[str], line: int, op: str) -> int:
    if op == "while":
        known = _XLA.search(lines[line]) if line < len(lines) else None
        return int(known[1]) if known else 0
    if op == "scan":
        # The parameters are in the order of their names, the body among them: the scan's own stand least indented.
        own = [text for text in lines[line : line + _FAR] if (found := _SCAN.search(text)) and found]
        indent = min((len(text) - len(text.lstrip()) for text in own), default=0)
        for text in own:
            if len(text) - len(text.lstrip()) == indent:
                return int(_SCAN.findall(text)[-1])
    return 0
