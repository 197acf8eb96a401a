"""Progress bar and partial result of long work, in a notebook or a terminal.

The bar appears after one second and leaves no output behind. A measurement draws it only on updates: a redrawing thread
would disturb the measurement."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from html import escape
from itertools import pairwise
from threading import Event, Lock, Thread, current_thread, main_thread
from time import perf_counter
from typing import Any, Protocol
from uuid import uuid4

from explorer.errors import OptionError
from explorer.model.units import duration_text
from explorer.view.registry import view_of
from explorer.view.session import in_kernel, ipython_shell, is_attended

ProgressCallback = Callable[[float, str], None]

_TICK = 0.5  # seconds between two updates of work that is not measured
_PATIENCE = 1.0  # seconds without a bar
_INTERIM_PATIENCE = 2.0  # seconds without a partial value: what comes sooner is worth waiting for
_EVERY = 0.2  # seconds between two updates: they take time that the machine might be measured in

_last: InterimOutput | None = None


@contextmanager
def progress_bar(title: str, wanted: bool | None = None) -> Generator[ProgressCallback]:
    """Yield a callback that takes the completed fraction, 0 to 1, and the current step.

    Args:
        title: Title of the work.
        wanted: True to show it; None shows it in an interactive notebook and in a terminal.
    """
    if wanted not in (None, True, False):
        raise OptionError(f"progress is {wanted!r}; allowed are True, False, and None (automatic).")
    bar: Bar | None = None
    began = last = perf_counter()

    def notify(done: float, doing: str) -> None:
        nonlocal bar, last
        now = perf_counter()
        if wanted is False or now - began < _PATIENCE or now - last < _EVERY:
            return
        last = now
        with suppress(Exception):  # a bar that can't be drawn must not cost the measurement
            bar = bar or _bar(title, wanted)
            bar.show(done, doing)

    try:
        yield notify
    finally:
        if bar is not None:
            with suppress(Exception):
                bar.close()


@contextmanager
def follower(follow: Callable[[Event], None], name: str) -> Generator[None]:
    """Run `follow` on a thread until the block ends, also if an interrupt ends it.

    Args:
        follow: Function that returns soon after its argument, an event, is set.
        name: Name of the thread.
    """
    ended = Event()
    thread = Thread(target=follow, args=(ended,), name=name, daemon=True)
    try:  # around the start too: an interrupt may come in it
        thread.start()
        yield
    finally:
        try:
            ended.set()
        finally:
            ended.set()  # an interrupt may have come in the call before
        if thread.is_alive():
            thread.join()


@contextmanager
def step_progress(title: str, began: Mapping[str, float], count: int) -> Generator[Callable[[object], None] | None]:
    """Show the steps of work that reports no progress within them, and yield a callback for its partial result.

    After one second the bar shows the finished steps and the time of the current one. A thread updates it, because
    nothing is being measured. An interactive notebook shows the partial result below the bar. Where no person can see
    it, there is no callback, but None: then the work needs no partial result.

    Args:
        title: Title of the work.
        began: `perf_counter()` at the start of each step so far, by name and in order; the work adds to it.
        count: Number of steps.
    """
    interims: list[InterimOutput] = []

    def show(bar: Bar) -> None:
        steps = list(began.items())  # a copy: the work goes on
        finished = [f"{step} ✓ {duration_text(end - start)}" for (step, start), (_, end) in pairwise(steps)]
        current = [f"{step} … {perf_counter() - start:.0f} s" for step, start in steps[-1:]]
        bar.show(len(finished) / count, " · ".join(finished + current))

    def follow(ended: Event) -> None:
        bar: Bar | None = None
        with suppress(Exception):  # a bar that can't be drawn must not cost the work
            while not ended.wait(_TICK if bar else _PATIENCE):
                bar = bar or _bar(title, None)
                show(bar)
        if bar is not None:
            with suppress(Exception):
                bar.close()

    def show_partial(value: object) -> None:
        interims.append(InterimOutput(value))

    how = ""
    with follower(follow, "explorer-progress"):
        try:
            yield show_partial if is_looked_at() else None
        except KeyboardInterrupt:
            how = "interrupted"
            raise
        finally:
            for interim in interims:
                with suppress(Exception):
                    interim.end(how)


def _bar(title: str, wanted: bool | None) -> Bar:
    return notebook_bar(title) or terminal_bar(title, wanted is True or _is_watched())


def _is_watched() -> bool:
    stream: Any = sys.stderr
    return bool(stream is not None and stream.isatty())


class Bar(Protocol):
    def show(self, done: float, doing: str) -> None: ...

    def close(self) -> None: ...


def notebook_bar(title: str) -> Bar | None:
    """Return a bar below the running cell; None without a kernel. It shows nothing if no person can see the output."""
    if not in_kernel():
        return None
    return _NotebookBar(title) if is_attended() else _Silent()


def terminal_bar(title: str, wanted: bool) -> Bar:
    """Return a bar on standard error that disappears when closed; a bar that shows nothing if not `wanted`."""
    return _TerminalBar(title) if wanted else _Silent()


class _Silent:
    def show(self, done: float, doing: str) -> None: ...

    def close(self) -> None: ...


class _NotebookBar:
    """Bar in one output that is overwritten. A saved notebook would show a widget as an error."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._id = f"explorer-{uuid4().hex[:16]}"
        self._is_there = False

    def show(self, done: float, doing: str) -> None:
        text = f"{self._title}: {doing}" if doing else self._title
        bar = f'<progress value="{done:.3f}" max="1" aria-label="{escape(self._title)}"></progress> {escape(text)}'
        self._publish({"text/html": bar, "text/plain": f"{text} {done:.0%}"})

    def close(self) -> None:
        self._publish({"text/html": "", "text/plain": ""})  # an output can't be taken back, only emptied

    def _publish(self, data: dict[str, str]) -> None:
        shell = ipython_shell()
        shell.display_pub.publish(data, metadata={}, transient={"display_id": self._id}, update=self._is_there)
        self._is_there = True


class _TerminalBar:
    def __init__(self, title: str) -> None:
        from rich.console import Console
        from rich.progress import Progress

        self._title = title
        # Standard output is for the program's own results.
        self._progress = Progress(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._progress.start()
        self._task = self._progress.add_task(title, total=1.0)

    def show(self, done: float, doing: str) -> None:
        text = f"{self._title}: {doing}" if doing else self._title
        self._progress.update(self._task, completed=done, description=text, refresh=True)

    def close(self) -> None:
        self._progress.stop()


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
        if self._ended.wait(_INTERIM_PATIENCE):
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
