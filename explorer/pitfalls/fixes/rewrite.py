"""What a rewrite is. Each file of `fixes.kinds` has one or several, in `REWRITES`; that is all it takes to add one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

import libcst as cst

from explorer.model.findings.finding import Finding
from explorer.pitfalls.fixes.unit import Unit

__all__ = ["Rewrite", "rewrites", "rewritten"]


@dataclass(frozen=True)
class Rewrite:
    """One way to cure the findings of a rule.

    Args:
        rule: The rule's name.
        text: What it does, in a sentence.
        make: Gives the function's text rewritten for one finding; raises `RewriteUncertain` where it can't be sure.
    """

    rule: str
    text: str
    make: Callable[[Unit, Finding], cst.Module]


@cache
def rewrites() -> tuple[Rewrite, ...]:
    """Every rewrite, those for one rule in the order in which they are tried."""
    from explorer.pitfalls.fixes import kinds

    modules = (import_module(f"{kinds.__name__}.{one.name}") for one in iter_modules(kinds.__path__))
    return tuple(rewrite for module in modules for rewrite in getattr(module, "REWRITES", ()))


@cache
def rewritten() -> frozenset[str]:
    """The rules that have one."""
    return frozenset(rewrite.rule for rewrite in rewrites())
