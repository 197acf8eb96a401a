"""Live view of hot paths, updated in the middle of a running cell.

A thread polls a few times a second, so calls cost nothing more; it ends with the hot paths. The stored output is
updated after each cell, and when they end.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Protocol
from uuid import uuid4

from explorer.model.results.hot_paths import HotPaths
from explorer.view.display import mimebundle
from explorer.view.hotpath.html import content, fragment
from explorer.view.interface import View
from explorer.view.ledger.link import output_html
from explorer.view.session import Output, in_kernel, ipython_shell, open_wire

PERIOD = 0.4  # least seconds between two updates
_SHARE = 20  # the pause is at least this many times the duration of an update


class LiveHotPaths(Protocol):
    """Interface of `explorer.hotpath.auto.AutoCompile`, which is on a floor above."""

    @property
    def on(self) -> bool: ...
    def report(self) -> HotPaths: ...
    def capture(self, name: str) -> Any: ...


class AutoCompileView(View[LiveHotPaths]):
    """View of running hot paths; with a kernel, a click opens a function's capture."""

    def title(self, value: LiveHotPaths) -> str:
        return "hot paths"

    def html(self, value: LiveHotPaths) -> str:
        return fragment(value.report())

    def output(self, value: LiveHotPaths) -> dict[str, Any]:
        return {"text/html": fragment(value.report(), link_to(value).id if in_kernel() else "")}


_links: dict[LiveHotPaths, Link] = {}  # never dropped: outputs stay clickable as long as the kernel lives


def link_to(source: LiveHotPaths) -> Link:
    if source not in _links:
        _links[source] = Link(source)
    return _links[source]


def display_live(source: LiveHotPaths) -> None:
    """Display running hot paths and keep the view up to date.

    Raises:
        NotImplementedError: They are off, or the live view failed; IPython then displays them as any other value.
    """
    if not (source.on and in_kernel()):
        raise NotImplementedError
    try:
        link_to(source).show()
    except Exception as error:
        raise NotImplementedError from error


class Link:
    def __init__(self, source: LiveHotPaths) -> None:
        self.source = source
        self.id = uuid4().hex[:16]
        self._lock = threading.RLock()  # updates come from the view's thread and from the end of a cell
        self._sent = ""
        self._output: Output | None = None
        self._thread: threading.Thread | None = None
        self._wire = open_wire(self.id, "UpdateWire")
        self._wire.on_msg(self._answer)

    def show(self) -> None:
        with self._lock:
            self._output = Output(f"explorer-{self.id}", lambda: mimebundle(self.source))
            self._output.publish(self._send(), update=False)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="explorer-hot-view", daemon=True)
                self._thread.start()

    def settle(self) -> None:
        with self._lock:
            state = self._send()
            if self._output is not None and self._output.stored != state:
                self._output.publish(state, update=True)

    def _follow(self) -> None:
        events = ipython_shell().events
        events.register("post_run_cell", self._after_cell)
        try:
            pause = PERIOD
            while self.source.on:
                time.sleep(pause)
                began = time.perf_counter()
                self._send()
                pause = max(PERIOD, _SHARE * (time.perf_counter() - began))
        except Exception:  # the view stops; the user's program continues
            pass
        finally:
            self._after_cell()
            events.unregister("post_run_cell", self._after_cell)

    def _after_cell(self, _: object = None) -> None:
        with suppress(Exception):  # as above
            self.settle()

    def _send(self) -> str:
        with self._lock:
            html = content(self.source.report())
            if html != self._sent:
                self._sent = self._wire.update = html
            return html

    def _answer(self, wire: Any, message: Any, _: object) -> None:
        """Answer a page's request for a function's capture: `{"ask": "capture", "of": name}`."""
        request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        if request.get("ask") == "capture":
            try:
                answer = {"html": output_html(self.source.capture(str(request.get("of"))))}
            except Exception as error:
                answer = {"failed": f"{type(error).__name__}: {error}"}
            wire.send({"of": request.get("of"), **answer})
