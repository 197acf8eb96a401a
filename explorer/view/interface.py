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

__all__ = ["FigureView", "View"]

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
    """Values that are shown as a chart: plotly's where it can run, else the static picture with tables."""

    def description(self, value: T) -> str:
        """The picture in words."""
        raise NotImplementedError

    def tables(self, value: T) -> Sequence[Table]:
        """The figures of the picture."""
        raise NotImplementedError

    def html(self, value: T) -> str:
        return static_html(self.svg(value), self.description(value), self.tables(value))

    def output(self, value: T) -> dict[str, Any]:
        try:
            return {**self.chart(value).bundle, "text/plain": repr(value)}
        except MissingPackageError:
            return super().output(value)
