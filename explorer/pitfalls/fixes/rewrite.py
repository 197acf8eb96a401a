"""What a rewrite is. Each file of `fixes.kinds` has one or several, in `REWRITES`; that is all it takes to add one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import libcst as cst

from explorer.model.findings import Finding, Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.unit import Unit


@dataclass(frozen=True)
class Rewrite:
    """One way to cure the findings of a rule.

    Args:
        rule: The rule's name.
        text: What it does, in a sentence.
        make: Gives the function's text rewritten for one finding; raises `RewriteUncertain` where it can't be sure.
        verify: Compares the traces of the text as it was and as it is, the latter by the name of its file, beyond what
            each rewrite has to hold; raises `RewriteUncertain` if they don't do the same.
    """

    rule: str
    text: str
    make: Callable[[Unit, Finding], cst.Module]
    verify: Callable[[Evidence, Evidence, Finding, str], None] | None = None


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """Every rewrite, those for one rule in the order in which they are tried."""
    package = import_module(f"{__package__}.kinds")
    modules = (import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__))
    return tuple(rewrite for module in modules for rewrite in getattr(module, "REWRITES", ()))


@cache
def _rules() -> frozenset[str]:
    return frozenset(rewrite.rule for rewrite in rewrites())


def can_fix(findings: Findings, finding: Finding) -> bool:
    """Whether there is a rewrite of the finding, or may be one that is proven when it is asked for."""
    return bool(finding.fix.code) or (findings.record is not None and finding.rule in _rules())
