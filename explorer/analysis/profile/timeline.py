"""From the stretches of work of all calls to the timeline of one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.profile.attribution import Segments
from explorer.model.results.profile_events import Events, Timeline

_MOST = 20_000


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
