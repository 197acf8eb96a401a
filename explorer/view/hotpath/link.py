"""Hot paths that are displayed while they are on: what is new reaches the page in the middle of a running cell.

A thread of the view's own looks a few times a second, so that nothing is added to what a call costs; it ends with them.
What is stored in the notebook is brought up to date at the end of each cell, and once they are off.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from typing import Any, Protocol
from uuid import uuid4

from explorer.model.results.hot_paths import HotPaths
from explorer.view.display import mimebundle
from explorer.view.hotpath.html import content
from explorer.view.ledger.link import output_html
from explorer.view.session import Output, in_kernel, ipython_shell, open_wire

PERIOD = 0.4  # seconds between two looks, at least
_SHARE = 20  # of the time, the part that looking may take


class LiveHotPaths(Protocol):
    """Hot paths at work: `explorer.hotpath.auto.AutoCompile`, which is above this floor."""

    @property
    def on(self) -> bool: ...
    def report(self) -> HotPaths: ...
    def capture(self, name: str) -> Any: ...


_links: dict[LiveHotPaths, Link] = {}  # what is displayed can be clicked on for as long as the kernel lives


def link_to(source: LiveHotPaths) -> Link:
    """The link of hot paths, made when they are displayed first."""
    if source not in _links:
        _links[source] = Link(source)
    return _links[source]


def display_live(source: LiveHotPaths) -> None:
    """Display hot paths that are on, and keep that up to date.

    Raises:
        NotImplementedError: They aren't on, or their live view failed: IPython then shows them as any other value.
    """
    if not (source.on and in_kernel()):
        raise NotImplementedError
    try:
        link_to(source).show()
    except Exception as error:
        raise NotImplementedError from error


class Link:
    """The wire to every view of some hot paths.

    Args:
        source: What is shown.
    """

    def __init__(self, source: LiveHotPaths) -> None:
        self.source = source
        self.id = uuid4().hex[:16]
        self._lock = threading.RLock()  # both the thread of the view and a cell's end bring it up to date
        self._sent = ""
        self._output: Output | None = None
        self._thread: threading.Thread | None = None
        self._wire = open_wire(self.id, "UpdateWire")
        self._wire.on_msg(self._answer)

    def show(self) -> None:
        """Display the view in the cell that runs, and keep it up to date for as long as they are on."""
        with self._lock:
            self._output = Output(f"explorer-{self.id}", lambda: mimebundle(self.source))
            self._output.publish(self._send(), update=False)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="explorer-hot-view", daemon=True)
                self._thread.start()

    def settle(self) -> None:
        """Bring the page and what the notebook stores up to date."""
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
        except Exception:  # the view stands still; the user's program goes on
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
        """A page wants to look into a function: `{"ask": "capture", "of": name}`."""
        request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        if request.get("ask") == "capture":
            wire.send({"of": request.get("of"), **self._capture(str(request.get("of")))})

    def _capture(self, name: str) -> dict[str, str]:
        try:
            return {"html": output_html(self.source.capture(name))}
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}
