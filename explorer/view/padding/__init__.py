"""How an executable serves sizes that vary, as page, picture and chart; knows the model alone, no JAX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from explorer.model.results.dynamic_report import DynamicReport
from explorer.view.chart import Table
from explorer.view.figure import Figure
from explorer.view.interface import FigureView
from explorer.view.padding.html import fragment, tables
from explorer.view.padding.picture import figure

__all__ = ["DynamicReportView"]


class DynamicReportView(FigureView[DynamicReport]):
    """The verdict, what prevents padding or what padding costs at each size, and the binaries."""

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
