"""Findings in a terminal, most severe first, with the marked line, the evidence and the fix."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from explorer.model.findings import Finding, Findings
from explorer.view.findings.text_parts import (
    SIGNS,
    changed_lines,
    describe_no_findings,
    format_counts,
    group_by_file,
    lines_of,
    printable,
    silencing,
    split_code,
)
from explorer.view.findings.text_parts import Group as FileGroup

_MAX_SHOWN = 30  # findings that are shown whole
_STYLES = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}
_CHANGES = {"+": "green", "-": "red", "@": "dim"}


def tree(findings: Findings) -> RenderableType:
    """Return what `rich.print(findings)` shows."""
    findings = printable(findings)
    count = format_counts(findings) or ("could not be traced" if findings.failure else "nothing found")
    target = f" for {findings.target}" if findings.target else ""
    parts: list[RenderableType] = [
        Text.assemble((findings.function, "bold"), target, "  " if findings.subject else "", count)
    ]
    if findings.failure:
        parts.append(Text(f"the trace failed: {findings.failure}", "yellow"))
    if not findings:
        parts.append(Text(describe_no_findings(findings), "dim"))
    for group in group_by_file(findings):
        parts += _paragraphs(group)
    if len(findings) > _MAX_SHOWN:
        parts += [Text(""), Text(f"and {len(findings) - _MAX_SHOWN:,} more", "dim")]
    parts += [Text(f"a rule failed, its findings are missing: {fault}", "yellow") for fault in findings.faults]
    return Group(*parts)


def _paragraphs(group: FileGroup) -> list[RenderableType]:
    whole = (_finding(finding, group.label) for number, finding in group.numbered if number < _MAX_SHOWN)
    return [part for paragraph in whole for part in (Text(""), paragraph)]


def finding_tree(finding: Finding) -> RenderableType:
    return tree(Findings((finding,)))


def _finding(finding: Finding, label: str) -> RenderableType:
    place = f"{label}, line {finding.line}" if finding.line else label
    head = Text.assemble((f"{SIGNS[finding.severity]} {finding.severity}", _STYLES[finding.severity]), "  ", place)
    head.append(f"  {finding.code} {finding.rule}", "dim")
    details = Table.grid(padding=(0, 2))
    details.add_column(style="dim", no_wrap=True)
    details.add_column()
    for name, text in (("seen", finding.evidence), ("fix", finding.fix.text)):
        if text:
            details.add_row(name, _bold_code(text))
    if finding.fix.diff:
        signed = changed_lines(finding.fix.diff)
        rows = ((f"{sign if sign != '@' else ' '} {text}\n", _CHANGES.get(sign, "")) for sign, text in signed)
        change = Text.assemble(*rows, no_wrap=True)
        change.rstrip()
        details.add_row("", change)
    if finding.documentation:
        details.add_row("read", Text(finding.documentation, overflow="fold"))
    details.add_row("silence", Text(silencing(finding)))  # brackets in a str would be its markup
    body = Group(_bold_code(finding.message), *_lines(finding), details)
    return Group(head, Padding(body, (0, 0, 0, 2)))


def _lines(finding: Finding) -> list[RenderableType]:
    rows: list[RenderableType] = []
    for line in lines_of(finding):
        number = f"{line.number:>4} │ " if line.number else "     │ "
        parts = (number, "dim"), line.before, (line.piece, "bold"), line.after
        rows.append(Text.assemble(*parts, no_wrap=True, overflow="ellipsis"))
        if line.carets:
            rows.append(Text.assemble(("     │ ", "dim"), (line.carets, _STYLES[finding.severity]), no_wrap=True))
    return rows


def _bold_code(text: str) -> Text:
    return Text.assemble(*((part, "bold" if is_code else "") for part, is_code in split_code(text)))
