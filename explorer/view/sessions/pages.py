"""What a page without a kernel opens: each item's own page, folded into the session's."""

from __future__ import annotations

from contextlib import AbstractContextManager
from html import escape
from typing import Protocol

from explorer.model.results.session import SessionReport
from explorer.view.registry import view_of

_MOST = 24_000_000  # characters of all together: a page that a browser still opens at once


class OpensItems(Protocol):
    """A session: `explorer.sessions.session.Session`, which is above this floor."""

    def open(self, key: str) -> object: ...
    def unseen(self) -> AbstractContextManager[None]: ...


def templates(session: OpensItems, report: SessionReport) -> str:
    """A `<template>` for each item that can be shown, the dearest functions first, as long as there is room."""
    parts: list[str] = []
    room = _MOST
    for item in (item for row in report.rows for item in row.items):
        try:
            with session.unseen():  # what showing a capture compiles is not the user's
                value: object = session.open(item.key)
                html = view_of(type(value)).html(value)
        except Exception as error:  # it says why where it would stand
            html = f'<p class="xf-nothing">{escape(f"{type(error).__name__}: {error}")}</p>'
        if len(html) > room:
            html = '<p class="xf-nothing">This page has no room for it: save it by itself, with to_html.</p>'
        room -= len(html)
        parts.append(f'<template data-page="{escape(item.key)}">{html}</template>')
    return "".join(parts)
