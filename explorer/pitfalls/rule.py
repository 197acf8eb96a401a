"""Rules: definition, selection, configuration, suppression by comments, and explanation."""

from __future__ import annotations

import ast
import io
import os
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, cast

from explorer.capture.sources import Span, parse, read_source
from explorer.errors import OptionError
from explorer.files.disk import project_settings
from explorer.model.findings import SEVERITIES, Finding, Fix
from explorer.model.text import brief
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, first_line, span_location

Check = Callable[[Evidence], Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """One pitfall: how to detect it, what it does, how to fix it."""

    name: str  # of `Finding.rule`: `impure-print`
    code: str  # its number: `EX001`
    severity: str  # default; a finding or the configuration may override it
    documentation: str  # where JAX's documentation explains it
    # yields findings; never runs user code, nor reads attributes of user objects in ways that could
    check: Check
    # needs no recording, only the jaxpr, the text and the state, so that it can run on every compile
    passive: bool = False
    drivers: bool = False  # also meant for a function that is read, not traced: see `driver`
    compiles: bool = False  # compiles pieces of the program, or reads the compiled program: too slow for every trace

    @property
    def summary(self) -> str:
        """Pitfall in one sentence: the first paragraph of the check's docstring."""
        return self._paragraphs[0]

    @property
    def about(self) -> str:
        """Rest of the check's docstring, or the module docstring if the check has one paragraph."""
        return "\n\n".join(self._paragraphs[1:]) or (sys.modules[self.check.__module__].__doc__ or "").strip()

    @property
    def _paragraphs(self) -> list[str]:
        return [" ".join(paragraph.split()) for paragraph in (self.check.__doc__ or "").split("\n\n")]

    def finding(
        self,
        message: str,
        *,
        at: tuple[FunctionSource | None, Span | ast.AST | None] = (None, None),
        evidence: str = "",
        fix: str = "",
        severity: str | None = None,
        **place: Any,
    ) -> Finding:
        """Return a finding of this rule at a node or span of a function, or at explicit location fields."""
        function, piece = at
        if function is not None and piece is not None:
            span = Span.of(piece) if isinstance(piece, ast.AST) else piece
            place = span_location(function.file, span, function.line(span.line)) | place
        named = {"code": self.code, "documentation": self.documentation}
        return Finding(self.name, severity or self.severity, message, evidence=evidence, fix=Fix(fix), **named, **place)


def rule(
    name: str,
    code: str,
    severity: str,
    page: str,
    *,
    passive: bool = False,
    drivers: bool = False,
    compiles: bool = False,
) -> Callable[[Check], Rule]:
    """Return a decorator that makes a `Rule` of a check; `page` is relative to JAX's documentation."""
    documentation = f"https://docs.jax.dev/en/latest/{page}"
    return lambda check: Rule(name, code, severity, documentation, check, passive, drivers, compiles)


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return all rules of this folder's `rule_….py`, ordered by number."""
    package = import_module(__name__.rpartition(".")[0])
    names = [module.name for module in iter_modules(package.__path__) if module.name.startswith("rule_")]
    modules = [import_module(f"{package.__name__}.{name}") for name in names]
    rules = {value for module in modules for value in vars(module).values() if isinstance(value, Rule)}
    return tuple(sorted(rules, key=lambda rule: rule.code))


def rule_named(name: object) -> Rule | None:
    wanted = name.strip().lower() if isinstance(name, str) else ""
    return next((rule for rule in all_rules() if wanted in (rule.code.lower(), rule.name)), None)


_OFF = "off"
_LEVELS = (*SEVERITIES, _OFF)


def select_rules(
    rules: str | Iterable[str] | None = None, ignore: str | Iterable[str] = (), config: Mapping[str, str] | None = None
) -> tuple[Rule, ...]:
    """Return the named rules (all by default), without ignored rules and those that are off.

    A rule that is named runs even if the configuration has it off.

    Raises:
        OptionError: There is no such rule.
    """
    excluded = {_named(name, "ignore").code for name in _names(ignore)}
    if rules is None:
        named = {rule.code for rule in all_rules()} - {code for code, level in (config or {}).items() if level == _OFF}
    else:
        named = {_named(name, "rules").code for name in _names(rules)}
    return tuple(rule for rule in all_rules() if rule.code in named - excluded)


def severities(file: str) -> Mapping[str, str]:
    """Return the configured severity, or `off`, by rule number, from the pyproject.toml nearest to a file.

    A notebook's cell belongs to the project of the working directory. The result is empty without a pyproject.toml.

    Raises:
        OptionError: The configuration names an unknown rule or severity, or can't be read.
    """
    # Runs on every compile: strings take a tenth of the time of Path objects.
    folder = os.path.dirname(os.path.abspath(file)) if file and os.path.isfile(file) else os.getcwd()
    while True:
        path = os.path.join(folder, "pyproject.toml")
        try:
            return _read_levels(path, os.stat(path).st_mtime_ns)
        except FileNotFoundError:
            pass
        except OSError:  # a folder that may not be looked into
            return {}
        above = os.path.dirname(folder)
        if above == folder:
            return {}
        folder = above


# `changed` is a part of the cache's key, so that an edited file is read again.
@lru_cache(maxsize=32)
def _read_levels(path: str, changed: int) -> Mapping[str, str]:
    table = project_settings(path, "lint")
    place = f"[tool.explorer.lint] of {path}"
    if not isinstance(table, dict):
        raise OptionError(f'{place} is no table.\n  Hint: write [tool.explorer.lint], and below it EX001 = "note".')
    levels: dict[str, str] = {}
    for name, level in cast(dict[str, Any], table).items():
        rule = _named(name, place)
        if level not in _LEVELS:
            raise OptionError(f"{name:.60} = {brief(level)} in {place}: allowed are {', '.join(map(repr, _LEVELS))}.")
        levels[rule.code] = level
    return levels


def _named(name: object, place: str) -> Rule:
    if (rule := rule_named(name)) is not None:
        return rule
    names = ", ".join(f"{rule.code} {rule.name}" for rule in all_rules())
    raise OptionError(f"there is no rule {brief(name)} ({place}).\n  There are: {names}.")


def _names(names: str | Iterable[str]) -> Sequence[str]:
    return names.replace(",", " ").split() if isinstance(names, str) else tuple(names)


# A comment on any line of a statement, or of the head of a `def`, `for`, `if` or `with`, applies to that statement. On
# a `def` or its decorators it applies to the whole function. Without brackets it silences every rule.
_COMMENT = re.compile(r"#\s*explorer:\s*ignore\b(?:\s*\[([^\]]*)\])?", re.IGNORECASE)


def is_suppressed(finding: Finding) -> bool:
    """Return True if a comment of the finding's line, its statement or its function silences the rule."""
    source = read_source(finding.file) if finding.file and finding.line else None
    if source is None or not (comments := _comments(source.text)):
        return False
    none = frozenset[str]()
    silent = none.union(*(comments.get(line, none) for line in _silent_lines(source.text, finding.line)))
    return bool(silent & {"*", finding.code.lower(), finding.rule})


@lru_cache(maxsize=32)
def _comments(text: str) -> Mapping[int, frozenset[str]]:
    if not _COMMENT.search(text):
        return {}
    silenced: dict[int, frozenset[str]] = {}
    for line, comment in _all_comments(text):
        if match := _COMMENT.search(comment):
            names = "*" if match[1] is None else match[1]
            silenced[line] = frozenset(word.strip().lower() for word in names.split(",")) - {""}
    return silenced


def _all_comments(text: str) -> list[tuple[int, str]]:
    """Return (line, comment) pairs; every line of a text that isn't Python alone, such as a cell with magics."""
    try:
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    except (tokenize.TokenError, SyntaxError, ValueError):
        return list(enumerate(text.splitlines(), 1))


def _silent_lines(text: str, line: int) -> set[int]:
    """Return the lines whose comments apply to a line: its statement, and the heads of enclosing functions."""
    lines = {line}
    tree = parse(text)
    block: list[ast.AST] = [tree] if tree is not None else []
    while block:
        node = block.pop()
        for part in ast.iter_child_nodes(node):
            if isinstance(part, (ast.ExceptHandler, ast.match_case)):
                block.append(part)
            elif isinstance(part, ast.stmt) and first_line(part) <= line <= (part.end_lineno or 0):
                head = _head(part)
                if line in head or isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    lines.update(head)
                block.append(part)
    return lines


def _head(node: ast.stmt) -> range:
    body: list[ast.stmt] = getattr(node, "body", [])
    last = max(first_line(body[0]) - 1, node.lineno) if body else node.end_lineno or node.lineno
    return range(first_line(node), last + 1)


def silencing(rule: Rule) -> tuple[str, ...]:
    """Return the ways to silence a rule, from one line to a whole project."""
    return (
        f"on a line, in a statement or in a whole function: `# explorer: ignore[{rule.code}]`",
        f'in one call: `explorer.lint(f, x, ignore="{rule.name}")`, `%lint --ignore {rule.code} f(x)`',
        f'in a project, in pyproject.toml: `[tool.explorer.lint]` with `{rule.code} = "off"`',
    )


def explain_rule(rule: Rule) -> str:
    """Return a rule's explanation, severity, documentation link and how to silence it, as text."""
    lines = [f"{rule.code} {rule.name} ({rule.severity})", "", rule.summary, "", rule.about, ""]
    lines += [f"JAX's documentation: {rule.documentation}", "", "Silence it"]
    lines += [f"  {way}".replace("`", "") for way in silencing(rule)]
    return "\n".join(lines)
