"""How the peaks of a machine are shown: as text, and as a table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from explorer.model.results.roofline import Peaks
from explorer.model.units import bytes_text, duration_text, rate_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View


class PeaksView(View[Peaks]):
    """A table of the figures."""

    def title(self, value: Peaks) -> str:
        return f"peaks of {value.device}"

    def html(self, value: Peaks) -> str:
        table = html_table(Table(f"{value.device}: its peaks", ("of", "figures"), peaks_rows(value)), is_open=True)
        return (
            f'<div class="explorer-static">{table}{"".join(f"<p>{escape(note)}</p>" for note in value.warnings)}</div>'
        )


def peaks_rows(peaks: Peaks) -> list[tuple[str, str]]:
    """What the figures are of, empty where that is the same as above, and the figures."""
    rows = [("memory", rate_text(peaks.bandwidth, "B"))]
    if peaks.fresh:
        rows.append(("", f"{rate_text(peaks.fresh, 'B')} into memory not used before"))
    rows += [("", f"{rate_text(rate, 'B')} within {bytes_text(size)}") for size, rate in sorted(peaks.caches.items())]
    for title, rates in (("matmul", peaks.matmul), ("arithmetic", peaks.fma)):
        rows += [(title, ", ".join(f"{dtype} {rate_text(rate)}" for dtype, rate in rates.items()))] if rates else []
    if peaks.special:
        rows.append(("functions", ", ".join(f"{op} {rate_text(rate, '')}" for op, rate in peaks.special.items())))
    if not peaks.overhead and not peaks.call_overhead:  # published figures have none
        return rows
    overheads = f"{duration_text(peaks.overhead)} a kernel, {duration_text(peaks.call_overhead)} a call"
    return [*rows, ("overhead", overheads)]


def peaks_text(peaks: Peaks) -> str:
    """The figures as text."""
    rows: Sequence[str] = [f"  {of:<12}{figures}" for of, figures in peaks_rows(peaks)]
    return "\n".join([peaks.device, *rows, *(f"  note: {note}" for note in peaks.warnings)])
