"""fixed(): the rewrite for a finding, proven before it is given."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from explorer.capture.sources import read_source
from explorer.model.findings.finding import Finding, Fix
from explorer.model.findings.findings import Findings
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.proof import Trial
from explorer.pitfalls.fixes.rewrite import Rewrite, rewrites
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, unit_at

__all__ = ["fixed"]

_MOST = 12  # places of one function that have to be rewritten together for it to be traced


def fixed(
    evidence: Evidence, again: Callable[[str, dict[str, Any]], tuple[Evidence, Findings]], finding: Finding
) -> Fix:
    """The finding's cure; with the function rewritten, if one of the rewrites for its rule is certain and is proven.

    Args:
        evidence: What the finding was made from.
        again: Traces the function once more, with further arguments by name, and asks a rule.
        finding: What to cure.
    """
    source = read_source(finding.file) if finding.file and finding.line else None
    if source is None:
        return finding.fix
    names = next((one.ran.globals for one in evidence.functions if one.file == finding.file), dict[str, Any]())
    code = getattr(evidence.function, "__code__", None)
    main = code.co_firstlineno if code is not None and code.co_filename == finding.file else 0
    unit = Unit(finding.file, source.text, 1, 1, names, main)
    for rewrite in rewrites():
        if rewrite.rule == finding.rule and (fix := _tried(rewrite, unit, Trial(evidence, again, finding))) is not None:
            return fix
    return finding.fix


def _tried(rewrite: Rewrite, original: Unit, trial: Trial) -> Fix | None:
    """The rewrite, if it is proven; where the trace then comes to another place where the same is wrong, of both."""
    finding: Finding | None = trial.finding
    unit = original
    for _ in range(_MOST):
        made = _made(rewrite, unit, finding)
        if made is None:
            return None
        text, code, unit = made
        try:
            finding = trial.next(unit, text)
        except Exception:  # it can't be put in the place of what ran, or what it runs raises
            return None
        if finding is None:
            needed = f" (it needs: {'; '.join(dict.fromkeys(unit.imports))})" if unit.imports else ""
            call = ", ".join(f"{name}={value}" for name, value in unit.new_parameters.items())
            called = f": call {trial.evidence.name}(…, {call})" if call else ""
            told = replace(trial.finding.fix, text=rewrite.text + called + needed, code=code)
            return replace(told, diff=_diff(original, text))
        unit = replace(unit, file=finding.file, text=text)
    return None


def _made(rewrite: Rewrite, whole: Unit, finding: Finding) -> tuple[str, str, Unit] | None:
    """The file's text and the function's own after a rewrite."""
    several = [rewrite, *(one for one in rewrites() if one.rule == finding.rule and one is not rewrite)]
    for one in several if finding.file.startswith("<rewritten ") else [rewrite]:
        try:
            unit = unit_at(whole, finding.line)
            changed = one.make(unit, finding)
            text = unit.file_text(changed)
            if text != whole.text:
                return text, unit.standalone_code(changed), unit
        except RewriteUncertain:
            continue
        except Exception:  # an odd text that libcst doesn't take, or a rewrite that fails: there is none then
            continue
    return None


def _diff(unit: Unit, text: str) -> str:
    name = unit.file if not unit.file.startswith("<") else "cell"
    before, after = unit.text.splitlines(keepends=True), text.splitlines(keepends=True)
    return "".join(
        line if line.endswith("\n") else line + "\n" for line in difflib.unified_diff(before, after, name, name, n=2)
    )
