"""What a notebook is given of something measured: the chart, a picture with tables beside it, and text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from textwrap import wrap
from typing import Any

from explorer.errors import MissingPackageError
from explorer.view import live
from explorer.view.charts import Chart, Table

__all__ = ["headline_rows", "markup", "shown", "small"]


def shown(
    value: Any,
    chart: Callable[[Any], Chart],
    picture: Callable[[Any], str],
    described: Callable[[Any], str],
    tables: Callable[[Any], Sequence[Table]],
) -> dict[str, Any]:
    """The bundle of one output: without plotly, the static picture; in a terminal, text; and text if the view fails."""
    try:
        if live.in_terminal():
            return {"text/plain": repr(value)}
        try:
            return {**chart(value).bundle, "text/plain": repr(value)}
        except MissingPackageError:
            static = Chart(None, described(value), picture(value), described(value), tables(value)).static
            return {"text/html": static, "text/plain": repr(value)}
    except Exception as error:  # a fault in the view must not cost the user their result
        return {"text/plain": f"{value!r}\n(the view failed: {type(error).__name__}: {error})"}


def headline_rows(headline: str, width: int) -> list[tuple[str, bool]]:
    """A headline as at most three rows, each with whether it is of its first sentence, which is the bold one.

    Example:
        >>> headline_rows("It is slow. The biggest loss is line 3.", 40)
        [('It is slow.', True), ('The biggest loss is line 3.', False)]
    """
    first, dot, rest = headline.partition(". ")
    bold, plain = wrap(first + dot.strip(), width), wrap(rest, width)
    return [*((row, True) for row in bold), *((row, False) for row in plain)][:3]


def markup(text: str) -> str:
    """Text for plotly, which reads `<…>` as markup."""
    return escape(text, quote=False)


def small(text: str) -> str:
    """The second line of a title of plotly's."""
    return f"<span style='font-size:12.5px;color:#7a828d'>{text}</span>"
