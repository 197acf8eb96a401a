"""Methods that values declare and `explorer/methods.py` defines, and what most values declare: display, files, frames.

A value imports no room that analyzes, writes or shows it. It declares such a method with its documentation and no
body. `explorer/methods.py` defines it in a subclass; `adopt` copies the definition to the value's own class. That
module is imported at the first call of any declared method.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from functools import update_wrapper, wraps
from inspect import CO_VARKEYWORDS, signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, cast

P = ParamSpec("P")
R = TypeVar("R")

_declarations: set[Any] = set()
_definitions: dict[Callable[..., Any], Callable[..., Any]] = {}
_importers: list[Callable[[], object]] = []


def define_with(import_definitions: Callable[[], object]) -> None:
    """Set the function that imports the definitions; the first call of a declared method calls it."""
    _importers[:] = [import_definitions]


def declared(declaration: Callable[P, R]) -> Callable[P, R]:
    """Return a method with the signature and documentation of `declaration`; it calls the adopted definition."""

    @wraps(declaration)
    def first_call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        # Imported late, as the definitions import analyses, files and views, which import this module.
        if first_call not in _definitions:
            for import_definitions in _importers:
                import_definitions()
        return _definitions[first_call](*args, **kwargs)

    _declarations.add(first_call)
    return first_call


def adopt(*subclasses: type) -> None:
    """Replace the declared methods of each subclass's first base class by the subclass's definitions."""
    for subclass in subclasses:
        owner = subclass.__bases__[0]
        for name, member in vars(subclass).items():
            declaration = _function_of(vars(owner).get(name))
            if declaration in _declarations:
                definition = _function_of(member)
                update_wrapper(definition, declaration)
                del definition.__wrapped__  # it is no wrapper: signature and source are its own
                if definition.__code__.co_flags & CO_VARKEYWORDS:  # except where it passes the options on
                    definition.__signature__ = signature(declaration)  # pyright: ignore[reportFunctionMemberAccess]
                _definitions[declaration] = definition
                setattr(owner, name, _documented(member, definition))


def _documented(member: Any, definition: Any) -> Any:
    """Return a class member with the docstring of `definition`, its function; a property is built again for that."""
    kind = cast("Any", type)(member)
    # By name, because the class is defined below and differs between versions of Python.
    if kind.__name__ == "cached_property":
        member.__doc__ = definition.__doc__
    return kind(definition) if kind.__name__ in ("property", "classmethod", "staticmethod") else member


def _function_of(member: Any) -> Any:
    """Return the function of a method, property, cached property, class or static method; any other member itself."""
    for name in ("__func__", "fget", "func"):
        member = getattr(member, name, member)
    return member


if sys.version_info >= (3, 12):
    from functools import cached_property as cached_property  # noqa: TID251
else:

    class cached_property(functools.cached_property[R]):  # noqa: TID251
        """`functools.cached_property` without its lock, as from Python 3.12 on.

        Python 3.11 locks the class, not the instance. A thread that computes a stage's graph, which needs the text, and
        a thread that computes another stage's text would block each other forever.
        """

        def __init__(self, function: Callable[[Any], R]) -> None:
            super().__init__(function)
            self.lock = nullcontext()


@contextmanager
def uncollected() -> Generator[None]:
    """Pause Python's garbage collector; also a decorator.

    An analysis or a page makes many objects and no cycle: collections took a sixth of its time and freed nothing.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


if TYPE_CHECKING:
    import pandas as pd


class Displayable:
    """Value with a view in notebooks and terminals, as text and as a page."""

    __slots__ = ()

    @declared
    def to_text(self, width: int = 100) -> str:
        """Return the value as text; trees and tables are at most `width` characters wide.

        `rich.print(value)` shows the same in colors.

        Example:
            >>> import explorer
            >>> finding = explorer.types.Finding("unrolled-loop", "warning", "60 turns", code="EX012")
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

    @declared
    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write what a notebook shows as one self-contained page, and return its path.

        The page needs no network and no kernel. Only its interactive parts need scripts in the browser.
        """
        ...

    @declared
    def __rich__(self) -> Any: ...

    @declared
    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]: ...

    def _repr_html_(self) -> str | None:
        """Return the HTML of the MIME bundle for notebooks that read only HTML, such as marimo; None without HTML."""
        return self._repr_mimebundle_().get("text/html")


class Pictured(Displayable):
    """Value with a static picture."""

    __slots__ = ()

    @declared
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

    @declared
    def to_png(self, path: str | PathLike[str], scale: float = 2) -> Path:
        """Write the static picture as PNG, `scale` times as large as the SVG, and return its path.

        Raises:
            MissingPackageError: resvg_py, which draws it, is not installed: the extra `png`.
        """
        ...


class Charted(Pictured):
    """Value with figures, drawn by plotly."""

    __slots__ = ()

    @declared
    def chart(self) -> Any:
        """Return the figures as an `explorer.view.chart.Chart`: plotly, with a static picture, tables and text.

        Raises:
            MissingPackageError: plotly is not installed: the extra `lab`.
        """
        ...


class Framed:
    """Result whose rows can be converted to a pandas DataFrame."""

    __slots__ = ()

    @declared
    def to_frame(self) -> pd.DataFrame:
        """Return the rows as a `pandas.DataFrame`; the docstring of the row's class documents the columns.

        Raises:
            MissingPackageError: pandas is not installed.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> frame = explorer.explore(lambda x: x @ x, jnp.ones((64, 64))).lines().to_frame()
            >>> list(frame.columns)[:3], len(frame)
            (['file', 'line', 'text'], 1)
        """
        ...


class Saved:
    """Result that can be saved to a file and loaded from it.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> from explorer.model.results.timing import Samples, Timing
        >>> timing = Timing("f", "(x: f32[8])", Samples((0.2,)), Samples((0.01,) * 9))
        >>> with TemporaryDirectory() as folder:
        ...     timing.save(f"{folder}/f.json")
        ...     Timing.load(f"{folder}/f.json")
        Timing(f(x: f32[8]))
          steady      10 ms     9.7 … 10.3 ms with 95 %, 9 samples
          first call  200 ms
    """

    __slots__ = ()

    @declared
    def save(self, path: str | PathLike[str]) -> None:
        """Write the whole result to one JSON file, including what was compiled; `load` reads it.

        The file is written completely or not at all.
        """
        ...

    @classmethod
    @declared
    def load(cls, path: str | PathLike[str]) -> Self:
        """Return the result in a file from `save`; nothing in the file is executed or imported.

        Raises:
            ResultFileError: The file holds no result or one of another class, is truncated or altered, or comes from a
                newer Explorer.
            FileNotFoundError: The file doesn't exist.
        """
        ...
