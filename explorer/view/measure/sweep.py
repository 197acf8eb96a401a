"""How sweeps are shown."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.results.sweep import Sweep
from explorer.view.chart import Chart, Table
from explorer.view.interface import FigureView
from explorer.view.measure.sweep_chart import sweep_chart
from explorer.view.measure.sweep_picture import described, picture, tables

__all__ = ["SweepView"]


class SweepView(FigureView[Sweep]):
    """The chart with its tables."""

    def title(self, value: Sweep) -> str:
        return f"sweep of {value.function}"

    def description(self, value: Sweep) -> str:
        return described(value)

    def tables(self, value: Sweep) -> Sequence[Table]:
        return tables(value)

    def svg(self, value: Sweep) -> str:
        return picture(value)

    def chart(self, value: Sweep) -> Chart:
        return sweep_chart(value)
