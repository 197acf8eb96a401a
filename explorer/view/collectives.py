"""How the collectives of a program are shown: a sentence, and a table."""

from __future__ import annotations

from html import escape

from explorer.analysis.collectives import group_text
from explorer.model.results.collectives import Collective, Collectives
from explorer.model.units import bytes_text, count_text, least_duration_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_HEAD = ("line", "collective", "along", "devices", "given", "sent", "times", "meanwhile", "estimated")


class CollectivesView(View[Collectives]):
    """A sentence, and a table."""

    def title(self, value: Collectives) -> str:
        return "collectives"

    def html(self, value: Collectives) -> str:
        rows = Table("what each device sends", _HEAD, collective_rows(value))
        table = html_table(rows, is_open=True) if value else ""
        return f'<div class="explorer-static"><p>{escape(headline(value))}</p>{table}</div>'


def headline(collectives: Collectives) -> str:
    """What all of them send."""
    where = f"between {collectives.devices} devices" + (f" ({_mesh(collectives)})" if collectives.mesh else "")
    if not collectives:
        devices = f"{collectives.devices} devices" if collectives.devices > 1 else "one device"
        return f"No collectives: a program of {devices}."
    return f"{count_text(len(collectives), 'collective')} {where}; each sends {bytes_text(collectives.wire)} or more."


def _mesh(collectives: Collectives) -> str:
    return " × ".join(f"{name} {size}" for name, size in collectives.mesh)


def collective_rows(collectives: Collectives) -> list[tuple[str, ...]]:
    """One for each."""
    return [_row(row) for row in collectives]


def _row(row: Collective) -> tuple[str, ...]:
    meanwhile = count_text(len(row.overlaps), "kernel") if row.overlaps else "waits"
    seconds = f"≥ {least_duration_text(row.seconds * row.runs)}" if row.seconds is not None else "not known"
    along = ", ".join(row.axes) or group_text(row.groups)
    times = f"{row.runs:g}"
    line = f"{row.line}  {row.text[:40]}" if row.line else "no line"
    sizes = bytes_text(row.bytes), bytes_text(row.wire)
    return (line, row.kind, along, str(row.size), *sizes, times, meanwhile, seconds)


def collectives_text(collectives: Collectives) -> str:
    """The sentence, and a line for each."""
    rows = [_HEAD, *collective_rows(collectives)] if collectives else []
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))] if rows else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([headline(collectives), *lines])
