"""What a rule is. Each file of `rules` has one, as `RULE`; that is all it takes to add one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding, Fix
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.locations import span_location


@dataclass(frozen=True)
class Rule:
    """One pitfall: how to see it, what it does, how to cure it.

    Args:
        name: Of `Finding.rule`: `impure-print`.
        code: Its number: `EX001`.
        severity: Unless a finding or the user says otherwise.
        summary: What goes wrong, in one sentence.
        documentation: Where JAX's documentation explains it.
        check: Yields the findings about some evidence. It never runs the user's code, nor reads attributes of their
            objects in ways that could.
        passive: It needs no recording: it looks at the jaxpr, the text and the state alone, so that it can ride on
            every compile.
        compiles: It compiles pieces of the program, or looks at all of it compiled: nothing for every trace.
    """

    name: str
    code: str
    severity: str
    summary: str
    documentation: str
    check: Callable[[Evidence], Iterable[Finding]]
    passive: bool = False
    compiles: bool = False

    def finding(
        self,
        message: str,
        *,
        function: FunctionSource | None = None,
        span: Span | None = None,
        evidence: str = "",
        fix: str | Fix = "",
        severity: str | None = None,
        **place: Any,
    ) -> Finding:
        """A finding of this rule, at a piece of a function's text, or at a `place` by the names of its fields."""
        if span is not None and function is not None:
            place = span_location(function.file, span) | {"text": function.line(span.line)} | place
        return Finding(
            self.name,
            severity or self.severity,
            message,
            evidence=evidence,
            fix=Fix(fix) if isinstance(fix, str) else fix,
            code=self.code,
            documentation=self.documentation,
            **place,
        )


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule, in the order of their numbers."""
    package = import_module(f"{__package__}.rules")
    modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
    return tuple(sorted((module.RULE for module in modules), key=lambda rule: rule.code))
