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

        Example:
            >>> import explorer
            >>> finding = explorer.Finding("unrolled-loop", "warning", "60 turns", code="EX012")
            >>> findings = explorer.Findings([finding], "step")
            >>> print(findings.to_text().splitlines()[0])
            step: 1 warning

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> "sin(x: f32[8])" in explorer.explore(jnp.sin, jnp.ones(8)).to_text()
            True

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> x = jnp.ones(8)
            >>> compared = explorer.diff(explorer.explore(jnp.sin, x), explorer.explore(jnp.cos, x))
            >>> compared.to_text() != ""
            True
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
        """Write the static picture as SVG, on a light ground of its own, and return its path.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> from pathlib import Path
            >>> from tempfile import TemporaryDirectory
            >>> with TemporaryDirectory() as folder:
            ...     picture = explorer.explore(jnp.sin, jnp.ones(8)).to_svg(Path(folder, "sin.svg"))
            ...     picture.read_text(encoding="utf-8")[:4]
            '<svg'
        """
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
