"""A roofline as a chart: each kernel under the machine's roofs, with how far up it could go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.roofline import Roofline

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlRooflineViewer"]


class HtmlRooflineViewer:
    """Shows rooflines in notebooks. The parts load when something is shown first."""

    def chart(self, roofline: Roofline) -> Chart:
        from explorer.view.measure.roofline_chart import roofline_chart

        return roofline_chart(roofline)

    def mimebundle(self, roofline: Roofline) -> dict[str, Any]:
        """What a notebook shows: the chart, or text with the reason if the view fails."""
        text = roofline.to_text()
        try:
            from explorer.view import live

            if live.in_terminal():
                return {"text/plain": text}
            return {**_shown(roofline), "text/plain": repr(roofline)}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{text}\n(the view failed: {type(error).__name__}: {error})"}


def _shown(roofline: Roofline) -> dict[str, Any]:
    """The chart, where plotly is there; else the picture, which tells the same."""
    from explorer.errors import MissingPackageError
    from explorer.view.measure.roofline_chart import roofline_chart
    from explorer.view.measure.roofline_picture import static

    try:
        return roofline_chart(roofline)._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    except MissingPackageError:
        return {"text/html": static(roofline)}
