"""Completion after `%explore`: its options, and what can be called."""

from __future__ import annotations

import inspect
import re
from glob import glob
from typing import Any

from IPython.core.error import TryNext

from explorer.notebook.calls import split_options
from explorer.notebook.magics import explore_parser

_VALUE = re.compile(r"--(?!passes\b)[\w-]+\s+\S*$")  # the cursor stands in an option's value, which is a file


def complete(shell: Any, event: Any) -> list[str]:
    """What may come next; TryNext where IPython itself knows better: attributes, and what goes into a call."""
    typed = event.text_until_cursor[len(event.command) :]
    if _VALUE.search(typed):
        return sorted(glob(event.symbol + "*"))
    _, call = split_options(typed)
    if "(" in call or "." in call:
        raise TryNext
    options = sorted(set(re.findall(r"--[\w-]+", explore_parser.format_help())))
    if event.command.startswith("%%"):
        return options
    return callables(shell) + options


def callables(shell: Any) -> list[str]:
    """The user's names of what can be called, or has what can be."""
    names = (name for name in shell.user_ns if not name.startswith("_") and name not in shell.user_ns_hidden)
    return sorted(n for n in names if callable(shell.user_ns[n]) or inspect.ismodule(shell.user_ns[n]))
