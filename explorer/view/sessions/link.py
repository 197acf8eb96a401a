"""The displayed session: the page is updated after cells and compiles, and opens clicked items.

Nothing is polled. The end of a cell, or a compile in the ledger, starts one update a moment later, for everything
until then; otherwise no thread runs.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, suppress
from typing import Any, Protocol
from uuid import uuid4

from explorer.model.events.ledger import Ledger
from explorer.model.results.session import SessionReport
from explorer.view.display import mimebundle
from explorer.view.ledger.link import output_html
from explorer.view.session import Output, in_kernel, ipython_shell, open_wire
from explorer.view.sessions.html import content

_MOMENT = 0.4  # seconds in which compiles are gathered


class LiveSession(Protocol):
    """The session, `explorer.sessions.session.Session`, which is on a higher floor."""

    @property
    def ledger(self) -> Ledger | None: ...
    def report(self) -> SessionReport: ...
    def open(self, key: str) -> Any: ...
    def unseen(self) -> AbstractContextManager[None]: ...


_links: dict[int, Link] = {}


def link_to(session: LiveSession) -> Link:
    """Return a session's link, made at its first display."""
    if id(session) not in _links:
        _links[id(session)] = Link(session)
    return _links[id(session)]


def display_live(session: LiveSession) -> None:
    """Display a session that is kept up to date.

    Raises:
        NotImplementedError: There is no kernel, or the live view failed; IPython then uses the static view.
    """
    if not in_kernel():
        raise NotImplementedError
    try:
        link_to(session).show()
    except Exception as error:
        raise NotImplementedError from error


def open_item(session: LiveSession, key: str) -> dict[str, str]:
    """Return an item as HTML for an output, or the reason for a failure."""
    try:
        # Showing a capture may compile once more, to record the passes.
        with session.unseen():
            return {"html": output_html(session.open(key))}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


class Link:
    """Wire to every view of the session."""

    def __init__(self, session: LiveSession) -> None:
        self.session = session
        self.id = uuid4().hex[:16]
        self._lock = threading.RLock()  # a cell's end and a compile on another thread may update at once
        self._timer: threading.Timer | None = None
        self._output: Output | None = None
        self._followed: Ledger | None = None
        self._sent = ""
        self._wire = open_wire(self.id, "UpdateWire")
        self._wire.on_msg(self._answer)
        ipython_shell().events.register("post_run_cell", self._after_cell)

    def show(self) -> None:
        """Display the page in the running cell; an earlier output stays as it is."""
        with self._lock:
            self._output = Output(f"explorer-{self.id}-{uuid4().hex[:6]}", lambda: mimebundle(self.session))
            self._output.publish(self._send(), update=False)

    def _send(self) -> str:
        with self._lock:
            self._follow()
            html = content(self.session.report())
            if html != self._sent:
                self._sent = self._wire.update = html
            return html

    def _follow(self) -> None:
        """Listen to the current ledger's compiles."""
        ledger = self.session.ledger
        if ledger is not None and ledger is not self._followed:
            self._followed = ledger
            ledger.listen(lambda events: self._soon())

    def _soon(self) -> None:
        with self._lock:
            if self._timer is None:
                self._timer = threading.Timer(_MOMENT, self._update)
                self._timer.daemon = True
                self._timer.start()

    def _update(self) -> None:
        with self._lock:
            self._timer = None
        with suppress(Exception):  # a failed update must not stop the user's program
            self._send()

    def _after_cell(self, _: object = None) -> None:
        with suppress(Exception), self._lock:
            state = self._send()
            if self._output is not None and self._output.stored != state:
                self._output.publish(state, update=True)

    def _answer(self, wire: Any, message: Any, _: object) -> None:
        """Answer a page's request for an item: `{"ask": "open", "of": key}`."""
        request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        if request.get("ask") == "open":
            key = str(request.get("of"))
            wire.send({"of": key, **open_item(self.session, key)})
