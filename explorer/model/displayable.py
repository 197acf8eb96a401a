"""The surface that everything a public function returns has: it shows itself as text, in a notebook and as a page.

A value knows nothing of who shows it: each method is declared here and answered by `explorer/view/display.py`, which
looks up the view of the value's class in `explorer/view/registry.py`.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from explorer.model.attached import attached


class Displayable:
    """What is shown in notebooks and terminals, and written as text and as a page."""

    __slots__ = ()

    @attached
    def to_text(self, width: int = 100) -> str:
        """Everything worth reading as text; where that is drawn as a tree or table, `width` characters wide.

        `rich.print(value)` shows the same, in colours.
        """
        ...

    @attached
    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write what a notebook shows as one self-contained page, and return its path.

        It needs no network and no kernel; what is interactive needs a browser that runs scripts, the rest does not.
        """
        ...

    @attached
    def __rich__(self) -> Any: ...

    @attached
    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]: ...

    def _repr_html_(self) -> str | None:
        """For notebooks that ask for HTML alone, as marimo does; the others ask for the bundle, and get more."""
        return self._repr_mimebundle_().get("text/html")


class Pictured(Displayable):
    """What has a static picture too."""

    __slots__ = ()

    @attached
    def to_svg(self, path: str | PathLike[str]) -> Path:
        """Write the static picture as SVG, on a light ground of its own, and return its path."""
        ...

    @attached
    def to_png(self, path: str | PathLike[str], scale: float = 2) -> Path:
        """Write the static picture as PNG, `scale` times as large as the SVG, and return its path.

        Raises:
            MissingPackageError: resvg_py, which draws it, is not installed: the extra `png`.
        """
        ...


class Charted(Pictured):
    """What has figures, which plotly draws."""

    __slots__ = ()

    @attached
    def chart(self) -> Any:
        """The figures as an `explorer.view.chart.Chart`: plotly, with a static picture, tables and text beside it.

        Raises:
            MissingPackageError: plotly is not installed: the extra `lab`.
        """
        ...
