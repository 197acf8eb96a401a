"""What is shown as a chart, in a notebook and as a page, by a view that it knows nothing of."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Protocol

__all__ = ["Shown", "Viewer"]


class Viewer(Protocol):
    """What shows values of one class; `explorer` puts one there, as for captures."""

    def chart(self, value: Any, /) -> Any: ...
    def mimebundle(self, value: Any, /) -> dict[str, Any]: ...
    def html(self, value: Any, /) -> str: ...


class Shown:
    """The methods of what has charts."""

    viewer: ClassVar[Viewer | None] = None

    def chart(self) -> Any:
        """The figures as a chart, with a static picture, tables and text beside it.

        Raises:
            MissingPackageError: plotly is not installed: the extra `explorer[lab]`.
        """
        return self._viewer().chart(self)

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write what a notebook shows as one self-contained page that needs no script, and return its path."""
        Path(path).write_text(self._viewer().html(self), encoding="utf-8")
        return Path(path)

    def _viewer(self) -> Viewer:
        if self.viewer is None:
            raise RuntimeError("no view is loaded. Hint: import explorer, not only explorer.model.")
        return self.viewer

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        return {"text/plain": repr(self)} if self.viewer is None else self.viewer.mimebundle(self)
