"""The time of a call over devices of several processes: all begin it together, and the slowest decides."""

from __future__ import annotations

import json
from collections import Counter
from itertools import count
from statistics import median
from time import perf_counter
from typing import Any

import jax
import numpy as np

from explorer._jax.distributed import Processes, processes
from explorer.errors import NotRecordedError
from explorer.measure.calls import Calls, ready
from explorer.model.results.timing import Samples
from explorer.model.units import duration_text

_WARM_UP = 3  # calls, as many in each process
_FEWEST, _MOST = 5, 500
_PATIENCE = 300.0  # seconds for a process that comes late
_turns = count()


def shared_processes(values: Any) -> Processes | None:
    """The processes among which arrays of these values are spread; None if they all are this one's."""
    leaves = jax.tree.leaves(values)
    spread = any(isinstance(leaf, jax.Array) and not leaf.is_fully_addressable for leaf in leaves)
    return processes() if spread else None


def sample_in_step(calls: Calls, shared: Processes, seconds: float, confidence: float) -> tuple[Samples, list[str]]:
    """Make as many calls in each process, each begun by all at a barrier; a call takes as long as where it takes most.

    Args:
        calls: What is called; its first call has been made.
        shared: The processes, every one of which calls this.
        seconds: To spend, about; the first process decides how many calls that is.
        confidence: Of the interval.

    Returns:
        The samples, the same in each process, and how far the processes differ, in words.

    Raises:
        NotRecordedError: Some process didn't come.
    """
    turn = f"explorer/time/{next(_turns)}"
    try:
        once = min(_timed(calls) for _ in range(_WARM_UP))
        many = _agreed(shared, turn, max(_FEWEST, min(_MOST, int(seconds / max(once, 1e-6)))))
        own: list[float] = []
        for at in range(many):
            own.append(_timed(calls, lambda at=at: shared.wait(f"{turn}/{at}", _PATIENCE)))
        shared.write(f"{turn}/samples/{shared.index}", json.dumps(own).encode())
        every = [json.loads(shared.read(f"{turn}/samples/{at}", _PATIENCE)) for at in range(shared.count)]
    except TimeoutError as error:
        raise NotRecordedError(
            f"a process didn't make the same calls: {error}.\n"
            f"  Hint: all {shared.count} processes call explorer.time with the same function."
        ) from error
    table = np.asarray(every)
    return Samples(tuple(map(float, table.max(axis=0))), confidence=confidence), [_spread(table)]


def _timed(calls: Calls, begin: Any = None) -> float:
    given = calls.prepare() if calls.prepare is not None else ()
    if begin is not None:
        begin()
    start = perf_counter()
    ready(calls.call(*given))
    return perf_counter() - start


def _agreed(shared: Processes, turn: str, own: int) -> int:
    """How many calls the first process wants to make."""
    if shared.index == 0:
        shared.write(f"{turn}/many", str(own).encode())
    return int(shared.read(f"{turn}/many", _PATIENCE))


def _spread(table: Any) -> str:
    """How far the processes differ: a row of `table` is of one process."""
    medians = [median(row) for row in table]
    slowest, fastest = int(np.argmax(medians)), int(np.argmin(medians))
    often, times = Counter(map(int, table.argmax(axis=0))).most_common(1)[0]
    reach = " to ".join(f"{duration_text(medians[at])} in process {at}" for at in (fastest, slowest))
    return (
        f"all {len(medians)} processes begin each call at a barrier, and it takes as long as in the slowest: most "
        f"often process {often}, {times:,} of {table.shape[1]:,} times; medians reach from {reach}"
    )
