"""Findings as text for a terminal."""

from __future__ import annotations

from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings

__all__ = ["to_text"]


def to_text(findings: Findings) -> str:
    """A paragraph for each finding under one line of counts; then the rules that raised."""
    parts = [repr(findings)[len("Findings(") : -1], *map(_paragraph, findings)]
    parts += [f"a rule failed, its findings are missing: {fault}" for fault in findings.faults]
    return "\n\n".join(parts)


def _paragraph(finding: Finding) -> str:
    place = f"{finding.label or finding.file}:{finding.line}:{finding.column + 1}: " if finding.line else ""
    rows = [f"{place}{finding.severity} {finding.code} {finding.rule}", f"    {finding.message}"]
    if finding.text:
        rows += [f"    > {finding.text}"]
    fix = "\n".join(filter(None, [finding.fix.text, finding.fix.diff])).rstrip("\n").replace("\n", "\n" + " " * 10)
    details = (("seen:", finding.evidence), ("cure:", fix), ("read:", finding.documentation))
    rows += [f"    {name:<5} {text}" for name, text in details if text]
    return "\n".join(rows)
