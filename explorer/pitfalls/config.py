"""What a project says of the rules: `[tool.explorer.lint]` in the nearest pyproject.toml.

[tool.explorer.lint]
EX012 = "note"          # by number or by name
impure-print = "off"
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from explorer.errors import OptionError
from explorer.files.disk import project_settings
from explorer.model.findings import SEVERITIES
from explorer.model.text import brief
from explorer.pitfalls.rule import Rule, all_rules

_OFF = "off"
_LEVELS = (*SEVERITIES, _OFF)


def select_rules(
    rules: str | Iterable[str] | None = None, ignore: str | Iterable[str] = (), config: Mapping[str, str] | None = None
) -> tuple[Rule, ...]:
    """The rules to run: those named (all, if none are), without the ignored and those that are off.

    A rule that is named runs though the configuration has it off.

    Raises:
        OptionError: There is no such rule.
    """
    named = {_rule(name, "rules").code for name in _names(rules or ())}
    excluded = {_rule(name, "ignore").code for name in _names(ignore)}
    if rules is None:
        excluded |= {code for code, level in (config or {}).items() if level == _OFF}
    selected = (rule for rule in all_rules() if rules is None or rule.code in named)
    return tuple(rule for rule in selected if rule.code not in excluded)


def severities(file: str) -> Mapping[str, str]:
    """By the number of the rule, what the project of a file says of it: a severity, or `off`.

    A notebook's cell belongs to the project of the folder that Python runs in.

    Raises:
        OptionError: It names a rule or severity that there isn't, or can't be read.
    """
    # This runs at every compile: strings alone take a tenth of the time that paths do.
    folder = os.path.dirname(os.path.abspath(file)) if file and os.path.isfile(file) else os.getcwd()
    while True:
        path = os.path.join(folder, "pyproject.toml")
        try:
            return _read(path, os.stat(path).st_mtime_ns)
        except FileNotFoundError:
            pass
        except OSError:  # a folder that may not be looked into
            return {}
        above = os.path.dirname(folder)
        if above == folder:
            return {}
        folder = above


@lru_cache(maxsize=32)
def _read(path: str, changed: int) -> Mapping[str, str]:
    table = project_settings(path, "lint")
    place = f"[tool.explorer.lint] of {path}"
    if not isinstance(table, dict):
        raise OptionError(f'{place} is no table.\n  Hint: write [tool.explorer.lint], and below it EX001 = "note".')
    levels: dict[str, str] = {}
    for name, level in cast(dict[str, Any], table).items():
        rule = _rule(name, place)
        if level not in _LEVELS:
            raise OptionError(f"{name:.60} = {brief(level)} in {place}: allowed are {', '.join(map(repr, _LEVELS))}.")
        levels[rule.code] = level
    return levels


def _rule(name: object, place: str) -> Rule:
    for rule in all_rules():
        if isinstance(name, str) and name.strip().lower() in (rule.code.lower(), rule.name):
            return rule
    names = ", ".join(f"{rule.code} {rule.name}" for rule in all_rules())
    raise OptionError(f"there is no rule {brief(name)} ({place}).\n  There are: {names}.")


def _names(names: str | Iterable[str]) -> Sequence[str]:
    return names.replace(",", " ").split() if isinstance(names, str) else tuple(names)
