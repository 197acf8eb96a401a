"""How memory use is shown."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.results.memory_use import MemoryUse
from explorer.view.chart import Chart, Table
from explorer.view.interface import FigureView
from explorer.view.measure.memory_chart import memory_chart
from explorer.view.measure.memory_picture import described, picture, tables

__all__ = ["MemoryView"]


class MemoryView(FigureView[MemoryUse]):
    """The chart with its tables."""

    def title(self, value: MemoryUse) -> str:
        return f"memory of {value.function}"

    def description(self, value: MemoryUse) -> str:
        return described(value)

    def tables(self, value: MemoryUse) -> Sequence[Table]:
        return tables(value)

    def svg(self, value: MemoryUse) -> str:
        return picture(value)

    def chart(self, value: MemoryUse) -> Chart:
        return memory_chart(value)
