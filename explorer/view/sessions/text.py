"""A session as text: the sentences, then a line for each function."""

from __future__ import annotations

from math import isfinite
from typing import Protocol

from explorer.model.results.session import SessionReport, SessionRow
from explorer.model.text import cut_end
from explorer.model.units import bytes_text, count_text, duration_text

_FUNCTIONS = 40
_NAME = 28


class _Session(Protocol):
    def report(self) -> SessionReport: ...


def session_text(session: _Session, width: int = 100) -> str:
    return report_text(session.report(), width)


def report_text(report: SessionReport, width: int = 100) -> str:
    """`width` characters wide."""
    lines = [sentence.replace("`", "") for sentence in report.summary]
    if report.rows:
        lines += [
            "",
            f"{'function':<{_NAME}} {'compiled':>14} {'seconds':>9}  {'a call':>9} {'memory':>9}  what there is",
        ]
    lines += [line for row in report.rows[:_FUNCTIONS] for line in _lines(row, width)]
    if len(report.rows) > _FUNCTIONS:
        lines.append(f"and {count_text(len(report.rows) - _FUNCTIONS, 'more function')}")
    return "\n".join([*lines, *report.notes])


def _lines(row: SessionRow, width: int) -> list[str]:
    again = f" ({row.recompiles:,} again)" if row.recompiles else ""
    seconds = duration_text(row.seconds) if isfinite(row.seconds) else "–"
    run = duration_text(row.run) if isfinite(row.run) else ""
    memory = bytes_text(int(row.memory)) if isfinite(row.memory) else ""
    items = ", ".join(item.text for item in row.items)
    count = f"{row.compiles:,}{again}"
    line = f"{cut_end(row.name, _NAME):<{_NAME}} {count:>14} {seconds:>9}  {run:>9} {memory:>9}  {items}".rstrip()
    more = [f"    {row.place}" if row.place else "", f"    {row.why.replace('`', '')}" if row.why else ""]
    cure = [f"    cure: {row.cure.splitlines()[0]}"] if row.cure else []
    return [cut_end(text, width) for text in [line, *more, *cure] if text]
