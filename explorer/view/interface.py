"""What a view is: how values of one class are shown.

One view per class, listed in `registry.py`. It says what its values look like and nothing else: which of it is asked
for, what is written where, and what happens if a view fails is in `display.py`, once for all. What a terminal shows is
listed beside it, as one function from the value to what rich draws: rich is not loaded for a notebook.
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
    """How values of one class are shown; what a class has no need of keeps its default."""

    def title(self, value: T) -> str:
        """Of a page."""
        return type(value).__name__

    def html(self, value: T) -> str:
        """The body of a page; it works with no kernel and shows something with no script."""
        raise NotImplementedError

    def output(self, value: T) -> dict[str, Any]:
        """What a notebook shows, by MIME type; `text/plain` is the value's repr if it is not among it."""
        return {"text/html": self.html(value)}

    def interim(self, value: T, name: str) -> str:
        """The HTML of what there is while the rest of it is worked out, for the page to know by this name."""
        raise NotImplementedError

    def svg(self, value: T) -> str:
        """The static picture."""
        raise NotImplementedError

    def chart(self, value: T) -> Chart:
        """The figures.

        Raises:
            MissingPackageError: plotly is not installed.
        """
        raise NotImplementedError


class FigureView(View[T]):
    """Values that are shown as one figure: plotly's where it can run, else its static picture, with tables."""

    def figure(self, value: T) -> Figure:
        """What is drawn, by both renderers."""
        raise NotImplementedError

    def description(self, value: T) -> str:
        """The picture in words."""
        raise NotImplementedError

    def tables(self, value: T) -> Sequence[Table]:
        """The figures of the picture."""
        raise NotImplementedError

    def chart_text(self, value: T) -> str:
        """What the chart prints as."""
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
