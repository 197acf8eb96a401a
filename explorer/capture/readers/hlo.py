"""HLO text → Graph: before or after optimisation, from any backend, of any age.

The text is read rather than the proto because it is what the user sees, what a dump holds, and what a capture
keeps; its line numbers link text and graph. Every computation becomes a group under the node that calls it.

What XLA prints is read line by line, with patterns (`hlo_lines.py`). Where a line is anything else, as people write it,
the tokens take over (`hlo_written.py`) until a line begins again; what they can't read is kept as unread.
"""

from __future__ import annotations

from dataclasses import replace

from explorer.analysis.cost.cost import cost
from explorer.capture.readers.hlo_lines import LineReader
from explorer.capture.readers.hlo_rows import Rows
from explorer.capture.readers.hlo_written import WrittenReader
from explorer.capture.readers.text_lines import TextLines
from explorer.errors import UnreadableTextError
from explorer.model.graph import Graph


def read_hlo(text: str) -> Graph:
    """Read an HLO module's text into a graph.

    Args:
        text: What `jax.stages.Compiled.as_text()` gives, a file of an XLA dump, or some lines of one.

    Returns:
        One node per instruction of every computation, in the text's order. Its `unread` are the lines that should be
        instructions but could not be read.

    Raises:
        UnreadableTextError: The text holds no HLO instruction at all.
    """
    graph = _read(text)
    if not graph.names:
        first = text.strip()[:60].partition("\n")[0]
        raise UnreadableTextError(
            f"this text holds no HLO instruction: it starts with {first!r}." if first else "this text is empty."
        )
    return replace(graph, measure=cost)


def _read(text: str) -> Graph:
    lines, rows = TextLines(text), Rows()
    printed, written = LineReader(rows), WrittenReader(lines, rows)
    first = 0
    while block := lines.block(first):
        at = 0
        while at < len(block):
            line = block[at]
            if not line or printed.opens(line):
                at += 1
            elif line == "}" and rows.group >= 0:
                rows.close()
                at += 1
            elif (after := printed.read(block, at, first)) > at:
                at = after
            else:
                at = written.read_line(first + at) - first
        first += at
    return rows.graph()
