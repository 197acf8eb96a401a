"""What is drawn of sizes that were padded: how long a call took and how much of it is padding, against the size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import prod

from explorer.analysis.padding_summary import bucket_text, sizes_text, total_waste, waste_of
from explorer.model.results.dynamic_report import DynamicReport, PaddedSizes
from explorer.model.units import count_text, duration_text, share_text
from explorer.view.scale import Scale, scale_of, without_crowding

_ROOM, _LETTER = 300.0, 7.0  # pixels across a plot, and of a letter below it
_MOST = 400  # points: more would lie on each other


@dataclass(frozen=True)
class Plot:
    """One figure of each size that was padded.

    Args:
        title: What it is.
        x, y: Its scales.
        points: The sizes.
        values: What each has.
        hover: What each says.
    """

    title: str
    x: Scale
    y: Scale
    points: Sequence[PaddedSizes]
    values: Sequence[float]
    hover: Sequence[str]


def elements(row: PaddedSizes) -> float:
    """Where sizes stand across: by the product of their dimensions."""
    return float(prod(row.sizes.values()))


def across_title(report: DynamicReport) -> str:
    """What stands below: `batch × seq`."""
    return " × ".join(name for name, (least, _, most) in report.dimensions.items() if least < most)


def bucket_places(report: DynamicReport) -> list[tuple[float, str]]:
    """Where the padded binaries' buckets stand across, and what they are."""
    return [(float(prod(row.sizes.values())), bucket_text(row.sizes)) for row in report.binaries if row.is_padded]


def plots_of(report: DynamicReport) -> list[Plot]:
    """Time and padding against the size; none where nothing was padded."""
    rows = sorted(report.sizes, key=lambda row: -row.calls)[:_MOST]
    if not rows:
        return []
    buckets = [at for at, _ in bucket_places(report)]
    scale = scale_of([*map(elements, rows), *buckets], "{:,.0f}".format, most=5)
    x = without_crowding(list(zip(scale.ticks, scale.texts, strict=True)), scale, _ROOM, _LETTER)
    what = total_waste(report)[1]
    took, waste = [row.median_seconds for row in rows], [waste_of(row, what) for row in rows]
    waited = {row.is_waited for row in rows}
    until = "until it returned" if True not in waited else "until its results were there"
    hover = [_hover(row, what) for row in rows]
    whole = Scale(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), ("0%", "25%", "50%", "75%", "100%"))
    return [
        Plot(
            f"a call, median, {until}" + ", or it returned" * (len(waited) > 1),
            x,
            scale_of(took, duration_text, most=5),
            rows,
            took,
            hover,
        ),
        Plot(f"padding, part of the {what}", x, whole, rows, waste, hover),
    ]


def _hover(row: PaddedSizes, what: str) -> str:
    until = "" if row.is_waited else " until it returned"
    return (
        f"{sizes_text(row.sizes)} in {bucket_text(row.bucket)}: {duration_text(row.median_seconds)}{until}, "
        f"{share_text(waste_of(row, what))} padding, {count_text(row.calls, 'call')}"
    )


def plots_html(report: DynamicReport) -> str:
    """The plots as placed elements: a page that strips styles is left with the tables below, not with loose texts."""
    plots = plots_of(report)
    if not plots:
        return ""
    key = (
        f'<div class="hp-key"><span>across: {escape(across_title(report))}</span>'
        '<span><i class="hp-point hp-compiled"></i> one size</span>'
        '<span><i class="pd-line"></i> a bucket that is compiled</span></div>'
    )
    return f'<div class="pd-plots">{"".join(_plot(plot, report) for plot in plots)}</div>{key}'


def _plot(plot: Plot, report: DynamicReport) -> str:
    marks = [
        *(f'<i class="hp-tick" style="bottom:{plot.y.at(tick, 0, 100):.1f}%"><b>{text}</b></i>'
          for tick, text in zip(plot.y.ticks, plot.y.texts, strict=True)),
        *(f'<i class="pd-x" style="left:{plot.x.at(tick, 0, 100):.1f}%">{text}</i>'
          for tick, text in zip(plot.x.ticks, plot.x.texts, strict=True)),
        *(f'<i class="pd-bucket" style="left:{plot.x.at(at, 0, 100):.1f}%" title="bucket {escape(text)}"></i>'
          for at, text in bucket_places(report)),
        *(f'<i class="hp-point hp-compiled" style="left:{plot.x.at(elements(row), 0, 100):.1f}%;'
          f'bottom:{plot.y.at(value, 0, 100):.1f}%" title="{escape(hover)}"></i>'
          for row, value, hover in zip(plot.points, plot.values, plot.hover, strict=True)),
    ]  # fmt: skip
    title = escape(plot.title)
    label = escape(f"{plot.title}, of {count_text(len(plot.points), 'size')}; the table below has them")
    return (
        f'<div class="pd-plot"><p>{title}</p><div class="hp-plot" role="img" aria-label="{label}">'
        f"{''.join(marks)}</div></div>"
    )
