"""How many passes a compiler has finished while it writes the module after each of them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from os import PathLike, listdir
from threading import Event, current_thread, main_thread

from explorer.view.progress_bar import follower, progress_bar

PassListener = Callable[[int, int | None], None]
"""Called with the number of passes that are done, and about how many there will be, None where nobody knows."""

_TICK = 0.5  # seconds: a look at a folder of 150 files in memory takes 0.1 ms

_listener: ContextVar[PassListener | None] = ContextVar("listener", default=None)
_counts: dict[str, int] = {}  # by compiler: of its last recording, all that is known of how many there will be


@contextmanager
def listening_to_passes(listener: PassListener) -> Generator[None]:
    """While this lasts, `listener` is called in place of the bar."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def counted_passes(folder: str | PathLike[str], compiler: str, title: str) -> Generator[None]:
    """Say how far a compile is that writes into a folder: to who listens, else in a bar after a second.

    Args:
        folder: Where the files of the passes appear.
        compiler: What compiles, for which an earlier number of passes is an estimate of this one.
        title: What is done.
    """
    listener = _listener.get()
    expected = _counts.get(compiler)

    def run(notify: PassListener) -> Generator[None]:
        def follow(ended: Event) -> None:
            while not ended.wait(_TICK):
                with suppress(Exception):  # a listener that fails must not cost the recording
                    notify(_written(folder), expected)

        with follower(follow, "explorer-passes"):
            yield
            _counts[compiler] = _written(folder)

    if listener is not None:
        yield from run(listener)
        return
    with progress_bar(title, None if current_thread() is main_thread() else False) as show:
        yield from run(lambda done, of: show(min(done / of, 1.0) if of else 0.0, describe(done, of)))


def describe(done: int, expected: int | None) -> str:
    """`pass 83 of about 140`; more than were expected leave no estimate."""
    return f"pass {done}" + (f" of about {expected}" if expected and done <= expected else "")


def _written(folder: str | PathLike[str]) -> int:
    """The modules that were written after a pass."""
    with suppress(OSError):
        return sum(".after_" in name for name in listdir(folder))
    return 0
