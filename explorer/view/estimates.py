"""How estimates of kernels are shown: a sentence, and a table."""

from __future__ import annotations

from html import escape

from explorer.model.results.estimates import PEAKS, Estimates
from explorer.model.units import count_text, duration_text, least_duration_text, share_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_HEAD = ("kernel", "line", "estimated", "of all", "runs", "by")


class EstimatesView(View[Estimates]):
    """A sentence, and a table."""

    def title(self, value: Estimates) -> str:
        return "estimated times"

    def html(self, value: Estimates) -> str:
        table = html_table(Table("what each kernel is expected to take", _HEAD, _rows(value)), is_open=True)
        return f'<div class="explorer-static"><p>{escape(headline(value))}</p>{table if value else ""}</div>'


def headline(estimates: Estimates) -> str:
    """What all of them are expected to take, and by whom."""
    if not estimates:
        return "Nothing is estimated: the program was compiled for what is here, where it can be measured."
    unknown = count_text(estimates.unknown, "kernel")
    more = f"; {unknown} besides, of which nothing is known" if estimates.unknown else ""
    of = count_text(len(estimates), "kernel")
    return f"Estimated {estimates.total} for {of}, by {estimates.by}{more}. Nothing is measured."


def _rows(estimates: Estimates) -> list[tuple[str, ...]]:
    total = estimates.seconds or 1.0
    return [
        (
            row.node.name,
            str(row.node.place.line) if row.node.place else "",
            f"≥ {least_duration_text(row.seconds)}" if row.by == PEAKS else duration_text(row.seconds),
            share_text(row.seconds / total),
            f"{row.runs:g}",
            row.by,
        )
        for row in estimates
    ]


def estimates_text(estimates: Estimates) -> str:
    """The sentence, and a line for each kernel."""
    rows = [_HEAD, *_rows(estimates)] if estimates else []
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))] if rows else []
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([headline(estimates), *lines])
