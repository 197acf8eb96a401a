"""How a check is shown: a verdict, and each change with its cause and line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from explorer.files.check_report import verdict
from explorer.model.golden import Change, CheckResult
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_HEAD = ("target", "what", "where")


class CheckView(View[CheckResult]):
    """The verdict; then each cause with its line, and a table of what it changed."""

    def title(self, value: CheckResult) -> str:
        return f"{value.now.function} beside {value.name}"

    def html(self, value: CheckResult) -> str:
        parts = [f"<p><strong>{escape(value.now.function)}: {escape(verdict(value))}.</strong></p>"]
        for sign, group in _groups(value):
            rows = [(change.target, change.text, change.where) for change in group]
            title = " ".join(filter(None, (sign, _place(group[0]), group[0].cause)))
            parts.append(html_table(Table(title, _HEAD, rows), is_open=True))
        parts += [f"<p>{escape(note)}</p>" for note in value.notes]
        return f'<div class="explorer-static">{"".join(parts)}</div>'


def check_text(result: CheckResult) -> str:
    """The verdict; then each cause with its line, and what it changed."""
    lines = [f"{result.now.function}: {verdict(result)}"]
    for sign, group in _groups(result):
        lines.append(" ".join(filter(None, (sign, _place(group[0]), group[0].cause))))
        for change in group:
            lines.append(f"    {f'{change.target}: ' if change.target else ''}{change.text}")
            lines += [f"        {change.where}"] if change.where else []
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def _groups(result: CheckResult) -> Iterator[tuple[str, Sequence[Change]]]:
    """What became worse, then what became better, by cause."""
    for sign, changes in (("✗", result.regressions), ("▼", result.gains)):
        by_cause: dict[tuple[str, str, int], list[Change]] = {}
        for change in changes:
            by_cause.setdefault((change.cause, change.file, change.line), []).append(change)
        yield from ((sign, group) for group in by_cause.values())


def _place(change: Change) -> str:
    return f"{change.file}:{change.line}:" if change.file else ""
