"""Findings as SARIF 2.1.0, the format in which code hosts and editors take what linters say.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from explorer.model.findings import Finding, Findings

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def to_sarif(findings: Findings) -> str:
    """One run as JSON; rules that raised and a trace that failed are notifications of an unsuccessful invocation."""
    rules = {_id(finding): finding for finding in findings}
    index = {code: i for i, code in enumerate(sorted(rules))}
    driver = {"name": "explorer", "rules": [_rule(code, rules[code]) for code in index]}
    run: dict[str, Any] = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, index[_id(finding)]) for finding in findings],
    }
    failed = [*findings.faults, *filter(None, [findings.failure])]
    if failed:
        notifications = [{"level": "error", "message": {"text": fault}} for fault in failed]
        run["invocations"] = [{"executionSuccessful": False, "toolExecutionNotifications": notifications}]
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1)


def _id(finding: Finding) -> str:
    return finding.code or finding.rule


def _rule(code: str, finding: Finding) -> dict[str, Any]:
    help_uri = {"helpUri": finding.documentation} if finding.documentation.startswith("https://") else {}
    return {"id": code, "name": finding.rule, **help_uri}


def _result(finding: Finding, index: int) -> dict[str, Any]:
    parts = [
        finding.message,
        finding.evidence and f"Seen: {finding.evidence}",
        finding.fix.text and f"Cure: {finding.fix.text}",
    ]
    result: dict[str, Any] = {
        "ruleId": _id(finding),
        "ruleIndex": index,
        "level": finding.severity,  # SARIF has the same three
        "message": {"text": "\n".join(filter(None, parts))},
    }
    if finding.file and finding.line:
        place = {"artifactLocation": {"uri": _uri(finding)}, "region": _region(finding)}
        result["locations"] = [{"physicalLocation": place}]
    return result


def _region(finding: Finding) -> dict[str, int]:
    """Columns count characters from 1 there, and UTF-8 bytes from 0 here; they agree in a line of ASCII."""
    region = {"startLine": finding.line}
    whole = (finding.end_line, finding.end_column) <= (finding.line, finding.column)
    if not whole and finding.text.isascii():
        region |= {"startColumn": finding.column + 1, "endLine": finding.end_line, "endColumn": finding.end_column + 1}
    return region


def _uri(finding: Finding) -> str:
    """A file as a URI, relative where it can be: a code host knows files by their path in the repository."""
    path = Path(finding.file)
    path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/", errors="replace")
