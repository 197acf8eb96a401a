"""A sweep as charts: time with its interval, compile time and memory, against what was swept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.results.sweep import Sweep

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlSweepViewer"]


class HtmlSweepViewer:
    """Shows sweeps in notebooks and pages. The parts load when something is shown first."""

    def chart(self, sweep: Sweep) -> Chart:
        from explorer.view.measure.sweep_chart import sweep_chart

        return sweep_chart(sweep)

    def mimebundle(self, sweep: Sweep) -> dict[str, Any]:
        """The chart, the picture where it can't be drawn, and text; nothing of it may cost the user their result."""
        from explorer.view.measure.showing import shown
        from explorer.view.measure.sweep_chart import sweep_chart
        from explorer.view.measure.sweep_picture import described, picture, tables

        return shown(sweep, sweep_chart, picture, described, tables)

    def html(self, sweep: Sweep) -> str:
        from explorer.view.html import document
        from explorer.view.measure.sweep_picture import static

        return document(f"sweep of {sweep.function} – Explorer", static(sweep))
