"""What loops at the top of cells and scripts do: as functions, what of it stays as it is written, and the stream."""

from __future__ import annotations

from html import escape

from explorer.model.results.hot_paths import HotPaths, RepeatedSequence
from explorer.model.units import count_text
from explorer.view.chart import Table

_ROWS = 24  # of repeats, those that cover most of the stream


def proposal(paths: HotPaths, name: str) -> str:
    """The function that stands for statements of a loop, as it may be pasted; empty if `name` is another function."""
    made = next((one for one in paths.proposed if one.name == name), None)
    if made is None:
        return ""
    where = f"{paths.place(made.file, made.first_line)}{f' to {made.last_line}' * (made.last_line > made.first_line)}"
    return (
        f'<div class="xf-fact"><b>made of</b> <span>the loop at {escape(where)}; as a function to paste:</span></div>'
        f'<pre class="hp-made">{escape(made.text)}</pre>'
    )


def loop_tables(paths: HotPaths) -> list[Table]:
    """The statements that run as they are written, and the stream of single operations folded into repeats."""
    left = [(paths.place(one.file, one.line), one.reason, one.cure) for one in paths.left]
    repeats = sorted(paths.repeats, key=_covered, reverse=True)
    rows = [(f"{one.count:,} ×", count_text(len(one.operations), "operation"), one.name, _where(paths, one))
            for one in repeats[:_ROWS]]  # fmt: skip
    share = sum(map(_covered, repeats)) / paths.operations if paths.operations else 0.0
    until = f"the first {count_text(paths.operations, 'single operation')}, before anything ran compiled"
    tables = [
        Table(f"{count_text(len(left), 'statement')} of loops left as written", ("where", "why", "cure"), left),
        Table(f"{until}: {share:.0%} of them are repeats", ("times", "how long", "operations", "where"), rows),
    ]
    return [table for table in tables if table.rows]


def _covered(repeat: RepeatedSequence) -> int:
    return repeat.count * len(repeat.operations)


def _where(paths: HotPaths, repeat: RepeatedSequence) -> str:
    where = paths.place(repeat.file, repeat.first_line)
    return where + f" to {repeat.last_line}" * (repeat.last_line > repeat.first_line)
