"""A page for each error and warning: what it means, a program that raises it, and what to do."""

from __future__ import annotations

import explorer as ex
from docs.pages.docstrings import parse
from docs.pages.reference import body


def pages() -> dict[str, str]:
    """By its path without `.md`, each page's text."""
    return {"index": _index()} | {name: _page(name) for name in ex.errors.__all__}


def _index() -> str:
    shell = "`python -m explorer explain InputShapeError` shows such a page in a terminal."
    rows = ["# Errors and warnings", "", shell, ""]
    for heading, suffix in (("Errors", "Error"), ("Warnings", "Warning")):
        rows += [f"## {heading}", "", "| name | what it is |", "|---|---|"]
        those = (name for name in sorted(ex.errors.__all__) if name.endswith(suffix))
        rows += [f"| [`{name}`]({name}.md) | {parse(getattr(ex.errors, name).__doc__).summary} |" for name in those]
        rows.append("")
    return "\n".join([*rows, "```{toctree}", ":hidden:", "", *sorted(ex.errors.__all__), "```", ""])


def _page(name: str) -> str:
    error: type[BaseException] = getattr(ex.errors, name)
    rows = [f"# {name}", "", *body(parse(error.__doc__), f"errors/{name}")]
    above = [base.__name__ for base in error.__bases__]
    below = [other for other in sorted(ex.errors.__all__) if name in map(_name, getattr(ex.errors, other).__bases__)]
    rows += ["**It is also**", "", ", ".join(map(_linked, above)), ""]
    if below:
        rows += ["**Kinds of it**", "", ", ".join(map(_linked, below)), ""]
    return "\n".join(rows)


def _name(cls: type) -> str:
    return cls.__name__


def _linked(name: str) -> str:
    return f"[`{name}`]({name}.md)" if name in ex.errors.__all__ else f"`{name}`"
