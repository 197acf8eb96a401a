"""Memory as a chart: what is needed at each size, by use, with the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.results.memory_use import MemoryUse

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlMemoryViewer"]


class HtmlMemoryViewer:
    """Shows memory in notebooks. The parts load when something is shown first."""

    def chart(self, use: MemoryUse) -> Chart:
        from explorer.view.measure.memory_chart import memory_chart

        return memory_chart(use)

    def mimebundle(self, use: MemoryUse) -> dict[str, Any]:
        """What a notebook shows: the chart, the picture where it can't be drawn, or text if both fail."""
        from explorer.view.measure import memory_picture as drawn
        from explorer.view.measure.memory_chart import memory_chart
        from explorer.view.measure.showing import shown

        return shown(use, memory_chart, drawn.picture, drawn.described, drawn.tables)
