"""Machines that are not alone, simulated: a clock, calls, the system's account of processor time, and fixed work.

A machine here has a truth, what a call takes while nothing else runs, which a real one hasn't. The real sampler runs on
it. Its noise is of the kinds that timings meet: a long tail, runs that differ, other programs that come and go, a host
that makes the processor slower without a word, caches and memory shared with others.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from explorer.measure.disturbance import Observer
from explorer.measure.steady import Sampler

TICK = 0.01  # seconds: what the system counts processor time in
WORK = 15e-6  # seconds of the fixed work


@dataclass
class Neighbour:
    """Another program, on for some time and off for some, drawn anew each time.

    Args:
        on, off: Mean seconds of each; 0 for always the other.
        slows: How many times as long a call takes meanwhile, at least and at most; drawn for each machine.
        cores: Processor time a second that the system counts for it; 0 for one on the host, of which nothing is told.
        slows_work: Whether the fixed work takes longer too.
    """

    on: float
    off: float
    slows: tuple[float, float]
    cores: float = 1.0
    slows_work: bool = False


@dataclass
class Machine:
    """A machine at a moment, which the calls move on.

    Args:
        seconds: Of a call while nothing else runs.
        own: Cores that a call uses.
        neighbours: What else runs.
        between: By what part runs of the same differ, as a standard deviation.
        tail: How far a call takes longer than at best, on average, as a part.
    """

    seconds: float
    random: random.Random
    own: float = 2.0
    cores: int = 2
    neighbours: list[Neighbour] = field(default_factory=list)
    between: float = 0.008
    tail: float = 0.01
    now: float = 0.0
    used: float = 0.0
    others: float = 0.0

    def __post_init__(self) -> None:
        draw = self.random
        self.of_run = self.seconds * max(draw.gauss(1, self.between), 0.9)
        self.slows = [draw.uniform(*one.slows) for one in self.neighbours]
        self.is_on = [draw.random() * (one.on + one.off) < one.on for one in self.neighbours]
        self.until = [self._lasts(i) for i in range(len(self.neighbours))]

    def _lasts(self, i: int) -> float:
        one = self.neighbours[i]
        mean = one.on if self.is_on[i] else one.off
        other = one.off if self.is_on[i] else one.on
        return self.now + (self.random.expovariate(1 / mean) if mean and other else float("inf"))

    def pass_by(self, work: float, own: float) -> None:
        """Do so many seconds of work, at the speed that there is."""
        while work > 0:
            factor = 1.0
            for slows, on in zip(self.slows, self.is_on, strict=True):
                factor *= slows if on else 1.0
            step = min([work * factor, *(until - self.now for until in self.until)])
            step = max(step, 1e-9)
            self.now += step
            work -= step / factor
            running = sum(one.cores for one, on in zip(self.neighbours, self.is_on, strict=True) if on)
            self.others += step * min(running, self.cores - 0.05)
            self.used += step * min(own, self.cores - min(running, self.cores - 0.05) * 0.5)
            for i, until in enumerate(self.until):
                if self.now >= until:
                    self.is_on[i] = not self.is_on[i]
                    self.until[i] = self._lasts(i)

    def call(self) -> None:
        self.pass_by(self.of_run * (1 + self.random.expovariate(1 / self.tail)), self.own)

    def clock(self) -> float:
        return self.now

    def processor_seconds(self) -> tuple[float, float]:
        whole = self.used + self.others
        return whole // TICK * TICK, self.used

    def fixed_work(self) -> float:
        factor = 1.0
        for one, slows, on in zip(self.neighbours, self.slows, self.is_on, strict=True):
            factor *= slows if on and one.slows_work else 1.0
        self.pass_by(5 * WORK, 1.0)
        return WORK * factor * (1 + abs(self.random.gauss(0, 0.01)))


KINDS = {
    "alone": [],
    "a little of the system's": [Neighbour(0.02, 1.0, (1.1, 2.0), 1.0)],
    "a program, seconds by turns": [Neighbour(1.5, 1.5, (1.2, 2.4), 1.0)],
    "a program, tenths by turns": [Neighbour(0.15, 0.3, (1.2, 2.4), 1.0)],
    "a program all the time": [Neighbour(1.0, 0.0, (1.2, 2.4), 1.0)],
    "two programs": [Neighbour(0.5, 1.0, (1.2, 2.0), 1.0), Neighbour(2.0, 3.0, (1.2, 2.0), 1.0)],
    "bursts of 20 ms": [Neighbour(0.02, 0.06, (1.2, 2.4), 1.0)],
    "a slower host, seconds by turns": [Neighbour(1.0, 2.0, (1.1, 1.5), 0.0, True)],
    "a slower host, minutes by turns": [Neighbour(60.0, 60.0, (1.1, 1.5), 0.0, True)],
    "a host's memory, seconds by turns": [Neighbour(1.0, 1.0, (1.1, 1.4), 0.0, False)],
}


def timed(machine: Machine, seconds: float = 1.5):
    """The samples that the real sampler takes on a machine."""
    observer = Observer(machine.processor_seconds, machine.fixed_work, machine.cores)
    sampler = Sampler(machine.call, clock=machine.clock, wait=lambda result: result, observer=observer)
    sampler.warm_up(0.3 * seconds)
    sampler.measure(seconds, 0.02)
    return sampler.samples
