"""Detection of other work on the machine while samples are taken, block by block.

Two observations follow each block of samples, together about 0.1 ms. The processor time of all programs, minus this
process's own, is that of others. A fixed amount of work in the first cache takes longer if the core itself is slower:
another program on it, a host that takes it away, a lower clock.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isnan, nan
from time import perf_counter, process_time

import numpy as np

from explorer.measure.machine import usable_cores

BLOCK = 0.1  # seconds: of fewer, the system's clock ticks of 10 ms would be too coarse
# Processor time of others in a block that may still be the system's own: two ticks of its clock, and a twentieth.
_TICKS, _USUAL = 0.02, 0.05
_FULL = 0.8  # of the cores: while fewer are used, no program waits for one
_SLOWER = 1.06  # times the least that the fixed work has taken; on a quiet machine it varies by 1 to 3 %
_REPEATS, _TIMES = 5, 8  # of some 15 µs each, so that the clock's 50 ns are nothing
_SIZE = 2048  # float64: 16 kB, in the first cache of any processor
_FIELDS = (1, 2, 3, 6, 7, 8)  # of a line of /proc/stat: user, nice, system, irq, softirq, steal; waiting is no use


@dataclass(frozen=True, slots=True)
class Block:
    """Observations of one block of samples.

    Args:
        samples: Number of samples.
        seconds: Duration.
        others: Processor seconds of other programs and of the host; NaN if unknown.
        own: Processor seconds of this process.
        work: Seconds of the fixed work at the end of the block; NaN if it was not done.
    """

    samples: int
    seconds: float
    others: float = nan
    own: float = nan
    work: float = nan


@dataclass(frozen=True, slots=True)
class Quiet:
    """The samples that count.

    Args:
        counted: For each sample, True if nothing else ran meanwhile; all True if too few are quiet.
        others: Cores that other programs used on average during the counted blocks; NaN if unknown.
        slowed: Median slowdown of the fixed work after counted blocks: 0.1 is 10 % more than the best; NaN if unknown.
        is_disturbed: True if too few samples were quiet, so that all count.
        own: Cores that this process used on average; NaN if unknown.
    """

    counted: tuple[bool, ...]
    others: float
    slowed: float
    is_disturbed: bool
    own: float


class Observer:
    """Observer of other work on the machine, from one block to the next.

    Args:
        processor_seconds: Returns the processor time of all programs and of this one; None if unknown.
        work: Does the fixed work and returns its seconds.
        cores: Number of cores that this process may use.
    """

    # Of the process, as other programs may slow a measurement from its beginning to its end.
    best = float("inf")  # seconds of the fixed work, the least in this process

    def __init__(
        self,
        processor_seconds: Callable[[], tuple[float, float] | None] | None = None,
        work: Callable[[], float] | None = None,
        cores: int | None = None,
    ) -> None:
        self._read = processor_seconds or ProcessorTimes().read
        self._work = work or fixed_work
        self.cores = cores or len(usable_cores())
        self._last: tuple[float, float] | None = None

    def begin(self) -> None:
        """Begin the first block: store the processor times so far."""
        self._last = self._read()

    def block(self, samples: int, seconds: float) -> Block:
        """Do the fixed work, and return the observations of the block of `samples` samples that ends now."""
        now, last = self._read(), self._last
        work = self._work()
        Observer.best = min(Observer.best, work)
        # Read again: the fixed work does not belong to the next block.
        self._last = self._read() if now is not None else None
        if now is None or last is None:
            return Block(samples, seconds, work=work)
        own = now[1] - last[1]
        return Block(samples, seconds, max(now[0] - last[0] - own, 0.0), own, work)

    def quiet(self, blocks: Sequence[Block], fewest: int) -> Quiet:
        """Return the samples that count; all do if fewer than `fewest` are quiet, or less than a fifth."""
        return quiet_samples(blocks, self.cores, Observer.best, fewest)


def quiet_samples(blocks: Sequence[Block], cores: int, best: float, fewest: int) -> Quiet:
    """Return which samples were taken while nothing else ran; all count if those are fewer than `fewest` or a fifth.

    Example:
        >>> calm, busy = Block(2, 0.1, 0.0, 0.2, 1e-4), Block(2, 0.1, 0.1, 0.1, 1e-4)
        >>> quiet_samples([calm, busy, calm], cores=2, best=1e-4, fewest=3).counted
        (True, True, False, False, True, True)
    """
    # `not … >` keeps a block without fixed work, whose NaN compares as False.
    calm = [not is_busy(block, cores) and not block.work > _SLOWER * best for block in blocks]
    samples = np.asarray([block.samples for block in blocks], int)
    left, count = int(samples[calm].sum()), int(samples.sum())
    is_disturbed = left < min(fewest, count) or left < count / 5
    counted = np.asarray(calm, bool) | is_disturbed
    used = [blocks[at] for at in np.flatnonzero(counted).tolist()]
    lasted = sum(block.seconds for block in used)
    slowed = [block.work / best - 1 for block in used if not isnan(block.work)]
    return Quiet(
        tuple(np.repeat(counted, samples).tolist()),
        sum(block.others for block in used) / lasted if lasted else nan,
        float(np.median(slowed)) if slowed else nan,
        is_disturbed and not all(calm),
        sum(block.own for block in used) / lasted if lasted else nan,
    )


def is_busy(block: Block, cores: int) -> bool:
    """Return True if other programs ran and nearly all cores were in use, so that one may have been taken away."""
    is_seen = block.others > _TICKS + _USUAL * block.seconds
    return is_seen and block.others + block.own > _FULL * cores * block.seconds


class ProcessorTimes:
    """Processor time of all programs on the cores of this process, from Linux's /proc/stat."""

    def __init__(self) -> None:
        self._file = -1
        self._cores = usable_cores()
        self._names = {b"cpu%d" % core for core in self._cores}
        self._is_all = len(self._cores) == os.cpu_count()
        # macOS has no /proc, and Windows no sysconf either.
        with suppress(OSError, AttributeError):
            self._file = os.open("/proc/stat", os.O_RDONLY)
            weakref.finalize(self, os.close, self._file)
            self._tick = 1 / os.sysconf("SC_CLK_TCK")

    def read(self) -> tuple[float, float] | None:
        """Return the processor seconds of all programs and of this one, each since a fixed moment; None if unknown."""
        if self._file < 0:
            return None
        with suppress(OSError, ValueError, IndexError):
            # The first line, the sum over all cores, has less than 256 bytes; a line for each core needs more.
            text = os.pread(self._file, 256 if self._is_all else 1 << 16, 0)
            lines = [line.split() for line in text.splitlines() if line.startswith(b"cpu")]
            used = lines[:1] if self._is_all else [line for line in lines if line[0] in self._names]
            return self._tick * sum(int(line[at]) for line in used for at in _FIELDS), process_time()
        return None


def fixed_work() -> float:
    """Run a fixed piece of work in the first cache several times; return the seconds of the fastest run."""
    least = float("inf")
    for _ in range(_REPEATS):
        start = perf_counter()
        for _ in range(_TIMES):
            np.exp(_NUMBERS, out=_RESULT)
        least = min(least, perf_counter() - start)
    return least


_NUMBERS = np.linspace(0.0, 1.0, _SIZE)
_RESULT = np.empty(_SIZE)
