"""Output of a partial value, replaced by the view of the finished value."""

from __future__ import annotations

from contextlib import suppress
from threading import Event, Lock, Thread, current_thread, main_thread
from uuid import uuid4

from explorer.view.registry import view_of
from explorer.view.session import in_kernel, ipython_shell, is_attended

_PATIENCE = 2.0  # seconds: what comes sooner is worth waiting for

_last: InterimOutput | None = None


def is_looked_at() -> bool:
    """Return True if a person can see the output of the running cell."""
    return in_kernel() and current_thread() is main_thread() and is_attended()


class InterimOutput:
    """Output of a partial value, shown after two seconds and emptied when the cell shows its result.

    The thread that makes it may take seconds, and nothing waits for it.

    Args:
        value: The partial value; its view has an `interim`.
    """

    def __init__(self, value: object) -> None:
        global _last
        if _last is not None:
            _last.empty()
        _last = self
        self._value: object = value  # released as soon as possible: it holds the program's constants
        self._id = uuid4().hex[:16]
        self._html = ""
        self._lock = Lock()
        self._ended = Event()
        Thread(target=self._show_later, name="explorer-interim", daemon=True).start()

    def end(self, how: str = "") -> None:
        """End the interim output: empty it after the running cell, or keep it with `how` in place of `compiling`.

        Args:
            how: Reason why the value stays partial, such as `interrupted`; empty if the value is complete.
        """
        with self._lock:
            self._ended.set()
            self._value = None
            if not self._html:
                return
            if how:
                self._publish(self._html.replace(self._name("compiling"), self._name(how)))
                self._html = ""
            else:
                ipython_shell().events.register("post_run_cell", self.empty)

    def empty(self, _: object = None) -> None:
        """Empty the output after `end`; do nothing before. A notebook can't remove an output."""
        with self._lock:
            if self._html and self._ended.is_set():
                self._html = ""
                self._publish("")
                with suppress(ValueError):  # it ended otherwise
                    ipython_shell().events.unregister("post_run_cell", self.empty)

    def _show_later(self) -> None:
        if self._ended.wait(_PATIENCE):
            return
        with suppress(Exception):  # a view that can't be drawn must not cost the work
            html = view_of(type(self._value)).interim(self._value, self._name("compiling"))
            self._value = None
            with self._lock:
                # The work may have ended while the view was drawn.
                if not self._ended.is_set():
                    self._publish(html, update=False)
                    self._html = html

    def _name(self, how: str) -> str:
        """Return the view's name on the page: `how`, a hyphen and the output's id."""
        return f"{how}-{self._id}"

    def _publish(self, html: str, update: bool = True) -> None:
        data = {"text/html": html, "text/plain": ""}
        ipython_shell().display_pub.publish(data, metadata={}, transient={"display_id": self._id}, update=update)
