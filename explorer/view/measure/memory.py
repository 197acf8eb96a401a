"""Memory as a chart: what is needed at each size, by use, with the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from explorer.model.memory_use import MemoryUse

if TYPE_CHECKING:
    from explorer.view.charts import Chart

__all__ = ["HtmlMemoryViewer"]


class HtmlMemoryViewer:
    """Shows memory in notebooks. The parts load when something is shown first."""

    def chart(self, use: MemoryUse) -> Chart:
        from explorer.view.measure.memory_chart import memory_chart

        return memory_chart(use)

    def mimebundle(self, use: MemoryUse) -> dict[str, Any]:
        """What a notebook shows: the chart, or text with the reason if the view fails."""
        text = use.to_text()
        try:
            from explorer.view import live

            if live.in_terminal():
                return {"text/plain": text}
            return {**_shown(use), "text/plain": repr(use)}
        except Exception as error:  # a fault in the view must not cost the user their result
            return {"text/plain": f"{text}\n(the view failed: {type(error).__name__}: {error})"}


def _shown(use: MemoryUse) -> dict[str, Any]:
    """The chart, where plotly is there; else the picture, which tells the same."""
    from explorer.errors import MissingPackageError
    from explorer.view.measure.memory_chart import memory_chart
    from explorer.view.measure.memory_picture import static

    try:
        return memory_chart(use)._repr_mimebundle_()  # pyright: ignore[reportPrivateUsage]
    except MissingPackageError:
        return {"text/html": static(use)}
