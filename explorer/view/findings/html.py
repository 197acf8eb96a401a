"""Findings as HTML that is complete as it stands; where a script runs, it adds the buttons that write the cures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from html import escape
from pathlib import Path

from explorer.files.disk import read_text
from explorer.model.findings import SEVERITIES, Finding, Findings
from explorer.view.findings.text_parts import (
    SIGNS,
    Group,
    changed_lines,
    code_html,
    describe_no_findings,
    group_by_file,
    lines_of,
    printable,
    silencing,
)
from explorer.view.scripts import bundle

_STATIC = Path(__file__).parents[1] / "static"
_OPEN = 4  # findings that are unfolded
_SCROLLED = 12  # from there on they scroll, so that a notebook stays one
_MOST = 100  # findings that are shown whole
_SITES = ("https://", "http://")


@cache
def _style() -> str:
    return read_text(_STATIC / "findings.css").strip()


def fragment(findings: Findings, name: str = "") -> str:
    """The HTML of one output; `name` is what a wire to Python is known by."""
    findings = printable(findings)
    groups = group_by_file(findings)
    body = "".join(_group(findings, group, len(groups) > 1) for group in groups) or _nothing(findings)
    more = findings[_MOST:]
    faults = "".join(f'<p class="xf-fault">{escape(fault)}</p>' for fault in _faults(findings))
    kind = "xf-list xf-many" if len(findings) > _SCROLLED else "xf-list"
    content = f'{_head(findings, groups)}<div class="{kind}">{body}{_rest(more)}</div>{faults}'
    return (
        # Lab's own shortcuts must not take the keys typed here.
        f'<div class="explorer-findings" data-lm-suppress-shortcuts="true" data-explorer-findings="{escape(name)}">'
        f"<style>{_style()}</style>{content}</div>"
        f'<script type="module">{bundle("findings")}</script>'
    )


def _head(findings: Findings, groups: Sequence[Group]) -> str:
    counts = Counter(finding.severity for finding in findings)
    summary = "".join(
        f'<span class="xf-count xf-{name}"><b aria-hidden="true">{SIGNS[name]}</b> {count:,} '
        f"{name}{'s' if count > 1 else ''}</span> "
        for name in SEVERITIES
        if (count := counts[name])
    )
    place = f'<span class="xf-file">{escape(groups[0].label)}</span>' if len(groups) == 1 and groups[0].label else ""
    name = f"<code>{escape(findings.function)}</code> " if findings.function else ""
    name += f"for <code>{escape(findings.target)}</code> " if findings.target else ""
    return f'<div class="xf-head">{name}{summary or _none(findings)}{place}</div>'


def _none(findings: Findings) -> str:
    kind, sign, what = "none", "✓", "nothing found"
    if findings.failure:
        kind, sign, what = "warning", SIGNS["warning"], "could not be traced"
    return f'<span class="xf-count xf-{kind}"><b aria-hidden="true">{sign}</b> {what}</span>'


def _nothing(findings: Findings) -> str:
    return f'<p class="xf-nothing">{escape(describe_no_findings(findings))}</p>'


def _faults(findings: Findings) -> list[str]:
    failed = [f"the trace failed: {findings.failure}"] if findings.failure else []
    return failed + [f"a rule failed, its findings are missing: {fault}" for fault in findings.faults]


def _group(findings: Findings, group: Group, is_named: bool) -> str:
    whole = [(number, finding) for number, finding in group.numbered if number < _MOST]
    name = f'<p class="xf-file">{escape(group.label)}</p>' if is_named and group.label and whole else ""
    return name + "".join(_finding(findings, number, finding) for number, finding in whole)


def _finding(findings: Findings, number: int, finding: Finding) -> str:
    line = f"line {finding.line}" if finding.line else ""
    body = _source(finding) + _facts(finding) + _cure(findings, number, finding) + _foot(finding)
    return (
        f'<details class="xf-one xf-{finding.severity}"{" open" if number < _OPEN else ""}>'
        f'<summary><span class="xf-what"><b class="xf-sign"><span aria-hidden="true">{SIGNS[finding.severity]}</span> '
        f'{finding.severity}</b> <span class="xf-message">{code_html(finding.message)}</span></span> '
        f'<span class="xf-place">{line}</span></summary>'
        f'<div class="xf-body">{body}</div></details>'
    )


def _source(finding: Finding) -> str:
    rows: list[str] = []
    for line in lines_of(finding):
        number = f'<span class="xf-number">{line.number or ""}</span> '
        piece = f"<mark>{escape(line.piece)}</mark>" if line.piece else ""
        rows.append(f"{number}{escape(line.before)}{piece}{escape(line.after)}")
    return _lines("xf-line", rows) if rows else ""


def _facts(finding: Finding) -> str:
    return (
        f'<div class="xf-fact"><b>seen</b> <span>{code_html(finding.evidence)}</span></div>' if finding.evidence else ""
    )


def _cure(findings: Findings, number: int, finding: Finding) -> str:
    fix = finding.fix
    text = f'<div class="xf-fact xf-cure"><b>cure</b> <span>{code_html(fix.text)}</span></div>' if fix.text else ""
    change = _change(fix.diff) if fix.diff else ""
    code = (
        '<details class="xf-code"><summary>the function with it</summary>'
        f'<pre class="xf-text">{escape(fix.code)}</pre></details>'
        if fix.code
        else ""
    )
    asks = f' data-fix="{number}"' if findings.can_fix(finding) else ""
    return f'<div class="xf-fix"{asks}>{text}{change}{code}</div>' if text or change or code else ""


def _change(diff: str) -> str:
    kinds = {"+": "xf-plus", "-": "xf-minus", "@": "xf-cut"}
    rows = (
        f'<span class="{kinds.get(sign, "")}">{" " if sign == "@" else sign} {escape(text)}</span>'
        for sign, text in changed_lines(diff)
    )
    return _lines("xf-diff", rows)


def _lines(kind: str, rows: Iterable[str]) -> str:
    return f'<pre class="{kind}">' + "\n".join(rows) + "</pre>"


def _foot(finding: Finding) -> str:
    page = finding.documentation
    read = (
        f'<a href="{escape(page)}" target="_blank" rel="noopener noreferrer">why: JAX’s documentation</a>'
        if page.startswith(_SITES)
        else ""
    )
    rule = escape(" ".join(filter(None, (finding.code, finding.rule))))
    return (
        f'<div class="xf-foot"><span>{rule}</span> {read} '
        f"<span>silence it: <code>{escape(silencing(finding))}</code></span></div>"
    )


def _rest(findings: Sequence[Finding]) -> str:
    """The findings past `_MOST` as a table, a row each."""
    if not findings:
        return ""
    rows = "".join(
        f"<tr><td>{finding.severity}</td><td>{escape(finding.label)}</td><td>{finding.line or ''}</td>"
        f"<td>{escape(finding.code)}</td><td>{escape(finding.message)}</td></tr>"
        for finding in findings
    )
    head = "".join(f"<th>{name}</th>" for name in ("severity", "file", "line", "rule", "what"))
    return (
        f'<details class="xf-rest"><summary>and {len(findings):,} more</summary>'
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></details>"
    )
