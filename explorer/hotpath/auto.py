"""`ex.auto_compile()`: eager functions that are called often are compiled, where that is safe and faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from types import FunctionType, TracebackType
from typing import Any

from explorer.hotpath.counting import MonitoredCalls, SampledCalls
from explorer.hotpath.hot import HotFunction, Options
from explorer.hotpath.report import Journal, by_time, labels_of, row_of
from explorer.model.results.hot_paths import HotEvent, HotPaths, HotRow


class AutoCompile:
    """The functions that are called often, while and after it was on."""

    def __init__(self, threshold: int, seconds: float, background: bool) -> None:
        self._pool = ThreadPoolExecutor(1, "explorer-hot") if background else None
        submit: Callable[[Callable[[], None]], object] = self._pool.submit if self._pool else lambda work: work()
        self._journal = Journal()
        self._threshold, self._ended, self._on = threshold, 0.0, False
        self._options = Options(threshold, seconds, submit, self._journal, background)
        self._functions: dict[FunctionType, HotFunction] = {}
        count = MonitoredCalls if hasattr(sys, "monitoring") else SampledCalls
        self._counter = count(min(threshold, 3), self._nominated)

    def _nominated(self, function: FunctionType) -> None:
        if function not in self._functions:
            hot = self._functions[function] = HotFunction(function, self._options)
            hot.watch()

    @property
    def functions(self) -> tuple[HotRow, ...]:
        """The functions that were called often, those that take most of the time first."""
        rows = [row_of(hot, self._journal.began) for hot in list(self._functions.values())]
        return tuple(sorted(rows, key=by_time))

    @property
    def events(self) -> tuple[HotEvent, ...]:
        """Each step, in order; of more than 4,096 the last."""
        return self._journal.events

    def report(self) -> HotPaths:
        """All of it as a value, as it is by now."""
        rows = self.functions
        now = perf_counter() if self._on else self._ended
        return HotPaths(
            rows,
            self.events,
            self._journal.dropped,
            now - self._journal.began,
            self._threshold,
            is_on=self._on,
            labels=labels_of(rows),
        )

    def __repr__(self) -> str:
        return repr(self.report())

    def __enter__(self) -> AutoCompile:
        self._journal.began, self._on = perf_counter(), True
        self._counter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counter.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for hot in list(self._functions.values()):
            hot.release()
        self._on, self._ended = False, perf_counter()


def auto_compile(*, threshold: int = 10, seconds: float = 0.05, background: bool = True) -> Any:
    """Compile hot eager functions while it is on."""
    return AutoCompile(threshold, seconds, background)
