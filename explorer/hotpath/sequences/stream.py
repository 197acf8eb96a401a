"""The first single operations of a program, folded into what repeats: to be looked at, nothing is compiled of it."""

from __future__ import annotations

from threading import Lock, current_thread

from explorer.analysis.repeats.steps import repeated_sequences
from explorer.hotpath.sequences.recorder import Recorder
from explorer.model.results.hot_paths import RepeatedSequence

# Operations: some dozens of a training loop's turns, which are folded in 50 ms. To record one takes some 10 µs.
MOST = 2_048


class Stream:
    """Records what the thread that starts it runs, until something runs compiled, or there is enough to look at."""

    def __init__(self) -> None:
        self._recorder = Recorder(most=MOST)
        self._thread = ""
        self._lock = Lock()
        self._folded: tuple[int, tuple[RepeatedSequence, ...]] = 0, ()
        self._is_over = False

    def start(self) -> None:
        if not self._is_over:
            self._thread = self._thread or current_thread().name
            self._recorder.__enter__()

    def stop(self) -> None:
        if not self._is_over:
            self._recorder.__exit__(None, None, None)

    def end(self) -> None:
        """From now on nothing is recorded."""
        self.stop()
        self._is_over = True

    def folded(self) -> tuple[int, tuple[RepeatedSequence, ...]]:
        """How many operations were recorded, and what repeats in them."""
        with self._lock:
            steps = self._recorder.steps(self._thread)
            count = sum(step.operation is not None for step in steps)
            if count != self._folded[0]:
                self._folded = count, repeated_sequences(steps)
            return self._folded
