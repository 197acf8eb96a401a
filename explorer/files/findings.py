"""Findings as plain values and as JSON, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from explorer.errors import UnreadableTextError
from explorer.files.disk import parse_json
from explorer.files.frames import frame_of
from explorer.files.reports import report
from explorer.files.validate import dataclass_from, text, texts
from explorer.model.findings import SEVERITIES, Finding, Findings, Fix
from explorer.model.text import brief
from explorer.model.units import count_text

_FORMAT = 1
COLUMNS = (
    "severity", "code", "rule", "message", "label", "line", "column", "text", "evidence", "fix", "documentation",
    "file",
)  # fmt: skip


def to_frame(findings: Findings) -> Any:
    """A pandas DataFrame with a row for each finding and the columns `COLUMNS`; of a fix, its text."""
    return frame_of((asdict(finding) | {"fix": finding.fix.text} for finding in findings), COLUMNS)


def to_dict(findings: Findings) -> dict[str, Any]:
    return {
        "function": findings.function,
        "findings": [asdict(finding) for finding in findings],
        "faults": list(findings.faults),
        "failure": findings.failure,
        "asked": list(findings.rules),
        "target": findings.target or None,
    }


def from_dict(values: dict[str, Any]) -> Findings:
    findings = [
        dataclass_from(Finding, {**fields, "fix": dataclass_from(Fix, fields["fix"])}) for fields in values["findings"]
    ]
    for finding in findings:
        if finding.severity not in SEVERITIES:
            raise ValueError(f"{brief(finding.severity)} is no severity")
    # Captures of the first versions say neither what failed nor which rules ran.
    failure, rules = text(values.get("failure", "")), texts(values.get("asked", []))
    target = text(values.get("target") or "")
    return Findings(findings, text(values["function"]), texts(values["faults"]), failure, rules, target=target)


def to_json(findings: Findings) -> str:
    return report.to_json("lint", {"explorer_findings": _FORMAT, "summary": _summary(findings), **to_dict(findings)})


def _summary(findings: Findings) -> list[str]:
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    counted = ", ".join(count_text(count, severity) for severity, count in counts.items() if count)
    lines = [finding.sentence for finding in findings]
    failed = [f"it could not be traced: {findings.failure}"] if findings.failure else []
    return [f"{findings.subject}: {counted or 'nothing was found'}.", *failed, *lines]


def from_json(text: str) -> Findings:
    try:
        values = parse_json(text)
        version = values["explorer_findings"]
        if version != _FORMAT:
            raise UnreadableTextError(f"these findings have format {brief(version)}; this Explorer reads {_FORMAT}.")
        return from_dict(values)
    except UnreadableTextError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableTextError(
            f"this text holds no findings: {type(error).__name__}: {error!s:.300}.\n"
            "  Hint: Findings.to_json() writes them."
        ) from None
