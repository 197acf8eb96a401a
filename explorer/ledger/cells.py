"""When which cell of a notebook ran, as long as somebody watches."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from time import time
from typing import Any

_MANY = 10_000


class Cells:
    """Told by IPython of each cell before and after it runs; without IPython there are none."""

    def __init__(self) -> None:
        ipython: Any = sys.modules.get("IPython")
        self._shell: Any = ipython.get_ipython() if ipython is not None else None
        self._ran: deque[tuple[str, float, float]] = deque(maxlen=_MANY)
        self._began: float | None = None  # the one that runs
        if self._shell is not None:
            self._shell.events.register("pre_run_cell", self._before)
            self._shell.events.register("post_run_cell", self._after)
            self._before(None)  # the one that this is called in

    @property
    def ran(self) -> tuple[tuple[str, float, float], ...]:
        """What a person calls each cell, and when it began and ended, in seconds since 1970; one that runs ends now."""
        return (*self._ran, *self._now(None))

    def stop(self) -> None:
        """Unsubscribe."""
        self._after(None)
        if self._shell is not None:
            for event, callback in (("pre_run_cell", self._before), ("post_run_cell", self._after)):
                with suppress(ValueError):  # somebody took it away
                    self._shell.events.unregister(event, callback)
            self._shell = None

    def _before(self, info: Any) -> None:
        self._began = time()

    def _after(self, result: Any) -> None:
        self._ran.extend(self._now(result))
        self._began = None

    def _now(self, result: Any) -> list[tuple[str, float, float]]:
        if self._began is None:
            return []
        # While a cell runs, IPython counts it already, or not yet: that depends on its version.
        compiled: dict[str, int] = getattr(self._shell.compile, "_filename_map", {})
        count = getattr(result, "execution_count", None) or max(compiled.values(), default=1)
        return [(f"cell [{count}]", self._began, time())]
