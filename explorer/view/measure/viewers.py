"""Who shows timings and comparisons. The parts load when something is shown first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.results.benchmark_comparison import Comparison
from explorer.model.results.timing import Timing

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["ComparisonViewer", "TimingViewer"]


class TimingViewer:
    """Shows timings in notebooks."""

    def chart(self, measured: Timing) -> Chart:
        from explorer.view.measure.timing import timing_chart

        return timing_chart(measured)

    def mimebundle(self, measured: Timing) -> dict[str, Any]:
        """The chart, the picture where it can't be drawn, and text; nothing of it may cost the user their result."""
        from explorer.view.measure import timing, timing_picture
        from explorer.view.measure.showing import shown

        return shown(measured, timing.timing_chart, timing_picture.picture, timing_picture.described, timing.tables)


class ComparisonViewer:
    """Shows comparisons in notebooks."""

    def chart(self, measured: Comparison) -> Chart:
        from explorer.view.measure.comparison import comparison_chart

        return comparison_chart(measured)

    def mimebundle(self, measured: Comparison) -> dict[str, Any]:
        """As of a timing."""
        from explorer.view.measure import comparison
        from explorer.view.measure.showing import shown

        return shown(measured, comparison.comparison_chart, comparison.picture, comparison.described, comparison.tables)
