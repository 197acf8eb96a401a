"""Findings as text for a terminal, and as a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from explorer.errors import MissingPackageError
from explorer.model.findings.finding import Finding
from explorer.model.findings.findings import Findings

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "to_frame", "to_text"]

COLUMNS = (
    "severity", "code", "rule", "message", "label", "line", "column", "text", "evidence", "fix", "documentation",
    "file",
)  # fmt: skip


def to_text(findings: Findings) -> str:
    parts = [repr(findings)[len("Findings(") : -1], *map(_one, findings)]
    parts += [f"a rule failed, its findings are missing: {fault}" for fault in findings.faults]
    return "\n\n".join(parts)


def _one(finding: Finding) -> str:
    place = f"{finding.label or finding.file}:{finding.line}:{finding.column + 1}: " if finding.line else ""
    rows = [f"{place}{finding.severity} {finding.code} {finding.rule}", f"    {finding.message}"]
    if finding.text:
        rows += [f"    > {finding.text}"]
    rows += [f"    {name:<5} {told}" for name, told in _details(finding) if told]
    return "\n".join(rows)


def _details(finding: Finding) -> list[tuple[str, str]]:
    fix = "\n".join(filter(None, [finding.fix.text, finding.fix.diff]))
    return [
        ("seen:", finding.evidence),
        ("cure:", fix.rstrip("\n").replace("\n", "\n" + " " * 10)),
        ("read:", finding.documentation),
    ]


def to_frame(findings: Findings) -> pd.DataFrame:
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackageError(
            "Findings.to_frame needs pandas.\n  Hint: pip install pandas, or look at Findings.to_dict()."
        ) from None
    rows = [asdict(one) | {"fix": one.fix.text} for one in findings]
    return pd.DataFrame([[row[name] for name in COLUMNS] for row in rows], columns=list(COLUMNS))
