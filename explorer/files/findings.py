"""Findings as plain values, JSON and SARIF, and back; checks as JSON, SARIF and Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote

from explorer.errors import UnreadableTextError
from explorer.files.container import dataclass_from, text, texts
from explorer.files.disk import parse_json
from explorer.files.reports import report_json
from explorer.model.findings import SEVERITIES, Finding, Findings, Fix
from explorer.model.golden import Change, CheckResult
from explorer.model.text import brief
from explorer.model.units import count_text

FINDINGS_FORMAT = 1


def to_dict(findings: Findings) -> dict[str, Any]:
    return {
        "function": findings.function,
        "findings": [*map(asdict, findings)],
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
    # The first captures lack `failure` and `asked`.
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


_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def to_sarif(findings: Findings) -> str:
    """Return findings as SARIF; rule failures and a failed trace are notifications of an unsuccessful invocation."""
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
        finding.evidence and f"Evidence: {finding.evidence}",
        finding.fix.text and f"Fix: {finding.fix.text}",
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
    """Return the region of a finding; columns only in ASCII lines, since SARIF counts characters and we UTF-8 bytes."""
    region = {"startLine": finding.line}
    whole = (finding.end_line, finding.end_column) <= (finding.line, finding.column)
    # Our columns count bytes of UTF-8, SARIF's count characters: equal for ASCII.
    if not whole and finding.text.isascii():
        region |= {"startColumn": finding.column + 1, "endLine": finding.end_line, "endColumn": finding.end_column + 1}
    return region


def _uri(finding: Finding) -> str:
    """Return the URI of a finding's file: relative to the working folder if the file is in it, as code hosts need."""
    path = Path(finding.file)
    path = path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
    return path.as_uri() if path.is_absolute() else quote(path.as_posix(), safe="/", errors="replace")


def check_json(*results: CheckResult) -> str:
    """Return the JSON report of checks, with one entry for each golden file."""
    return report_json("check", results)


def check_sarif(*results: CheckResult) -> str:
    """Return SARIF 2.1.0 with a result for each regression, on the line of its cause."""
    findings = [_finding(change) for result in results for change in result.regressions]
    return to_sarif(Findings(findings, ", ".join(result.now.function for result in results)))


def _finding(change: Change) -> Finding:
    return Finding(
        rule=f"golden-{change.measure.replace('_', '-')}",
        severity="error",
        message=f"{change.target}: {change.text}".removeprefix(": "),
        file=change.file,
        line=change.line,
        evidence="; ".join(filter(None, (change.cause, change.where))),
        fix=Fix("python -m explorer check --update, if this is intended"),
    )


def check_markdown(*results: CheckResult) -> str:
    """Return Markdown with a heading and a table of changes for each golden file."""
    return "\n".join(line for result in results for line in _markdown(result))


def _markdown(result: CheckResult) -> list[str]:
    sign = "✅" if result.passed else "❌"
    lines = [f"### {sign} `{result.now.function}`: {verdict(result)}", ""]
    if result.regressions or result.gains:
        lines += ["| | what | cause | line |", "|---|---|---|---|"]
        lines += [_row("❌", change) for change in result.regressions] + [_row("▼", change) for change in result.gains]
        lines.append("")
    lines += [f"*{note}*" for note in result.notes]
    return lines


def _row(sign: str, change: Change) -> str:
    place = f"{change.file}:{change.line}" if change.file else ""
    what = f"{change.target}: {change.text}".removeprefix(": ")
    return f"| {sign} | {_cell(what)} | {_cell(change.cause)} | {_cell(place)} |"


def _cell(text: str) -> str:
    """Return text for a cell of a Markdown table, in one line, with bars and HTML escaped."""
    return escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def verdict(result: CheckResult) -> str:
    """Return the outcome of a check in words: `as recorded`, `2 regressions, 1 gain`, or gains with a hint."""
    worse, better = count_text(len(result.regressions), "regression"), count_text(len(result.gains), "gain")
    if result.regressions:
        return f"{worse}, {better}" if result.gains else worse
    return f"{better}: update the golden file to keep them" if result.gains else "as recorded"
