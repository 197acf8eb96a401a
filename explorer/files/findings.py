"""Findings as plain values and as JSON, and back."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from explorer.errors import UnreadableTextError
from explorer.files.disk import parse_json
from explorer.files.reports import report_json
from explorer.files.validate import dataclass_from, text, texts
from explorer.model.findings import SEVERITIES, Finding, Findings, Fix
from explorer.model.text import brief

FINDINGS_FORMAT = 1


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
    return report_json("lint", findings)


def from_json(text: str) -> Findings:
    try:
        values = parse_json(text)
        version = values["explorer_findings"]
        if version != FINDINGS_FORMAT:
            raise UnreadableTextError(
                f"these findings have format {brief(version)}; this Explorer reads {FINDINGS_FORMAT}."
            )
        return from_dict(values)
    except UnreadableTextError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise UnreadableTextError(
            f"this text holds no findings: {type(error).__name__}: {error!s:.300}.\n"
            "  Hint: Findings.to_json() writes them."
        ) from None
