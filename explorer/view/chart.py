"""Plotly charts with a static picture, a table and text as fallbacks.

JupyterLab shows the plotly chart; a saved notebook opened elsewhere, a code host or a mail shows the picture.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from explorer.files.disk import write_text
from explorer.view.page import document
from explorer.view.session import PLOTLY

_FIGURE = re.compile(r"[≈±<>+−-]? ?\d[\d.,]*(?:$|[%×]| (?:…|±|[kMGTPEnµm]?[sBgW]\b|[kMGTPE]?FLOPs?\b))")


@dataclass(frozen=True)
class Table:
    """A chart's figures as a table: its title, the names of its columns, and its rows as text."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    more: str = ""


@dataclass(frozen=True)
class Chart:
    """Plotly figure with fallbacks for readers without scripts.

    Args:
        figure: The `plotly.graph_objects.Figure`.
        title: Title.
        svg: Static picture.
        description: The picture in words.
        tables: The data as tables.
        text: Printed text, without times or addresses.

    Example:
        >>> Chart(None, "timeline", svg="<svg/>", text="Chart(timeline: 2 compiles)")
        Chart(timeline: 2 compiles)
    """

    figure: Any
    title: str
    svg: str
    description: str = ""
    tables: Sequence[Table] = field(default=())
    text: str = ""

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the chart as one self-contained page with plotly in it (5 MB), and return its path."""
        drawn: str = self.figure.to_html(full_html=False, include_plotlyjs=True)
        tables = "".join(html_table(table) for table in self.tables)
        return write_text(path, document(f"{self.title} – Explorer", drawn + tables))

    @property
    def static(self) -> str:
        """Return the picture with its tables as HTML that needs no script."""
        return static_html(self.svg, self.description or self.title, self.tables)

    @property
    def bundle(self) -> dict[str, Any]:
        """Return the MIME bundle: plotly's figure, HTML with the picture and tables, and text. A frontend shows the
        first type it supports.
        """
        return {PLOTLY: json.loads(self.figure.to_json()), "text/html": self.static, "text/plain": repr(self)}

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return self.bundle

    def __repr__(self) -> str:
        return self.text or f"Chart({self.title})"


def static_html(svg: str, description: str, tables: Sequence[Table], between: str = "") -> str:
    """Return a picture with its description and tables as HTML that sanitizers don't change.

    Args:
        between: HTML between the picture and the tables.
    """
    # In an untrusted notebook JupyterLab removes inline SVG, and keeps an image with a data URI.
    image = base64.b64encode(svg.encode()).decode()
    shown = f'<img alt="{escape(description)}" src="data:image/svg+xml;base64,{image}">'
    return shown + between + "".join(map(html_table, tables))


def html_table(table: Table, is_open: bool = False) -> str:
    """Return a table as HTML that unfolds under its title; it starts folded unless `is_open`."""

    # A notebook aligns all cells to the right, which suits only figures. Folded tables have no style: a style
    # for each cell is much of a notebook with many views.
    def is_words(i: int) -> bool:
        return is_open and not any(_FIGURE.match(row[i]) for row in table.rows if i < len(row))

    styles = [' style="text-align:left"' * is_words(i) for i in range(len(table.head))]

    def cells(kind: str, row: Sequence[str]) -> str:
        styled = zip(row, styles, strict=False)  # a row may be shorter
        return f"<tr>{''.join([f'<{kind}{style}>{escape(cell)}</{kind}>' for cell, style in styled])}</tr>"

    body = "".join(cells("td", row) for row in table.rows)
    more = f"<p>{escape(table.more)}</p>" if table.more else ""
    return (
        f"<details{' open' * is_open}><summary>{escape(table.title)}</summary>"
        f"<table><thead>{cells('th', table.head)}</thead><tbody>{body}</tbody></table>{more}</details>"
    )
