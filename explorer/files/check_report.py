"""What a check says, for programs and for code hosts: JSON, SARIF, and Markdown for a pull request's comment."""

from __future__ import annotations

from html import escape

from explorer.files.reports import report_json
from explorer.files.sarif import to_sarif
from explorer.model.findings import Finding, Findings, Fix
from explorer.model.golden import Change, CheckResult
from explorer.model.units import count_text


def check_json(*results: CheckResult) -> str:
    """An object with the schema's name, and one entry for each golden file."""
    return report_json("check", results)


def check_sarif(*results: CheckResult) -> str:
    """SARIF 2.1.0, a result for each regression, on the line of its cause."""
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
        fix=Fix("python -m explorer check --update, if this is meant"),
    )


def check_markdown(*results: CheckResult) -> str:
    """A heading and a table for each golden file."""
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
    """Markdown's tables end a cell at a bar, also within code; and a code host reads HTML."""
    return escape(text, quote=False).replace("|", "\\|").replace("\n", " ")


def verdict(result: CheckResult) -> str:
    """`as recorded`, or what is worse, and better, in a few words."""
    worse, better = count_text(len(result.regressions), "regression"), count_text(len(result.gains), "gain")
    if result.regressions:
        return f"{worse}, {better}" if result.gains else worse
    return f"{better}: record it anew to keep what was gained" if result.gains else "as recorded"
