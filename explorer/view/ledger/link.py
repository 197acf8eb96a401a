"""Links between a live value and the pages that show it, and the link of a ledger.

A page has a wire to Python; the notebook stores an output of each view, which is updated after each cell.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Self
from uuid import uuid4

from explorer.model.events.ledger import Ledger
from explorer.view.display import mimebundle
from explorer.view.ledger.message import MOST, Tables, is_on, message, tables_of
from explorer.view.session import Output, in_kernel, ipython_shell, open_wire

_SHARE = 20  # the pause is at least this many times the duration of an update
_LAG = 10.0  # seconds that a message reaches back: a page that is slow to open misses nothing
_links: dict[int, Link] = {}  # by the value's id; never dropped: outputs stay clickable as long as the kernel lives


class Link:
    """Connection to every view of one value that changes."""

    def __init__(self, source: Any) -> None:
        self.id = uuid4().hex[:16]
        self._source = source
        self._lock = threading.RLock()  # updates come from several threads and from the end of a cell
        self._sent: object = None
        self._outputs: dict[str, Output] = {}
        self._wire = open_wire(self.id, "UpdateWire")
        self._wire.on_msg(self._receive)

    @classmethod
    def of(cls, source: Any) -> Self:
        """Return the link of a value; it is made at the first display."""
        if id(source) not in _links:
            _links[id(source)] = cls(source)
        return _links[id(source)]  # pyright: ignore[reportReturnType] - values of one class have links of one class

    def show(self) -> None:
        """Display the view in the running cell, and update it."""
        self.keep(Output(f"explorer-{self.id}", lambda: mimebundle(self._source)))

    def keep(self, output: Output) -> None:
        """Display an output in the running cell, and update it."""
        with self._lock:
            self._outputs[output.id] = output
            output.publish(self.state(), update=False)

    def state(self) -> object:
        """Return a value that identifies the shown content: an output stored with another state is outdated."""
        raise NotImplementedError

    def send(self) -> object:
        """Send the changes to the pages, and return the state; by default `state` does both."""
        return self.state()

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a page's request; None for no answer."""
        raise NotImplementedError

    def fault(self, error: Exception) -> None:
        """Handle an error of the view, which must not stop the user's program."""

    def _receive(self, wire: Any, content: Any, _: object) -> None:
        answer = self.answer(content if isinstance(content, dict) else {})  # pyright: ignore[reportUnknownArgumentType]
        if answer is not None:
            wire.send(answer)

    def _send_html(self, html: str) -> str:
        """Return `html`, a page's changing part, after sending it to the pages if it has changed."""
        if html != self._sent:
            self._sent = self._wire.update = html
        return html

    def _store(self, state: object, within_cell: bool = False) -> None:
        """Update the outdated outputs stored in the notebook; within a cell, those that are due and have no wire."""
        with self._lock:
            for output in tuple(self._outputs.values()):
                if output.stored != state and (not within_cell or output.is_due()):
                    output.publish(state, update=True)

    def _after_cell(self, _: object = None) -> None:
        try:
            self._store(self.send())
        except Exception as error:
            self.fault(error)


class PolledLink(Link):
    """Link whose thread looks at the value a few times a second, so that what it records costs nothing more.

    The thread ends with the recording.
    """

    PERIOD: float  # least seconds between two updates

    def __init__(self, source: Any) -> None:
        super().__init__(source)
        self._thread: threading.Thread | None = None

    def is_on(self) -> bool:
        """Return True if the value may still change."""
        raise NotImplementedError

    def keep(self, output: Output) -> None:
        with self._lock:
            super().keep(output)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._follow, name="explorer-view", daemon=True)
                self._thread.start()

    def _follow(self) -> None:
        events = ipython_shell().events
        # A cell may end between two updates, and nothing may follow it for long.
        events.register("post_run_cell", self._after_cell)
        try:
            pause = self.PERIOD
            while self.is_on():
                time.sleep(pause)
                began = time.perf_counter()
                self._store(self.send(), within_cell=True)
                pause = max(self.PERIOD, _SHARE * (time.perf_counter() - began))
        except Exception as error:  # the view stops; what it shows and the user's program continue
            self.fault(error)
        finally:
            self._after_cell()
            events.unregister("post_run_cell", self._after_cell)


def show_live(link_of: Callable[[Any], Link], value: Any, is_on: bool = True) -> None:
    """Display a value that changes, and keep the display up to date.

    Raises:
        NotImplementedError: It doesn't change, or its live view failed; IPython then displays it as any other value.
    """
    if not is_on or not in_kernel():
        raise NotImplementedError
    try:
        link_of(value).show()
    except Exception as error:
        raise NotImplementedError from error


def output_of(make: Callable[[], Any], unseen: AbstractContextManager[Any]) -> dict[str, str]:
    """Return `{"html": …}` with the view of the value that `make` returns, or `{"failed": reason}`.

    Showing a capture may compile once more, to record the passes: `unseen` keeps that out of the user's ledgers.
    """
    try:
        with unseen:
            return {"html": make()._repr_mimebundle_()["text/html"]}
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


class LedgerLink(PolledLink):
    """Link of a ledger, which sends the rows that are new."""

    PERIOD = 0.25

    def __init__(self, source: Ledger) -> None:
        super().__init__(source)
        self.tables = Tables()
        self.left_out = 0
        self._seen = 0
        self._epoch = 0
        self._marks: deque[tuple[float, dict[str, int]]] = deque()
        self.pull()

    def pull(self) -> None:
        """Add the ledger's new events to `tables`. If events were dropped unseen or are too many, make new tables in a
        new epoch.
        """
        with self._lock:
            gone = self._source.dropped + self._source.spilled
            if gone + len(self._source) == self._seen:
                return
            events = self._source.events
            if gone != self._source.dropped + self._source.spilled:
                return  # some were dropped meanwhile: they are counted the next time
            new = gone + len(events) - self._seen
            self._seen += new
            if new <= len(events) and len(self.tables.fold.calls) < MOST:
                self.tables.add(events[len(events) - new :])
                return
            # Tables only grow: after events were dropped unseen, pages load new ones, which a new epoch shows.
            self.tables, self.left_out = tables_of(self._source)
            self._epoch += 1
            self._marks.clear()

    def data(self, sizes: dict[str, int] | None = None) -> dict[str, Any]:
        """Return the status, and the rows that a page with tables of `sizes` rows lacks; None for all rows."""
        with self._lock:
            self.pull()
            return {**message(self._source, self.tables, sizes, self.left_out), "epoch": self._epoch}

    def is_on(self) -> bool:
        return is_on(self._source)

    def state(self) -> object:
        return self._seen, self.is_on()

    def fault(self, error: Exception) -> None:
        getattr(self._source, "fault", str)(error)

    def send(self) -> object:
        with self._lock:
            self.pull()
            state = self.state(), getattr(self._source, "running", ())
            if state == self._sent:
                return state[0]
            self._sent = state
            now = time.monotonic()
            # Each message repeats the rows of the last seconds, so that a page may miss some messages.
            base = self._marks[0][1] if self._marks else {}
            self._marks.append((now, self.tables.sizes))
            while len(self._marks) > 1 and now - self._marks[1][0] > _LAG:
                self._marks.popleft()
            self._wire.update = json.dumps(self.data(base), separators=(",", ":"))
            return state[0]

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the rows (`since`), the `capture` or the `diff` that a page requests; None for other requests."""
        if request.get("ask") == "since":
            return {"since": json.dumps(self.data(request.get("sizes")), separators=(",", ":"))}
        return (
            {"of": request.get("of"), **self._inspect(request)} if request.get("ask") in ("capture", "diff") else None
        )

    def _inspect(self, request: dict[str, Any]) -> dict[str, str]:
        call = request.get("call"), request.get("process")
        inspect = getattr(self._source, request["ask"], None)
        events = [event for event in self._source.events if (event.call, event.process) == call]
        if inspect is None or not events:
            return {"failed": "This ledger was recorded elsewhere: only the session that compiled it can look into it."}
        # A call's compile represents it, or else its last event.
        event = next((event for event in reversed(events) if event.kind in ("compile", "cache-hit")), events[-1])
        return output_of(lambda: inspect(event), getattr(self._source, "unseen", nullcontext)())
