"""The verbs of the shell and the magics of a notebook: a page each, of their own help."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any

from docs.pages.docstrings import markdown
from explorer.__main__ import command_line
from explorer.notebook.magics import MAGICS


def pages() -> dict[str, str]:
    """By its path without `.md`, each page's text."""
    verbs, magics = _verbs(), _magics()
    written = {name: _verb(name, verb) for name, verb in verbs.items()}
    written |= {f"magic_{name}": _magic(name, text) for name, text in magics.items()}
    return {"index": _index(verbs, magics), **written}


def _verbs() -> dict[str, argparse.ArgumentParser]:
    actions: Any = command_line()._actions
    return next(action.choices for action in actions if isinstance(action, argparse._SubParsersAction))


def _magics() -> dict[str, str]:
    """By its name, what `%name?` shows of a magic."""
    return {
        name: getattr(kind, method).__doc__ or ""
        for kind, _ in MAGICS
        for table in kind.magics.values()
        for name, method in table.items()
    }


def _index(verbs: dict[str, argparse.ArgumentParser], magics: dict[str, str]) -> str:
    rows = [
        "# Shell and magics",
        "",
        "## In a shell: `python -m explorer VERB`",
        "",
        "| verb | what it does |",
        "|---|---|",
    ]
    rows += [f"| [`{name}`]({name}.md) | {markdown(_first(verb.description))} |" for name, verb in verbs.items()]
    rows += ["", "## In a notebook: `%load_ext explorer`", "", "| magic | what it does |", "|---|---|"]
    rows += [f"| [`%{name}`](magic_{name}.md) | {markdown(_first(text))} |" for name, text in magics.items()]
    toc = [*verbs, *(f"magic_{name}" for name in magics)]
    return "\n".join([*rows, "", "```{toctree}", ":hidden:", "", *toc, "```", ""])


def _first(text: str | None) -> str:
    return " ".join((text or "").strip().partition("\n\n")[0].split()).partition(". ")[0].rstrip(".") + "."


def _verb(name: str, verb: argparse.ArgumentParser) -> str:
    verb.formatter_class = partial(argparse.HelpFormatter, width=100)  # not that of the terminal that builds the page
    return f"# python -m explorer {name}\n\n{markdown(verb.description or '')}\n\n```text\n{verb.format_help()}```\n"


def _magic(name: str, text: str) -> str:
    return f"# %{name}\n\n```text\n{text.strip()}\n```\n"
