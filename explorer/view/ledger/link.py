"""The live view of a ledger, which is updated even while a cell runs.

A thread of the view looks at the ledger a few times a second, so that compiling costs nothing more. It ends with the
watch. The output stored in the notebook is updated after each cell and at the end of the watch.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from contextlib import nullcontext
from typing import Any
from uuid import uuid4

from explorer.model.events.ledger import Ledger
from explorer.view.display import mimebundle
from explorer.view.ledger.message import MOST, Tables, is_on, message, tables_of
from explorer.view.session import Output, ipython_shell, open_wire

PERIOD = 0.25  # seconds between two looks at the ledger, at least
_SHARE = 20  # of the time, the part that looking may take
_LAG = 10.0  # seconds that a message reaches back: a page that is slow to open misses nothing

_links: dict[Ledger, Link] = {}  # what is displayed can be clicked on for as long as the kernel lives


def link_to(ledger: Ledger) -> Link:
    """Return the link of a ledger; it is made at the first display."""
    if ledger not in _links:
        _links[ledger] = Link(ledger)
    return _links[ledger]


class Link:
    """The connection to every view of one ledger.

    Args:
        ledger: The ledger to show.
    """

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.id = uuid4().hex[:16]
        self.tables = Tables()
        self.left_out = 0
        self._lock = threading.RLock()  # both the thread of the view and a cell's end bring it up to date
        self._seen = 0
        self._epoch = 0
        self._sent: object = None
        self._outputs: dict[str, Output] = {}
        self._marks: deque[tuple[float, dict[str, int]]] = deque()
        self._thread: threading.Thread | None = None
        self._wire = open_wire(self.id, "UpdateWire")
        self._wire.on_msg(self._answer)
        self.pull()

    def pull(self) -> None:
        """Read the new events."""
        with self._lock:
            gone = self.ledger.dropped + self.ledger.spilled
            if gone + len(self.ledger) == self._seen:
                return
            events = self.ledger.events
            if gone != self.ledger.dropped + self.ledger.spilled:
                return  # some were dropped meanwhile: they are counted the next time
            new = gone + len(events) - self._seen
            self._seen += new
            if new <= len(events) and len(self.tables.fold.calls) < MOST:
                self.tables.add(events[len(events) - new :])
                return
            self.tables, self.left_out = tables_of(self.ledger)
            self._epoch += 1
            self._marks.clear()

    def data(self, sizes: dict[str, int] | None = None) -> dict[str, Any]:
        """Return everything for a page that has tables of `sizes` rows."""
        with self._lock:
            self.pull()
            return {**message(self.ledger, self.tables, sizes, self.left_out), "epoch": self._epoch}

    # The page ---------------------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Display the view in the running cell, and update it while the ledger is watched."""
        self.keep(Output(f"explorer-{self.id}", lambda: mimebundle(self.ledger)))

    def keep(self, output: Output) -> None:
        """Display an output in the running cell, and update it."""
        with self._lock:
            self._outputs[output.id] = output
            output.publish(self._state()[:2], update=False)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="explorer-ledger-view", daemon=True)
                self._thread.start()

    def _state(self) -> tuple[Any, ...]:
        """Return the values whose change makes a message worth sending."""
        return self._seen, is_on(self.ledger), getattr(self.ledger, "running", ())

    def _follow(self) -> None:
        events = ipython_shell().events
        events.register("post_run_cell", self._after_cell)
        try:
            pause = PERIOD
            while is_on(self.ledger):
                time.sleep(pause)
                began = time.perf_counter()
                self._send()
                self._store(within_cell=True)
                pause = max(PERIOD, _SHARE * (time.perf_counter() - began))
            self._after_cell()
        except Exception as error:  # the view stops; the ledger and the user's program continue
            getattr(self.ledger, "fault", str)(error)
        finally:
            events.unregister("post_run_cell", self._after_cell)

    def _after_cell(self, _: object = None) -> None:
        """Update the output stored in the notebook."""
        try:
            self._send()
            self._store(within_cell=False)
        except Exception as error:
            getattr(self.ledger, "fault", str)(error)

    def _store(self, within_cell: bool) -> None:
        with self._lock:
            state = self._state()[:2]
            for output in tuple(self._outputs.values()):
                if output.stored != state and (not within_cell or output.is_due()):
                    output.publish(state, update=True)

    def _send(self) -> None:
        with self._lock:
            self.pull()
            state = self._state()
            if state == self._sent:
                return
            self._sent = state
            now = time.monotonic()
            base = self._marks[0][1] if self._marks else {}
            self._marks.append((now, self.tables.sizes))
            while len(self._marks) > 1 and now - self._marks[1][0] > _LAG:
                self._marks.popleft()
            self._wire.update = json.dumps(self.data(base), separators=(",", ":"))

    def _answer(self, wire: Any, content: Any, _: object) -> None:
        """Handle a page's request for missing tables, or for a look into a call."""
        request: dict[str, Any] = content if isinstance(content, dict) else {}  # pyright: ignore[reportUnknownVariableType]
        if request.get("ask") == "since":
            wire.send({"since": json.dumps(self.data(request.get("sizes")), separators=(",", ":"))})
        elif request.get("ask") in ("capture", "diff"):
            wire.send({"of": request.get("of"), **self._inspect(request)})

    def _inspect(self, request: dict[str, Any]) -> dict[str, str]:
        inspect = getattr(self.ledger, request["ask"], None)
        events = [e for e in self.ledger.events if (e.call, e.process) == (request.get("call"), request.get("process"))]
        if inspect is None or not events:
            return {"failed": "This ledger was recorded elsewhere: only the session that compiled it can look into it."}
        # A call's compile represents it, or else its last event.
        event = next((event for event in reversed(events) if event.kind in ("compile", "cache-hit")), events[-1])
        # Showing a capture may compile once more, to see the passes: that is not the user's.
        unseen: Any = getattr(self.ledger, "unseen", nullcontext)
        try:
            with unseen():
                return {"html": output_html(inspect(event))}
        except Exception as error:
            return {"failed": f"{type(error).__name__}: {error}"}


def output_html(value: Any) -> str:
    """Return the output of a capture or a diff as HTML."""
    return value._repr_mimebundle_()["text/html"]
