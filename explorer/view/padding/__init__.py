"""View of how an executable serves sizes that vary: page, figure and tables."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from explorer.analysis.padding_summary import Obstacle, binary_rows, dimensions_text, facts, obstacles, size_rows
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.units import count_text
from explorer.view.chart import Table, html_table
from explorer.view.figure import Figure
from explorer.view.findings.text_parts import code_html
from explorer.view.hotpath.html import fact, style
from explorer.view.interface import FigureView
from explorer.view.padding.picture import figure, grid_html, plots_html
from explorer.view.page import bundle

_OPEN = 4  # unfolded obstacles
_MAX_ROWS = 200
_WISHES = {
    "auto": "pads where it is proven and worthwhile",
    "pad": "pads, or raises an error",
    "specialise": "a binary for each size",
}


__all__ = ["DynamicReportView", "content"]


class DynamicReportView(FigureView[DynamicReport]):
    """Verdict, obstacles to padding or its cost at each size, and the binaries."""

    def title(self, value: DynamicReport) -> str:
        return f"sizes of {value.function}"

    def html(self, value: DynamicReport) -> str:
        return fragment(value)

    def output(self, value: DynamicReport) -> dict[str, Any]:
        return {"text/html": fragment(value)}

    def figure(self, value: DynamicReport) -> Figure:
        return figure(value)

    def description(self, value: DynamicReport) -> str:
        return f"{value.function}: {value.headline}"

    def tables(self, value: DynamicReport) -> Sequence[Table]:
        return tables(value)


def fragment(report: DynamicReport) -> str:
    return (
        '<div class="explorer-hot explorer-padding" data-lm-suppress-shortcuts="true">'
        f"<style>{style()}</style>{content(report)}</div>"
        f'<script type="module">{bundle("hotpath")}</script>'
    )


def content(report: DynamicReport) -> str:
    blocking = obstacles(report)
    blocks = "".join(_obstacle(each, number < _OPEN) for number, each in enumerate(blocking))
    rows = "".join(fact(name, code_html(text)) for name, text in facts(report) if name != "can be")
    fact_rows = f'<div class="pd-facts">{rows}</div>' if rows else ""
    faults = "".join(f'<p class="xf-fault">{code_html(fault)}</p>' for fault in report.faults)
    shown = "".join(
        f'<div class="hp-rest">{html_table(each, is_open=number == 0)}</div>'
        for number, each in enumerate(tables(report))
    )
    drawn = f"{plots_html(report)}{grid_html(report)}"
    return f'{_head(report)}<div class="xf-list">{blocks}</div>{drawn}{fact_rows}{shown}{faults}'


def _head(report: DynamicReport) -> str:
    subtitle = [
        f"<code>{escape(report.function)}</code>",
        escape(dimensions_text(report)),
        f"dynamic=<code>{report.choice!r}</code>: {_WISHES[report.choice]}",
    ]
    what = "".join(f"<span>{part}</span>" for part in subtitle if part)
    headline = f'<p class="hp-headline">{code_html(report.headline)}</p>'
    return f'<div class="hp-head">{headline}<p class="hp-sub">{what}</p></div>'


def _obstacle(obstacle: Obstacle, is_open: bool) -> str:
    first = obstacle.first
    line = (
        f'<pre class="xf-line"><span class="xf-number">{first.line}</span> {escape(first.text)}</pre>'
        if first.text
        else ""
    )
    equations = f"<code>{escape(first.equation)}</code>" + (
        f" and {obstacle.count - 1:,} more of this line" if obstacle.count > 1 else ""
    )
    equation = fact("equation", equations) if first.equation else ""
    cure = fact("fix", code_html(first.hint), " xf-cure") if first.hint else ""
    place = f'<span class="hp-where" data-line="{first.line}">{escape(obstacle.place)}</span>' if obstacle.place else ""
    return (
        f'<details class="xf-one xf-warning"{" open" * is_open}><summary><span class="hp-state">'
        f'<b aria-hidden="true">✖</b> prevents it</span> <span class="xf-what">{code_html(obstacle.reason)}</span> '
        f'<span class="xf-place"><span class="pd-place">{escape(first.place)}</span></span></summary>'
        f'<div class="xf-body">{line}{equation}{cure}{fact("where", place) if place else ""}</div></details>'
    )


def tables(report: DynamicReport) -> list[Table]:
    result: list[Table] = []
    if report.binaries:
        result.append(_table("the binaries", binary_rows(report)))
    if report.sizes:
        title = f"{count_text(len(report.sizes), 'size')} that {'was' if len(report.sizes) == 1 else 'were'} padded"
        result.append(_table(title, size_rows(report, report.sizes)))
    return result


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> Table:
    head, *body = rows
    left = len(body) - _MAX_ROWS
    return Table(title, head, body[:_MAX_ROWS], f"and {left:,} more: to_frame() has them" if left > 0 else "")
