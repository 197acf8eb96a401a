"""How sizes that vary are served, as HTML that is complete as it stands; a script gives it the page's theme."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from html import escape
from pathlib import Path

from explorer.analysis.padding_summary import Obstacle, binary_rows, dimensions_text, facts, obstacles, size_rows
from explorer.files.disk import read_text
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.units import count_text
from explorer.view.chart import Table, html_table
from explorer.view.findings.text_parts import code_html
from explorer.view.padding.picture import grid_html, plots_html
from explorer.view.scripts import bundle

_STATIC = Path(__file__).parents[1] / "static"
_OPEN = 4  # obstacles that are unfolded
_MOST = 200  # rows of a table
_WISHES = {
    "auto": "pads where it is proven and worthwhile",
    "pad": "pads, or else is an error",
    "specialise": "a binary for each size",
}


@cache
def _style() -> str:
    return read_text(_STATIC / "hotpath.css").strip()


def fragment(report: DynamicReport) -> str:
    """The HTML of one output."""
    return (
        '<div class="explorer-hot explorer-padding" data-lm-suppress-shortcuts="true">'
        f"<style>{_style()}</style>{content(report)}</div>"
        f'<script type="module">{bundle("hotpath")}</script>'
    )


def content(report: DynamicReport) -> str:
    """All of it but style and script."""
    blocking = obstacles(report)
    blocks = "".join(_obstacle(each, number < _OPEN) for number, each in enumerate(blocking))
    rows = "".join(_fact(name, code_html(text)) for name, text in facts(report) if name != "can be")
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
    equation = _fact("equation", equations) if first.equation else ""
    cure = _fact("cure", code_html(first.hint), " xf-cure") if first.hint else ""
    place = f'<span class="hp-where" data-line="{first.line}">{escape(obstacle.place)}</span>' if obstacle.place else ""
    return (
        f'<details class="xf-one xf-warning"{" open" * is_open}><summary><span class="hp-state">'
        f'<b aria-hidden="true">✖</b> prevents it</span> <span class="xf-what">{code_html(obstacle.reason)}</span> '
        f'<span class="xf-place"><span class="pd-place">{escape(first.place)}</span></span></summary>'
        f'<div class="xf-body">{line}{equation}{cure}{_fact("where", place) if place else ""}</div></details>'
    )


def tables(report: DynamicReport) -> list[Table]:
    """The binaries, and the sizes that were padded."""
    result: list[Table] = []
    if report.binaries:
        result.append(_table("the binaries", binary_rows(report)))
    if report.sizes:
        title = f"{count_text(len(report.sizes), 'size')} that {'was' if len(report.sizes) == 1 else 'were'} padded"
        result.append(_table(title, size_rows(report, report.sizes)))
    return result


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> Table:
    head, *body = rows
    left = len(body) - _MOST
    return Table(title, head, body[:_MOST], f"and {left:,} more: to_frame() has them" if left > 0 else "")


def _fact(name: str, html: str, kind: str = "") -> str:
    return f'<div class="xf-fact{kind}"><b>{name}</b> <span>{html}</span></div>'
