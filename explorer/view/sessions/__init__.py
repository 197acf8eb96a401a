"""Views of a session and its report: page, text and live view."""

from __future__ import annotations

from typing import Any

from explorer.model.results.session import SessionReport
from explorer.view.interface import View
from explorer.view.session import in_kernel
from explorer.view.sessions.html import fragment, templates
from explorer.view.sessions.link import LiveSession, link_to

__all__ = ["SessionReportView", "SessionView"]


class SessionView(View[LiveSession]):
    """View of the session; with a kernel, a click opens an item."""

    def title(self, value: LiveSession) -> str:
        return "session"

    def html(self, value: LiveSession) -> str:
        report = value.report()
        return fragment(report, after=templates(value, report))

    def output(self, value: LiveSession) -> dict[str, Any]:
        return {"text/html": fragment(value.report(), link_to(value).id if in_kernel() else "")}


class SessionReportView(View[SessionReport]):
    """View of a session's report, whose items don't open."""

    def title(self, value: SessionReport) -> str:
        return "session"

    def html(self, value: SessionReport) -> str:
        return fragment(value)
