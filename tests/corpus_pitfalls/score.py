"""Which findings the snippets mark, which are found, and the two as a table."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from types import ModuleType
from typing import Any

from explorer.pitfalls.lint import lint
from tests.corpus_pitfalls import (
    arrays,
    clean,
    documented_pages,
    documented_sharp_bits,
    effects,
    held_out,
    state,
    threads_effects,
    threads_numbers,
    threads_speed,
    threads_state,
    threads_tracing,
    use,
    wanted,
)

__all__ = ["GROUPS", "Outcome", "outcomes", "precision", "recall", "snippets", "table"]

GROUPS = {
    "snippets": (effects, state, arrays, use, clean),
    "documentation": (documented_sharp_bits, documented_pages),
    "threads": (threads_tracing, threads_state, threads_effects, threads_numbers, threads_speed),
    "wanted": (wanted,),
    "held out": (held_out,),
}

_MARK = re.compile(r"#\s*HIT\s+([\w, -]+?)\s*$")


@dataclass
class Outcome:
    """One snippet: what should be found in it and what was, as `(rule, line)`."""

    name: str
    expected: set[tuple[str, int]]
    found: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])
    faults: tuple[str, ...] = ()

    @property
    def missed(self) -> set[tuple[str, int]]:
        return self.expected - self.found.keys()

    @property
    def alarms(self) -> set[tuple[str, int]]:
        """What was found and isn't there. A note is no alarm: it says that something is so, and not that it is bad."""
        return {key for key, severity in self.found.items() if key not in self.expected and severity != "note"}

    @property
    def notes(self) -> set[tuple[str, int]]:
        return {key for key, severity in self.found.items() if key not in self.expected and severity == "note"}


def outcomes(*groups: str) -> Iterator[Outcome]:
    """One for each snippet of some groups, or of all of them."""
    for module in (module for group in groups or GROUPS for module in GROUPS[group]):
        for name, snippet in snippets(module):
            lines, first = inspect.getsourcelines(snippet)
            expected = {
                (rule.strip(), first + i)
                for i, line in enumerate(lines)
                if (mark := _MARK.search(line))
                for rule in mark[1].split(",")
            }
            function, args = snippet()
            with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
                findings = lint(function, *args)
            yield Outcome(name, expected, {(one.rule, one.line): one.severity for one in findings}, findings.faults)


def snippets(module: ModuleType) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The functions of a module that give a function and its arguments, by name."""
    for name, value in list(vars(module).items()):
        if inspect.isfunction(value) and value.__module__ == module.__name__:
            yield name, value


def recall(results: list[Outcome]) -> float:
    return 1 - sum(len(one.missed) for one in results) / sum(len(one.expected) for one in results)


def precision(results: list[Outcome]) -> float:
    hits = sum(len(one.expected - one.missed) for one in results)
    return hits / max(hits + sum(len(one.alarms) for one in results), 1)


def table(results: list[Outcome]) -> str:
    """A row per snippet that isn't right, a row per rule, and the totals."""
    rows: list[str] = []
    for one in results:
        for what, keys in (("missed", one.missed), ("alarm", one.alarms), ("note", one.notes)):
            rows += [f"  {what:<7} {one.name}: {rule}, line {line}" for rule, line in sorted(keys)]
        rows += [f"  fault   {one.name}: {fault}" for fault in one.faults]
    rules = sorted({rule for one in results for rule, _ in one.expected | set(one.found)})
    rows.append(f"  {'rule':<20}{'marked':>8}{'found':>8}{'alarms':>8}")
    for rule in rules:
        marked = sum(key[0] == rule for one in results for key in one.expected)
        missed = sum(key[0] == rule for one in results for key in one.missed)
        alarms = sum(key[0] == rule for one in results for key in one.alarms)
        rows.append(f"  {rule:<20}{marked:>8}{marked - missed:>8}{alarms:>8}")
    clean_ones = sum(not one.expected for one in results)
    rows.append(
        f"Python {sys.version_info.major}.{sys.version_info.minor}: {len(results)} snippets, {clean_ones} clean; "
        f"recall {recall(results):.1%}, precision {precision(results):.1%}"
    )
    return "\n".join(rows)
