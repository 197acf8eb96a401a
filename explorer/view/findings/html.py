"""Findings as HTML. Its buttons ask Python for a rewrite, which is proven on request."""

from __future__ import annotations

import contextlib
import io
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import cache
from html import escape
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import ref

from explorer.errors import ExplorerError, ViewError
from explorer.files.disk import read_text
from explorer.model.findings import SEVERITIES, Finding, Findings, Fix
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
from explorer.view.page import bundle
from explorer.view.session import in_kernel, ipython_shell, open_wire, shown

_STATIC = Path(__file__).parents[1] / "static"
_UNFOLDED = 4  # findings that are unfolded
_SCROLLED = 12  # from there on they scroll, so that a notebook stays one
_MAX_SHOWN = 100  # findings that are shown whole
# Only such addresses become links: findings may come from a file, and `javascript:` would run in the page.
_SITES = ("https://", "http://")


@cache
def _style() -> str:
    return read_text(_STATIC / "findings.css").strip()


def fragment(findings: Findings, name: str = "") -> str:
    """Return the HTML of findings for one output; `name` identifies the connection to Python."""
    findings = printable(findings)
    groups = group_by_file(findings)
    body = "".join(_group(findings, group, len(groups) > 1) for group in groups)
    body = body or f'<p class="xf-nothing">{escape(describe_no_findings(findings))}</p>'
    more = findings[_MAX_SHOWN:]
    faults = "".join(f'<p class="xf-fault">{escape(fault)}</p>' for fault in _faults(findings))
    kind = "xf-list xf-many" if len(findings) > _SCROLLED else "xf-list"
    content = f'{_head(findings, groups)}<div class="{kind}">{body}{_rest(more)}</div>{faults}'
    return (
        # Lab's own shortcuts must not take the keys typed here.
        f'<div class="explorer-findings" data-lm-suppress-shortcuts="true" data-explorer-findings="{escape(name)}">'
        f"<style>{_style()}</style>{content}</div>"
        f'<script type="module">{bundle("findings")}</script>'
    )


def _faults(findings: Findings) -> list[str]:
    failed = [f"the trace failed: {findings.failure}"] if findings.failure else []
    return failed + [f"a rule failed, its findings are missing: {fault}" for fault in findings.faults]


def _group(findings: Findings, group: Group, is_named: bool) -> str:
    whole = [(number, finding) for number, finding in group.numbered if number < _MAX_SHOWN]
    name = f'<p class="xf-file">{escape(group.label)}</p>' if is_named and group.label and whole else ""
    return name + "".join(_finding(findings, number, finding) for number, finding in whole)


def _head(findings: Findings, groups: Sequence[Group]) -> str:
    counts = Counter(finding.severity for finding in findings)
    summary = "".join(
        _count(name, SIGNS[name], f"{count:,} {name}{'s' * (count > 1)}") + " "
        for name in SEVERITIES
        if (count := counts[name])
    )
    none = ("warning", SIGNS["warning"], "could not be traced") if findings.failure else ("none", "✓", "nothing found")
    place = f'<span class="xf-file">{escape(groups[0].label)}</span>' if len(groups) == 1 and groups[0].label else ""
    name = f"<code>{escape(findings.function)}</code> " if findings.function else ""
    name += f"for <code>{escape(findings.target)}</code> " if findings.target else ""
    return f'<div class="xf-head">{name}{summary or _count(*none)}{place}</div>'


def _count(kind: str, sign: str, what: str) -> str:
    return f'<span class="xf-count xf-{kind}"><b aria-hidden="true">{sign}</b> {what}</span>'


def _finding(findings: Findings, number: int, finding: Finding) -> str:
    line = f"line {finding.line}" if finding.line else ""
    seen = f'<div class="xf-fact"><b>seen</b> <span>{code_html(finding.evidence)}</span></div>'
    body = _source(finding) + seen * bool(finding.evidence) + _fix(findings, number, finding) + _foot(finding)
    return (
        f'<details class="xf-one xf-{finding.severity}"{" open" if number < _UNFOLDED else ""}>'
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


def _fix(findings: Findings, number: int, finding: Finding) -> str:
    fix = finding.fix
    text = f'<div class="xf-fact xf-cure"><b>fix</b> <span>{code_html(fix.text)}</span></div>' if fix.text else ""
    change = _change(fix.diff) if fix.diff else ""
    code = (
        '<details class="xf-code"><summary>the fixed function</summary>'
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


_MAX_DISPLAYED = 8
# The last ones that were displayed: findings know the arguments of the function, which may be large.
_displayed: deque[Findings] = deque(maxlen=_MAX_DISPLAYED)


def connect(findings: Findings) -> str:
    """Return a new id for the page; if a fix can be requested, also open a wire to Python under this id."""
    name = uuid4().hex[:16]
    if in_kernel() and any(findings.can_fix(finding) and not finding.fix.code for finding in findings):
        _displayed.append(findings)
        # ipywidgets keeps open wires alive, and a wire must not keep the findings.
        reference = ref(findings)

        def answer(wire: Any, message: Any, _: object) -> None:
            wire.send(_answer(reference(), message))

        wire = open_wire(name)
        wire.on_msg(answer)
        shown.add(name, wire.close)
    return name


def _answer(findings: Findings | None, message: Any) -> dict[str, Any]:
    """Return the fix that a page requests by `{"ask": "fix", "of": number}`, or `failed` with the reason."""
    request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
    number = request.get("of")
    reply: dict[str, Any] = {"of": number}
    if findings is None:
        return reply | {"failed": "These findings are no longer in memory: run the cell again."}
    if request.get("ask") != "fix" or not isinstance(number, int) or not 0 <= number < len(findings):
        return reply | {"failed": "There is no such finding."}
    try:
        # Output of the user's code in the proving trace belongs to no cell.
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            fix = findings.fix(number)
    except ExplorerError as error:
        return reply | {"failed": str(error)}
    except Exception as error:
        return reply | {"failed": f"{type(error).__name__}: {error}"}
    if not fix.code:
        return reply | {"failed": "No rewrite could be verified here. Apply the fix by hand."}
    return reply | asdict(fix)


def apply_fix(fix: Fix) -> None:
    if not fix.code:
        raise ViewError("no certain rewrite.\n  Hint: Fix.text describes the change.")
    write_next(fix.code)


def write_next(code: str) -> None:
    """Write code into a new cell below the running one, or into the next prompt of a terminal.

    Raises:
        ViewError: No IPython runs this.
    """
    shell = ipython_shell()
    if shell is None:
        raise ViewError("there is no notebook here to write a cell into.\n  Hint: Fix.code is the text.")
    shell.set_next_input(code.rstrip("\n"), replace=False)
