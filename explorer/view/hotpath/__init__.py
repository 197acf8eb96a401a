"""Hot paths as page, picture, chart and live view; knows the model alone, no JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.model.results.hot_paths import HotPaths
from explorer.view.chart import Table
from explorer.view.figure import Figure
from explorer.view.hotpath.html import fragment, tables
from explorer.view.hotpath.link import LiveHotPaths, link_to
from explorer.view.hotpath.picture import figure
from explorer.view.interface import FigureView, View
from explorer.view.session import in_kernel

__all__ = ["AutoCompileView", "HotPathsView"]


class AutoCompileView(View[LiveHotPaths]):
    """What hot paths have done by now; where a kernel runs, a click opens the capture of a function."""

    def title(self, value: LiveHotPaths) -> str:
        return "hot paths"

    def html(self, value: LiveHotPaths) -> str:
        return fragment(value.report())

    def output(self, value: LiveHotPaths) -> dict[str, Any]:
        return {"text/html": fragment(value.report(), link_to(value).id if in_kernel() else "")}


class HotPathsView(FigureView[HotPaths]):
    """Each hot function with the curve of its calls, and why others stay as they are written."""

    def title(self, value: HotPaths) -> str:
        return "hot paths"

    def html(self, value: HotPaths) -> str:
        return fragment(value)

    def output(self, value: HotPaths) -> dict[str, Any]:
        return {"text/html": fragment(value)}

    def figure(self, value: HotPaths) -> Figure:
        return figure(value)

    def description(self, value: HotPaths) -> str:
        return value.headline

    def tables(self, value: HotPaths) -> Sequence[Table]:
        return tables(value)
