"""When each thread worked for which instruction, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.profile.attribution import Segments
from explorer.model.graph import Floats, Ints
from explorer.model.results.profile_events import Events

__all__ = ["Timeline", "timeline_of"]

_MOST = 20_000


@dataclass(frozen=True, eq=False)
class Timeline:
    """One call, the one that took about as long as most: columns of shape `[m]`, by start.

    Args:
        start, end: Seconds from the beginning of the call.
        thread: Code into `threads`.
        op: Row of the profile's `ops`.
        waits: Whether the thread only waits for others that work for the same instruction.
        threads: Names of the threads, or of a GPU's streams, that worked.
        seconds: How long the call took.
        left_out: How many stretches, the shortest, there is no room for.
    """

    start: Floats
    end: Floats
    thread: Ints
    op: Ints
    waits: NDArray[np.bool_]
    threads: Sequence[str]
    seconds: float
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start)


def timeline_of(
    events: Events, cut: Segments, kept: NDArray[np.bool_], rows: Sequence[tuple[int, str]], most: int = _MOST
) -> Timeline:
    """The stretches of the run in the middle; of more than `most` the longest."""
    row_of = {key: row for row, key in enumerate(rows)}
    row = np.asarray([row_of.get((op.program, op.name), -1) for op in events.ops] or [-1], np.int32)
    runs = np.flatnonzero(kept)
    if not len(runs):
        none = np.zeros(0)
        return Timeline(none, none, none.astype(np.int32), none.astype(np.int32), none.astype(bool), (), 0.0)
    walls = (events.windows[:, 1] - events.windows[:, 0])[runs]
    began, ended = events.windows[runs[np.argsort(walls, kind="stable")[len(runs) // 2]]]
    shown = np.flatnonzero((cut.start >= began) & (cut.start < ended) & (row[cut.op] >= 0))
    left_out = max(len(shown) - most, 0)
    if left_out:
        longest = np.argsort(cut.start[shown] - cut.end[shown], kind="stable")[:most]
        shown = shown[np.sort(longest)]
    shown = shown[np.lexsort((cut.thread[shown], cut.start[shown]))]
    threads, thread = np.unique(cut.thread[shown], return_inverse=True)
    return Timeline(
        cut.start[shown] - began,
        np.minimum(cut.end[shown], ended) - began,
        thread.astype(np.int32),
        row[cut.op[shown]],
        cut.waits[shown],
        [events.threads[int(i)] for i in threads],
        float(ended - began),
        left_out,
    )
