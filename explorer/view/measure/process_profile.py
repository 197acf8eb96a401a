"""How the profiles of many processes are shown: a sentence, who waits, and the instructions that differ."""

from __future__ import annotations

from html import escape

import numpy as np

from explorer.analysis.profile.views import headline
from explorer.model.results.process_profile import ProcessProfile
from explorer.model.units import duration_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_PROCESSES = _OPS = 100  # rows of a table that somebody reads
_HEAD = ("process", "a call", "computes", "waits in collectives, inferred")
_OP_HEAD = ("instruction", "line", "in most processes", "longest", "in process", "processes")


class ProcessProfileView(View[ProcessProfile]):
    """A sentence, and two tables."""

    def title(self, value: ProcessProfile) -> str:
        return f"{value.function} in {len(value.processes):,} processes"

    def html(self, value: ProcessProfile) -> str:
        processes = Table("Processes, who waits most first", _HEAD, process_rows(value)[:_PROCESSES])
        ops = Table("Instructions, the longest first", _OP_HEAD, op_rows(value)[:_OPS])
        notes = "".join(f"<p>{escape(note)}</p>" for note in value.notes)
        tables = html_table(processes, is_open=True) + html_table(ops, is_open=True)
        return f'<div class="explorer-static"><p>{escape(headline(value))}.</p>{tables}{notes}</div>'


def process_rows(profile: ProcessProfile) -> list[tuple[str, ...]]:
    """A row for each process, who waits most first."""
    waiting, own = profile.waiting, profile.own
    return [
        (
            profile.processes[at],
            duration_text(float(profile.calls[at])),
            duration_text(float(own[at])),
            duration_text(float(waiting[at])),
        )
        for at in map(int, np.argsort(-waiting, kind="stable"))
    ]


def op_rows(profile: ProcessProfile) -> list[tuple[str, ...]]:
    """A row for each instruction."""
    rows: list[tuple[str, ...]] = []
    for op, seconds in zip(profile.ops, profile.seconds, strict=True):
        longest = int(np.nanargmax(seconds))
        place = f"{op.file}, line {op.line}" if op.file else "–"
        middle, most = float(np.nanmedian(seconds)), float(seconds[longest])
        figures = duration_text(middle), duration_text(most), profile.processes[longest]
        rows.append((op.name, place, *figures, f"{int((~np.isnan(seconds)).sum()):,} of {len(profile.processes):,}"))
    return rows


def process_profile_text(profile: ProcessProfile) -> str:
    """The sentence, and a line for each of the processes that wait most."""
    rows = [_HEAD, *process_rows(profile)[:20]]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([f"{headline(profile)}.", *lines, *profile.notes])
