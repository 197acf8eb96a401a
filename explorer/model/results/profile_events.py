"""What a profiler saw, column by column: which thread did what from when to when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Floats, Ints

# What an event is.
THUNK = 0  # an instruction runs
REGION = 1  # a thread works for whoever gave it the work
RECORD = 2  # work is given to another thread; a moment
WAIT = 3  # a thread waits for others, inside of what it does
BETWEEN = 4  # the runtime between instructions
HOST = 5  # anything else: Python, dispatch


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction of one program, as the profiler names it.

    Args:
        program, module: The program's number and name; -1 and empty for what no program did, as a copy by the host.
        name: The instruction's.
        kernel: On a GPU the name of the function that ran for it, else empty: one instruction may run several, and the
            kernels of a CUDA graph are all said to be of the call that launched it.
    """

    program: int
    module: str
    name: str
    kernel: str = ""


@dataclass(frozen=True, eq=False)
class Events:
    """Events by column, shape `[n]`, in any order.

    Args:
        thread: Code into `threads`.
        start, end: Seconds from when the profiler started.
        kind: One of the numbers above.
        what: Of a THUNK its op, code into `ops`. Of a RECORD and a REGION the number of the work that is handed over;
            -1 where it has none. Of others the name, code into `names`.
        threads: Their names: of a CPU's thread, of a GPU's stream.
        ops: The instructions that ran.
        names: Of what the host did.
        windows: When each call of the profiled function began and ended, shape `[runs, 2]`, in order.
        python: The thread that called it, -1 where that is not known.
    """

    thread: Ints
    start: Floats
    end: Floats
    kind: Ints
    what: NDArray[np.int64]
    threads: Sequence[str]
    ops: Sequence[Op]
    names: Sequence[str]
    windows: Floats
    python: int = -1

    def __len__(self) -> int:
        return len(self.thread)
