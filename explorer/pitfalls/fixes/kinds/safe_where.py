"""jnp.where(y > 0, jnp.sqrt(y), 0): the root gets an operand at which its derivative is finite, before the choice."""

from __future__ import annotations

import libcst as cst

from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.fixes.rewrite import Rewrite
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span
from explorer.pitfalls.gradients.faults import GradientFault, cures, fault_at
from explorer.pitfalls.gradients.guard_text import Edit


def _guard(unit: Unit, finding: Finding) -> cst.Module:
    """The operations guarded as the finding's fix tells."""
    assert unit.evidence is not None
    edits = _edits(_fault(unit.evidence, finding))
    lines = [line.encode() for line in unit.lines]
    for edit in reversed(edits):
        span = edit.span
        if edit.file != unit.file or not unit.start <= span.line <= span.end_line <= unit.end or "#" in edit.before:
            raise RewriteUncertain("it stands in another function, or has a comment inside")
        first, last = lines[span.line - 1], lines[span.end_line - 1]
        changed = first[: span.column] + edit.after.encode() + last[span.end_column :]
        lines[span.line - 1 : span.end_line] = [changed]
    removed = sum(edit.span.end_line - edit.span.line for edit in edits)
    return unit.parsed(b"".join(lines[unit.start - 1 : unit.end - removed]).decode())


def _fault(evidence: Evidence, finding: Finding) -> GradientFault:
    fault = fault_at(evidence.gradient_faults, finding.file, finding_span(finding))
    if fault is None:
        raise RewriteUncertain("it was found in another way")
    return fault


def _edits(fault: GradientFault) -> list[Edit]:
    if fault.cure is None:
        raise RewriteUncertain("no guard that was run has the same value and a finite gradient")
    return sorted(fault.cure.edits, key=lambda edit: edit.span)


def _verify(before: Evidence, after: Evidence, finding: Finding, file: str) -> None:
    """Run both texts' programs: raises unless the value is the same, and the gradient finite where the value is."""
    fault = _fault(before, finding)
    above = [edit.span for edit in _edits(fault) if edit.span.end_line < finding.line]
    line = finding.line - sum(span.end_line - span.line for span in above)
    if not cures(fault, after.program, file, line):
        raise RewriteUncertain("run, it has another value, or no finite gradient")


REWRITES = (
    Rewrite("nan-gradient", "the operand is one with a finite derivative where the result isn't used", _guard, _verify),
)
