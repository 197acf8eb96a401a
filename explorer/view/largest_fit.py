"""How the largest size that fits is shown: a sentence, and every size that was compiled."""

from __future__ import annotations

import math
from html import escape

from explorer.model.results.targets import LargestFit, Trial
from explorer.model.units import bytes_text, duration_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View


class LargestFitView(View[LargestFit]):
    """A sentence, and a table."""

    def title(self, value: LargestFit) -> str:
        return f"the largest {value.dimension} of {value.function} on {value.device}"

    def html(self, value: LargestFit) -> str:
        rows = [_row(trial) for trial in value.trials]
        table = html_table(Table(self.title(value), _head(value), rows, more=_more(value)), is_open=True)
        return f'<div class="explorer-static"><p><b>{escape(value.headline)}</b></p>{table}</div>'


def largest_fit_text(value: LargestFit) -> str:
    """The sentence, and a line for each size."""
    rows = [_head(value), *(_row(trial) for trial in value.trials)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([value.headline, *(f"  {line}" for line in lines), _more(value)])


def _head(value: LargestFit) -> tuple[str, ...]:
    return (value.dimension, "fits", "memory", "compiled in", "why not")


def _row(trial: Trial) -> tuple[str, ...]:
    needed = "" if math.isnan(trial.needed) else bytes_text(trial.needed)
    return (f"{trial.size:,}", "yes" if trial.fits else "no", needed, duration_text(trial.seconds), trial.error)


def _more(value: LargestFit) -> str:
    return " · ".join([f"What decides: {value.basis}. Memory is of one device.", *value.notes])
