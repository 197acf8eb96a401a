"""How rooflines are shown."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.results.roofline import Roofline
from explorer.view.chart import Chart, Table
from explorer.view.interface import FigureView
from explorer.view.measure.roofline_chart import roofline_chart
from explorer.view.measure.roofline_picture import described, picture, tables

__all__ = ["RooflineView"]


class RooflineView(FigureView[Roofline]):
    """The chart with its tables."""

    def title(self, value: Roofline) -> str:
        return f"roofline of {value.function}"

    def description(self, value: Roofline) -> str:
        return described(value)

    def tables(self, value: Roofline) -> Sequence[Table]:
        return tables(value)

    def svg(self, value: Roofline) -> str:
        return picture(value)

    def chart(self, value: Roofline) -> Chart:
        return roofline_chart(value)
