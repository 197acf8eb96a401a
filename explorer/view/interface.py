"""Protocol of views, which show the values of one class.

There is one view per class, listed in `registry.py`. A view only describes the look of its values. `display.py` chooses
formats, writes files and handles failures for all views. Terminal output is a separate function from the value to a
rich renderable, so rich is not loaded for a notebook.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from explorer.errors import MissingPackageError
from explorer.view.chart import Chart, Table, static_html
from explorer.view.figure import Figure
from explorer.view.figure_plotly import plotly_of
from explorer.view.figure_svg import svg_of

T = TypeVar("T")


class View(Generic[T]):
    """View of the values of one class; unneeded methods keep their defaults."""

    def title(self, value: T) -> str:
        """Return the title of a page."""
        return type(value).__name__

    def html(self, value: T) -> str:
        """Return the body of a page. It works without a kernel and shows a static view without scripts."""
        raise NotImplementedError

    def output(self, value: T) -> dict[str, Any]:
        """Return the MIME bundle for a notebook; `text/plain` defaults to the value's repr."""
        return {"text/html": self.html(value)}

    def interim(self, value: T, name: str) -> str:
        """Return the HTML of a partial value, with the id `name`, by which the page replaces it."""
        raise NotImplementedError

    def svg(self, value: T) -> str:
        """Return the static picture as SVG."""
        raise NotImplementedError

    def chart(self, value: T) -> Chart:
        """Return the plotly chart with its static picture, tables and text.

        Raises:
            MissingPackageError: plotly is not installed.
        """
        raise NotImplementedError


class FigureView(View[T]):
    """View of values as one figure with tables: a plotly chart if plotly is installed, else a static picture."""

    def figure(self, value: T) -> Figure:
        """Return the figure that both the SVG picture and the plotly chart are drawn from."""
        raise NotImplementedError

    def description(self, value: T) -> str:
        """Return the description of the picture in words."""
        raise NotImplementedError

    def tables(self, value: T) -> Sequence[Table]:
        """Return the data of the picture as tables."""
        raise NotImplementedError

    def chart_text(self, value: T) -> str:
        """Return the printed text of the chart."""
        return self.title(value)

    def svg(self, value: T) -> str:
        return svg_of(self.figure(value))

    def html(self, value: T) -> str:
        return static_html(self.svg(value), self.description(value), self.tables(value))

    def chart(self, value: T) -> Chart:
        figure = self.figure(value)
        return Chart(
            plotly_of(figure), self.title(value), svg_of(figure), self.description(value), self.tables(value),
            f"Chart({self.chart_text(value)})",
        )  # fmt: skip

    def output(self, value: T) -> dict[str, Any]:
        try:
            return {**self.chart(value).bundle, "text/plain": repr(value)}
        except MissingPackageError:
            return super().output(value)
