"""Findings as text for a terminal."""

from __future__ import annotations

from explorer.model.findings import Finding, Findings


def to_text(findings: Findings, width: int = 100) -> str:
    """A paragraph for each finding under one line of counts; then the rules that raised.

    `width` wraps no line: an editor reads `file:line:column` of them.
    """
    parts = [repr(findings)[len("Findings(") : -1], *map(_paragraph, findings)]
    parts += [f"a rule failed, its findings are missing: {fault}" for fault in findings.faults]
    return "\n\n".join(parts)


def finding_text(finding: Finding, width: int = 100) -> str:
    """Its paragraph alone: one finding has no function's name above it, and nothing to count."""
    return _paragraph(finding)


def _paragraph(finding: Finding) -> str:
    place = f"{finding.label or finding.file}:{finding.line}:{finding.column + 1}: " if finding.line else ""
    rows = [f"{place}{finding.severity} {finding.code} {finding.rule}", f"    {finding.message}"]
    if finding.text:
        rows += [f"    > {finding.text}"]
    fix = "\n".join(filter(None, [finding.fix.text, finding.fix.diff])).rstrip("\n").replace("\n", "\n" + " " * 10)
    details = (("seen:", finding.evidence), ("cure:", fix), ("read:", finding.documentation))
    rows += [f"    {name:<5} {text}" for name, text in details if text]
    return "\n".join(rows)
