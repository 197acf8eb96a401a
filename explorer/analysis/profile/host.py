"""What the thread that called the function did, by name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from explorer.model.results.profile_events import BETWEEN, HOST, THUNK, WAIT, Events

# What the runtime calls things, and what they are; the first that is found in the name.
_WORDS = (
    (re.compile(r"^PjitFunction\((.*)\)$"), r"jit's call of \1"),
    (re.compile(r"^ParseArguments$"), "reading the arguments"),
    (re.compile(r"^DevicePut|BufferFromHost|^BatchedDevicePut"), "copying arguments to the device"),
    (re.compile(r"^np\.asarray\(jax\.Array\)$|^ToLiteral|^CopyToHost"), "copying results to NumPy"),
    (re.compile(r"^AllocateOutputBuffers|CreateOutputs$"), "allocating results"),
    (re.compile(r"Executable::Execute|^Handle input|^Wait for \w+ holds$|LaunchOnDevice"), "starting programs"),
    (re.compile(r"CollectGarbage"), "freeing Python's objects"),
    (re.compile(r"::Await$|BlockUntilReady|block_until_ready"), "waiting for the result"),
)


def host_times(events: Events, kept: NDArray[np.bool_]) -> dict[str, float]:
    """Seconds a call of each thing that the calling thread did itself, without what it did inside; the longest first.

    They add up to the wall time, less what of the program ran on that thread.
    """
    if events.python < 0 or not kept.any():
        return {}
    mine = np.flatnonzero((events.thread == events.python) & np.isin(events.kind, (HOST, THUNK, WAIT, BETWEEN)))
    order = mine[np.lexsort((-events.end[mine], events.start[mine]))]
    windows = events.windows[kept]
    run = np.searchsorted(windows[:, 0], events.start[order], "right") - 1
    inside = (run >= 0) & (events.start[order] < windows[np.maximum(run, 0), 1])
    own: dict[str, float] = {}
    open_: list[tuple[float, str]] = []
    columns = (column[order[inside]].tolist() for column in (events.start, events.end, events.kind, events.what))
    rows: Iterable[tuple[float, float, int, int]] = zip(*columns, strict=True)
    for start, end, kind, what in rows:
        while open_ and open_[-1][0] <= start:
            open_.pop()
        name = "" if kind == THUNK else events.names[int(what)]
        end = min(end, open_[-1][0]) if open_ else end
        own[name] = own.get(name, 0.0) + end - start
        if open_:
            own[open_[-1][1]] -= end - start
        open_.append((end, name))
    runs = int(kept.sum())
    times = {name: seconds / runs for name, seconds in own.items() if name and seconds > 0}
    return dict(sorted(times.items(), key=lambda item: (-item[1], item[0])))


def host_words(host: Mapping[str, float]) -> dict[str, float]:
    """The same in words: what the runtime splits up, such as the start of a program, together; the longest first.

    Example:
        >>> host_words({"PjitFunction(f)": 2e-5, "ExecutePrepare": 1e-5, "ParseArguments": 5e-6})
        {"jit's call of f": 2e-05, 'ExecutePrepare': 1e-05, 'reading the arguments': 5e-06}
    """
    seconds_by_words: dict[str, float] = {}
    for name, seconds in host.items():
        words = next((match.expand(text) for pattern, text in _WORDS if (match := pattern.search(name))), name)
        seconds_by_words[words] = seconds_by_words.get(words, 0.0) + seconds
    return dict(sorted(seconds_by_words.items(), key=lambda item: (-item[1], item[0])))
