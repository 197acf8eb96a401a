"""The session as a page, whose items open by a click, and as text.

A displayed session is updated after cells and compiles. Nothing is polled: the end of a cell, or a compile in the
ledger, starts one update a moment later, for everything until then; otherwise no thread runs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any
from uuid import uuid4

from explorer.files.disk import read_text
from explorer.model.events.ledger import Ledger
from explorer.model.results.session import SessionItem, SessionReport, SessionRow
from explorer.model.text import cut_end
from explorer.model.units import bytes_text, count_text, duration_text
from explorer.view.display import mimebundle
from explorer.view.interface import View
from explorer.view.ledger.link import Link, output_of, show_live
from explorer.view.page import bundle, sentence
from explorer.view.registry import view_of
from explorer.view.session import Output, in_kernel, ipython_shell

_STATIC = Path(__file__).parent / "static"
# Further functions are counted in a note: each is cheaper than these.
_MAX_ROWS = 200
_STEPS = (("trace", "trace"), ("lower", "lower"), ("compile", "XLA"))


@cache
def style() -> str:
    return read_text(_STATIC / "session.css").strip()


def fragment(report: SessionReport, name: str = "", after: str = "") -> str:
    """Return a session's HTML. `name` is the id of its wire to a kernel, or empty; `after` is more HTML, such as
    `templates`.
    """
    return (
        # Lab's own shortcuts must not take the keys typed here.
        f'<div class="explorer-session" data-lm-suppress-shortcuts="true" data-explorer-session="{escape(name)}">'
        f'<style>{style()}</style><div class="sp-live">{content(report, bool(name))}</div>{after}</div>'
        f'<script type="module">{bundle("session")}</script>'
    )


def content(report: SessionReport, is_live: bool = True) -> str:
    """Return the HTML that changes while cells run: the headline, the first 200 functions, and the notes."""
    widest = max((row.seconds for row in report.rows if isfinite(row.seconds)), default=0.0)
    rows = "".join(_row(row, widest) for row in report.rows[:_MAX_ROWS])
    left = len(report.rows) - _MAX_ROWS
    notes = [*report.notes, *([f"{count_text(left, 'more function')}, each cheaper."] if left > 0 else [])]
    paragraphs = "".join(f'<p class="xf-nothing">{sentence(note)}</p>' for note in notes)
    return f'{_head(report, is_live)}<div class="sp-rows" role="list">{rows}</div>{paragraphs}'


def _head(report: SessionReport, is_live: bool) -> str:
    headline, *rest = report.summary or ("",)
    is_on = is_live and report.watching == "now"
    watching = '<span class="sp-on"><b aria-hidden="true">●</b> watching</span> ' if is_on else ""
    more = f"<p>{sentence(' '.join(rest))}</p>" if rest else ""
    legend = "".join(f'<span><i class="sp-{step}"></i>{name}</span>' for step, name in _STEPS)
    key = f'<p class="sp-key">{watching}{legend}</p>' if report.rows or watching else ""
    return f'<div class="sp-head"><h2>{sentence(headline)}</h2>{more}{key}</div>'


def _row(row: SessionRow, widest: float) -> str:
    where = f'<span class="sp-place">{escape(row.place)}</span>' if row.place else ""
    # By `data-key` a script keeps rows open when the page is rewritten.
    key = escape(f"{row.name}|{row.file}|{row.line}")
    why = _why(row)
    return (
        f'<div class="sp-row sp-{row.basis}" role="listitem" data-key="{key}"><div class="sp-line">'
        f"<h3><code>{escape(row.name)}</code>{where}</h3>"
        f'<p class="sp-count">{_count(row)}</p><div class="sp-cost">{_cost(row, widest)}</div>'
        f'<p class="sp-run">{_measured(row)}</p></div>{why}<div class="sp-items">{_items(row.items)}</div>'
        f'<div class="sp-slot"></div></div>'
    )


def _count(row: SessionRow) -> str:
    if row.basis == "before":
        return f"{count_text(row.compiles, 'compile')} <span>unwatched</span>"
    again = f' <b class="sp-again">{count_text(row.recompiles, "recompile")}</b>' if row.recompiles else ""
    explored = " <span>explored</span>" if row.basis == "explored" else ""
    return f"{count_text(row.compiles, 'compile')}{again}{explored}"


def _cost(row: SessionRow, widest: float) -> str:
    if not isfinite(row.seconds):
        return "<span>not known</span>"
    parts = "".join(
        f'<i class="sp-{step}" style="width:{100 * getattr(row, step) / widest:.2f}%" '
        f'title="{name} {duration_text(getattr(row, step))}"></i>'
        for step, name in _STEPS
        if widest > 0 and getattr(row, step) > 0
    )
    return f"<b>{duration_text(row.seconds)}</b><span class='sp-bar' aria-hidden='true'>{parts}</span>"


def _measured(row: SessionRow) -> str:
    facts = [
        f"runs {duration_text(row.run)}" * isfinite(row.run),
        bytes_text(int(row.memory)) if isfinite(row.memory) else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def _why(row: SessionRow) -> str:
    if not row.why:
        return ""
    cure = f'<details class="xf-code"><summary>fix</summary><pre>{escape(row.cure)}</pre></details>' if row.cure else ""
    return f'<div class="sp-why"><p>{sentence(row.why)}</p>{cure}</div>'


def _items(items: Sequence[SessionItem]) -> str:
    """Return a `<span>` for each item, joined; the script makes it a button if a kernel or the page can open it."""
    return "".join(
        f'<span class="sp-item sp-is-{escape(item.kind.replace(" ", "-"))}" data-open="{escape(item.key)}">'
        f"{escape(item.text)}</span>"
        for item in items
    )


_MAX_PAGES = 24_000_000  # characters of all items' pages: a browser still opens this at once


def templates(session: Any, report: SessionReport) -> str:
    """Return a `<template>` for each item, joined: its view as HTML, or a sentence if it fails or there is no room."""
    parts: list[str] = []
    room = _MAX_PAGES
    for item in (item for row in report.rows for item in row.items):
        try:
            with session.unseen():  # showing a capture may compile
                value: object = session.open(item.key)
                html = view_of(type(value)).html(value)
        except Exception as error:  # shown in place of the item
            html = f'<p class="xf-nothing">{escape(f"{type(error).__name__}: {error}")}</p>'
        if len(html) > room:
            html = '<p class="xf-nothing">Too large for this page; save it separately with to_html.</p>'
        room -= len(html)
        parts.append(f'<template data-page="{escape(item.key)}">{html}</template>')
    return "".join(parts)


_MAX_TEXT_ROWS = 40
_NAME = 28  # characters


def session_text(session: Any, width: int = 100) -> str:
    return report_text(session.report(), width)


def report_text(report: SessionReport, width: int = 100) -> str:
    """Return the report as text: the summary, a table of the first 40 functions, and the notes.

    Rows of the table are cut at `width` characters.
    """
    lines = [sentence.replace("`", "") for sentence in report.summary]
    if report.rows:
        lines += [
            "",
            f"{'function':<{_NAME}} {'compiled':>14} {'seconds':>9}  {'a call':>9} {'memory':>9}  items",
        ]
    lines += [line for row in report.rows[:_MAX_TEXT_ROWS] for line in _lines(row, width)]
    if len(report.rows) > _MAX_TEXT_ROWS:
        lines.append(f"and {count_text(len(report.rows) - _MAX_TEXT_ROWS, 'more function')}")
    return "\n".join([*lines, *report.notes])


def _lines(row: SessionRow, width: int) -> list[str]:
    again = f" ({row.recompiles:,} again)" if row.recompiles else ""
    seconds = duration_text(row.seconds) if isfinite(row.seconds) else "–"
    run = duration_text(row.run) if isfinite(row.run) else ""
    memory = bytes_text(int(row.memory)) if isfinite(row.memory) else ""
    items = ", ".join(item.text for item in row.items)
    count = f"{row.compiles:,}{again}"
    line = f"{cut_end(row.name, _NAME):<{_NAME}} {count:>14} {seconds:>9}  {run:>9} {memory:>9}  {items}".rstrip()
    more = (("", row.place), ("", row.why.replace("`", "")), ("fix: ", row.cure.partition("\n")[0]))
    lines = [line, *(f"    {label}{text}" for label, text in more if text)]
    return [cut_end(text, width) for text in lines]


_MOMENT = 0.4  # seconds in which compiles are gathered


def open_item(session: Any, key: str) -> dict[str, str]:
    """Return `{"html": …}` with the view of an item, or `{"failed": reason}`."""
    return output_of(lambda: session.open(key), session.unseen())


class SessionLink(Link):
    """Link of the session, updated by the ends of cells and by compiles."""

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._timer: threading.Timer | None = None
        self._followed: Ledger | None = None
        ipython_shell().events.register("post_run_cell", self._after_cell)

    def show(self) -> None:
        """Display the page in the running cell; an earlier output stays as it is."""
        self._outputs.clear()
        self.keep(Output(f"explorer-{self.id}-{uuid4().hex[:6]}", lambda: mimebundle(self._source)))

    def state(self) -> object:
        with self._lock:
            ledger = self._source.ledger
            if ledger is not None and ledger is not self._followed:
                self._followed = ledger
                ledger.listen(self._soon)
            return self._send_html(content(self._source.report()))

    def _soon(self, _: object) -> None:
        with self._lock:
            # The ledger calls this within the user's call, so only a timer is started here.
            if self._timer is None:
                self._timer = threading.Timer(_MOMENT, self._update)
                self._timer.daemon = True
                self._timer.start()

    def _update(self) -> None:
        # Cleared before sending, so that a compile meanwhile starts another update.
        with self._lock:
            self._timer = None
        with suppress(Exception):  # a failed update must not stop the user's program
            self.send()

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the item that a page requests by `{"ask": "open", "of": key}`; None for other requests."""
        key = str(request.get("of"))
        return {"of": key, **open_item(self._source, key)} if request.get("ask") == "open" else None


def display_live(session: Any) -> None:
    """Display a session that is kept up to date; see `show_live`."""
    show_live(SessionLink.of, session)


class SessionView(View[Any]):
    """View of the session (`explorer.sessions.session.Session`); with a kernel, a click opens an item."""

    def title(self, value: Any) -> str:
        return "session"

    def html(self, value: Any) -> str:
        report = value.report()
        return fragment(report, after=templates(value, report))

    def output(self, value: Any) -> dict[str, Any]:
        return {"text/html": fragment(value.report(), SessionLink.of(value).id if in_kernel() else "")}


class SessionReportView(View[SessionReport]):
    """View of a session's report, whose items don't open."""

    def title(self, value: SessionReport) -> str:
        return "session"

    def html(self, value: SessionReport) -> str:
        return fragment(value)
