"""The rules that ride on every capture: those that need no recording, over what was traced anyway."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.errors import OptionError
from explorer.model.findings.findings import Findings
from explorer.pitfalls.config import select_rules, severities
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.lint import check_rules, unwrap

__all__ = ["check"]


def check(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], traced: Any, error: BaseException | None
) -> Findings:
    """What the cheap rules find in a function that was just traced, or couldn't be. Nothing of the user's runs.

    Args:
        function: What the user gave.
        args, kwargs: What it was traced with.
        traced: The `jax.stages.Traced`; None if the trace failed.
        error: What ended the trace.
    """
    users = unwrap(function)
    levels: Mapping[str, str] = {}
    faults: tuple[str, ...] = ()
    try:
        levels = severities(getattr(getattr(users, "__code__", None), "co_filename", ""))
    except OptionError as refused:  # lint() raises it; who only compiles is told
        faults = (str(refused),)
    rules = [rule for rule in select_rules(config=levels) if rule.passive]
    found = check_rules(Evidence(users, function, args, kwargs, traced=traced, error=error), rules, levels)
    return Findings(found, found.function, (*faults, *found.faults), asked=found.asked)  # a capture has its own failure
