"""A roofline as a chart: each kernel under the machine's roofs, with how far up it could go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.results.roofline import Roofline

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlRooflineViewer"]


class HtmlRooflineViewer:
    """Shows rooflines in notebooks. The parts load when something is shown first."""

    def chart(self, roofline: Roofline) -> Chart:
        from explorer.view.measure.roofline_chart import roofline_chart

        return roofline_chart(roofline)

    def mimebundle(self, roofline: Roofline) -> dict[str, Any]:
        """What a notebook shows: the chart, the picture where it can't be drawn, or text if both fail."""
        from explorer.view.measure import roofline_picture as drawn
        from explorer.view.measure.roofline_chart import roofline_chart
        from explorer.view.measure.showing import shown

        return shown(roofline, roofline_chart, drawn.picture, drawn.described, drawn.tables)
