"""The rules that run on every capture: those that look at what was traced anyway, and compile nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from explorer.errors import OptionError
from explorer.model.capture import Capture
from explorer.model.findings import Findings
from explorer.pitfalls.config import select_rules, severities
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.lint import check_rules, file_of, unwrap
from explorer.pitfalls.sharded import SHARDED


def check(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    traced: Any,
    error: BaseException | None,
    capture: Capture | None = None,
) -> Findings:
    """The findings of the passive rules about a function that was just traced, or couldn't be; `Findings.of_trace`."""
    users = unwrap(function)
    levels: Mapping[str, str] = {}
    faults: tuple[str, ...] = ()
    try:
        levels = severities(file_of(users))
    except OptionError as refused:  # lint() raises it; here it must not stop who only compiles
        faults = (str(refused),)
    passive = [rule for rule in select_rules(config=levels) if rule.passive]
    rules = [rule for rule in passive if (not rule.compiles if capture is None else rule.name in SHARDED)]
    evidence = Evidence(users, function, args, kwargs, traced=traced, error=error, capture=capture)
    findings = check_rules(evidence, rules, levels)
    evidence.close()
    # Without the failure: a capture has its own.
    return Findings(findings, findings.function, (*faults, *findings.faults), rules=findings.rules)
