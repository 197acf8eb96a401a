"""fix(): the rewrite for a finding, proven before it is returned; attached to `Findings`."""

from __future__ import annotations

import difflib
from dataclasses import replace
from typing import Any

from explorer.capture.sources import read_source
from explorer.errors import NotRecordedError
from explorer.model.findings import Finding, Findings, Fix
from explorer.model.stage import Source
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.proof import prove
from explorer.pitfalls.fixes.rewrite import Rewrite, rewrites
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, unit_at
from explorer.pitfalls.lint import LintRecord

_MOST = 12  # places of one function that have to be rewritten together for it to be traced


def fix(findings: Findings, finding: Finding | int) -> Fix:
    """The finding's cure; with the function rewritten, if one of the rewrites for its rule is certain and is proven."""
    finding = findings[finding] if isinstance(finding, int) else finding
    record: LintRecord | None = findings.record
    if record is None:
        raise NotRecordedError(
            f"these findings about {findings.function} were loaded, and have no function to rewrite.\n"
            "  Hint: findings of explorer.lint(f, x) can be fixed."
        )
    source = read_source(finding.file) if finding.file and finding.line and not finding.fix.code else None
    if source is None:
        return finding.fix
    whole = _whole_file(record.evidence, source)
    candidates = (rewrite for rewrite in rewrites() if rewrite.rule == finding.rule)
    proven = (_proven(rewrite, whole, record, finding) for rewrite in candidates)
    return next(filter(None, proven), finding.fix)


def _whole_file(evidence: Evidence, source: Source) -> Unit:
    """A file as `unit_at` takes it: with the names of its module, and where the linted function starts in it."""
    executed = (function.executed for function in evidence.functions if function.file == source.file)
    names = next((function.globals for function in executed), dict[str, Any]())
    code = getattr(evidence.function, "__code__", None)
    main = code.co_firstlineno if code is not None and code.co_filename == source.file else 0
    return Unit(source.file, source.text, 1, 1, names, main, evidence=evidence)


def _proven(rewrite: Rewrite, original: Unit, record: LintRecord, finding: Finding) -> Fix | None:
    """The rewrite, if it is proven; of both places, where the trace then stops at another one with the same mistake."""
    unit, place = original, finding
    for _ in range(_MOST):
        rewritten = _apply(rewrite, unit, place)
        if rewritten is None:
            return None
        text, code, unit = rewritten
        try:
            stopped = prove(record, finding, unit, text, rewrite.verify)
        except Exception:  # it can't be put in the place of what ran, or what it runs raises
            return None
        if stopped is None:
            needed = f" (it needs: {'; '.join(dict.fromkeys(unit.imports))})" if unit.imports else ""
            call = ", ".join(f"{name}={value}" for name, value in unit.new_parameters.items())
            called = f": call {record.evidence.name}(…, {call})" if call else ""
            called += ", with another key for each call" if "=jax.random." in call else ""
            return replace(finding.fix, text=rewrite.text + called + needed, code=code, diff=_diff(original, text))
        unit, place = replace(unit, file=stopped.file, text=text), stopped
    return None


def _apply(rewrite: Rewrite, whole: Unit, finding: Finding) -> tuple[str, str, Unit] | None:
    """The file's text and the function's own after a rewrite; None if it isn't certain."""
    # At a place further on, in a text that is rewritten already, another rewrite for the same rule may be the one.
    others = [other for other in rewrites() if other.rule == finding.rule and other is not rewrite]
    for candidate in [rewrite, *others] if finding.file.startswith("<rewritten ") else [rewrite]:
        try:
            unit = unit_at(whole, finding.line)
            changed = candidate.make(unit, finding)
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
    lines = difflib.unified_diff(before, after, name, name, n=2)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)
