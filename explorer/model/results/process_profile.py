"""Where the time goes in many processes, and what they lose as they wait for each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.model.attached import Displayable, Saved, attached

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ProcessOp:
    """One instruction, in all processes that ran it.

    Args:
        name, op: The instruction's: `all-reduce.1`, `all-reduce`.
        module: The executable that it is in.
        file, line: The user's line that it comes from; empty and 0 where that isn't known.
        is_collective: True if it waits for other devices.

    Example:
        >>> import explorer, numpy as np
        >>> op = explorer.ProcessOp("all-reduce.1", "all-reduce", "jit_step", "train.py", 12, True)
        >>> times = np.array([[0.003, 0.001]])
        >>> profile = explorer.ProcessProfile("step", ("host 0", "host 1"), (op,), times, np.array([0.004, 0.004]))
        >>> profile.ops[0].is_collective, profile.waiting.tolist()
        (True, [0.002, 0.0])
    """

    name: str
    op: str
    module: str
    file: str
    line: int
    is_collective: bool


@dataclass(frozen=True, repr=False, eq=False)
class ProcessProfile(Displayable, Saved):
    """One function's profiles of many processes as one.

    A collective ends everywhere as the last process has come to it; so what it takes longer than where it is shortest
    was spent waiting for others. That is inferred: clocks of processes can't be held against each other.

    Args:
        function: What was profiled.
        processes: What the processes are called.
        ops: The instructions, the longest first.
        seconds: Of a call, by op and process; NaN where a process has no such instruction.
        calls: Seconds of a call, by process.
        notes: What the reader should know before trusting the figures.

    Example:
        >>> import explorer, numpy as np
        >>> op = explorer.ProcessOp("all-reduce.1", "all-reduce", "jit_step", "train.py", 12, True)
        >>> times = np.array([[0.003, 0.001]])
        >>> profile = explorer.ProcessProfile("step", ("host 0", "host 1"), (op,), times, np.array([0.004, 0.004]))
        >>> profile.processes[profile.slowest], profile.own.tolist()
        ('host 0', [0.0, 0.0])
    """

    function: str
    processes: tuple[str, ...]
    ops: tuple[ProcessOp, ...]
    seconds: NDArray[np.float64]
    calls: NDArray[np.float64]
    notes: tuple[str, ...] = ()

    @property
    def waiting(self) -> NDArray[np.float64]:
        """Seconds of a call that each process waits in collectives for others, inferred."""
        which = [at for at, op in enumerate(self.ops) if op.is_collective]
        if not which:
            return np.zeros(len(self.processes))
        table = self.seconds[which]
        least = np.where(np.isnan(table), np.inf, table).min(axis=1, keepdims=True)
        return np.nansum(np.where(np.isnan(table), 0.0, table - np.where(np.isinf(least), 0.0, least)), axis=0)

    @property
    def slowest(self) -> int:
        """Which process takes longest for what is no collective: whom the others wait for."""
        return int(np.argmax(self.own))

    @property
    def own(self) -> NDArray[np.float64]:
        """Seconds of a call that each process computes: all but collectives."""
        which = [at for at, op in enumerate(self.ops) if not op.is_collective]
        return np.nansum(self.seconds[which], axis=0) if which else np.zeros(len(self.processes))

    @attached
    def to_frame(self) -> pd.DataFrame:
        """As a `pandas.DataFrame`, a row for each instruction, a column for each process.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        ...

    @attached
    def __repr__(self) -> str: ...
