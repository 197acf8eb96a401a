"""`ex.auto_compile()`: eager functions that are called often are compiled, where that is safe and faster."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import FunctionType, TracebackType
from typing import Any

from explorer.hotpath.counting import MonitoredCalls, SampledCalls
from explorer.hotpath.hot import HotFunction, Options


class HotPaths:
    """The functions that are called often, while and after it was on."""

    def __init__(self, calls: int, seconds: float, background: bool) -> None:
        self._pool = ThreadPoolExecutor(1, "explorer-hot") if background else None
        submit: Callable[[Callable[[], None]], object] = self._pool.submit if self._pool else lambda work: work()
        self.log: list[tuple[str, str, str]] = []
        self._options = Options(
            calls, seconds, submit, lambda event, hot, text: self.log.append((event, hot.name, text))
        )
        self.functions: dict[FunctionType, HotFunction] = {}
        count = MonitoredCalls if hasattr(sys, "monitoring") else SampledCalls
        self._counter = count(min(calls, 3), self._nominated)

    def _nominated(self, function: FunctionType) -> None:
        if function not in self.functions:
            hot = self.functions[function] = HotFunction(function, self._options)
            hot.watch()

    def __enter__(self) -> HotPaths:
        self._counter.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._counter.stop()
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
        for hot in self.functions.values():
            hot.release()


def auto_compile(*, threshold: int = 10, seconds: float = 0.05, background: bool = True) -> Any:
    """Compile hot eager functions while it is on."""
    return HotPaths(threshold, seconds, background)
