"""Progress bar that appears after one second and leaves no output behind."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import perf_counter
from typing import Any, Protocol

from explorer.errors import OptionError
from explorer.model.units import duration_text
from explorer.view.interim import InterimOutput, is_looked_at
from explorer.view.progress import Bar, notebook_bar, terminal_bar

ProgressCallback = Callable[[float, str], None]

_TICK = 0.5  # seconds between two updates of work that is not measured
_PATIENCE = 1.0  # seconds without a bar
_EVERY = 0.2  # seconds between two updates: they take time that the machine might be measured in


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


class StepCallback(Protocol):
    def __call__(self, step: str, so_far: Callable[[], object] | None = None) -> None:
        """Begin a step. `so_far` returns the partial value to show meanwhile; it is called at once or never."""


@contextmanager
def step_progress(title: str, steps: tuple[str, ...]) -> Generator[StepCallback]:
    """Yield a callback that starts a step, for work whose steps report no progress.

    After one second the bar shows the finished steps and the time of the current one. A thread updates it, because
    nothing is being measured. An interactive notebook also shows the partial result below the bar.
    """
    done: list[str] = []
    interims: list[InterimOutput] = []
    began: dict[str, float] = {}

    def describe() -> str:
        now = perf_counter()
        times = [*began.values(), now]
        finished = [f"{step} ✓ {duration_text(times[at + 1] - times[at])}" for at, step in enumerate(done)]
        current = [f"{step} … {now - began[step]:.0f} s" for step in [*began][len(done) :]]
        return " · ".join(finished + current)

    def follow(ended: Event) -> None:
        bar: Bar | None = None
        with suppress(Exception):  # a bar that can't be drawn must not cost the work
            while not ended.wait(_TICK if bar else _PATIENCE):
                bar = bar or _bar(title, None)
                bar.show(len(done) / len(steps), describe())
        if bar is not None:
            with suppress(Exception):
                bar.close()

    def begin(step: str, so_far: Callable[[], object] | None = None) -> None:
        # A step begins when the one before it is done.
        done[:] = began
        began[step] = perf_counter()
        if so_far is not None and is_looked_at():
            interims.append(InterimOutput(so_far()))

    how = ""
    with follower(follow, "explorer-progress"):
        try:
            yield begin
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
