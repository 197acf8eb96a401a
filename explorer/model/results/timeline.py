"""When each thread worked for which instruction, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Floats, Ints


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
