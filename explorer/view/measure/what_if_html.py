"""A what-if as HTML that needs no script: the picture, and behind each row what the compiler did otherwise."""

from __future__ import annotations

from html import escape

from explorer.model.results.what_if import Variant, WhatIf
from explorer.view.chart import Chart
from explorer.view.diff import facts
from explorer.view.measure.what_if_picture import described, picture, tables

__all__ = ["fragment"]

_LARGE = 6_000  # instructions: of more, what differs is looked up when it is asked for, not whenever this is shown
_MOST = 24  # rows with what differs


def fragment(what_if: WhatIf) -> str:
    """The HTML of one output."""
    static = Chart(None, f"what if: {what_if.function}", picture(what_if), described(what_if), tables(what_if)).static
    rows = "".join(_row(row, what_if.plain) for row in what_if.variants[:_MOST])
    return f'<div class="explorer-static">{static}{rows}</div>'


def _row(row: Variant, plain: Variant) -> str:
    told = row.verdict(plain)
    notes = "".join(f"<p>{escape(note)}</p>" for note in row.notes)
    return (
        f"<details><summary><b>{escape(row.name)}</b>: {escape(told)}</summary>"
        f"{notes}{'' if row.error else _difference(row)}</details>"
    )


def _difference(row: Variant) -> str:
    opens = f'<p><code>["{escape(row.name)}"].diff</code> opens both programs side by side.</p>'
    if row.capture is None or len(row.capture.hlo.graph) > _LARGE:
        return opens
    return facts(row.diff, ("plain", row.name)) + opens
