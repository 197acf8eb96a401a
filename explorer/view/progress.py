"""Progress bar for a long measurement, in a notebook or a terminal.

It is drawn only on updates: a redrawing thread would disturb the measurement."""

from __future__ import annotations

from html import escape
from typing import Protocol
from uuid import uuid4

from explorer.view.session import in_kernel, ipython_shell, is_attended


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
