"""The compiled copy for one kind of call, and whether it is worth having."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from explorer.hotpath.arguments import Call
from explorer.hotpath.compiled import Compiled
from explorer.hotpath.costs import CallCosts
from explorer.hotpath.guards import Guards
from explorer.hotpath.unpacking import Unpack
from explorer.model.units import duration_text, factor_text

_COMPARED = 3  # calls that run both ways
_UNSURE = 9  # as many where the first few don't say yes: a busy machine makes one call in three several times as long
_LONG = 1.0  # seconds of eager calls that ran both ways: what takes so long isn't disturbed much
_SLOWER = 1.0  # times: what was compiled is given up below this
_DOUBTED = 3  # checks in a row that took longer than the eager calls did


@dataclass(slots=True, eq=False)
class Variant:
    """The compiled copy for one structure of arguments, their types, one choice of what is no array, one world.

    Args:
        guards: Hold what it reads.
        run: Takes the arrays that it reads, and those of the arguments.
        compile_seconds: What making it took.
        call: What it was made for.
        costs: What calls like those take.
        unpack: Gives the arrays of arguments of its structure.
        fits: Whether arguments are like those of the proof beyond their tree; None where that says all.
        eager, compiled: Seconds of the calls that ran both ways, with all that they compute.
        checks: Seconds of the last compiled calls that were waited for.
        is_trusted: Whether calls run compiled alone.
        is_doubted: Whether it once was, and then took longer than eager calls.
    """

    guards: Guards
    run: Compiled
    compile_seconds: float
    call: Call
    costs: CallCosts
    unpack: Unpack
    fits: Callable[[Any, Any], bool] | None = None
    eager: list[float] = field(default_factory=list[float])
    compiled: list[float] = field(default_factory=list[float])
    checks: deque[float] = field(default_factory=lambda: deque(maxlen=_DOUBTED))
    is_trusted: bool = False
    is_doubted: bool = False
    comparing: Any = None

    @property
    def speedup(self) -> float:
        """How many times as fast as eager calls it is."""
        return median(self.eager) / median(self.compiled)

    @property
    def comparison_text(self) -> str:
        """Example: `4.1 × as fast: 12.3 ms → 3 ms`."""
        took = f"{duration_text(median(self.eager))} → {duration_text(median(self.compiled))}"
        return f"{factor_text(self.speedup)} as fast: {took}"

    def is_for(self, args: Any, kwargs: Any) -> bool:
        """Whether arguments are like those of the proof."""
        return self.fits is None or self.fits(args, kwargs)

    def note(self, eager: float, left: float, compiled: float) -> None:
        """A call ran both ways, and took so many seconds each; `left` is how long it went on after it returned."""
        self.costs.note_both(eager, left, compiled)
        self.eager.append(eager)
        self.compiled.append(compiled)

    def verdict(self, faster: float) -> bool | None:
        """Whether it is to stay, as so many times as fast; None as long as the calls that ran both ways don't say."""
        if len(self.eager) < _COMPARED:
            return None
        least = _SLOWER if self.is_doubted else faster
        is_sure = self.speedup > 1.5 * least or len(self.eager) >= _UNSURE or sum(self.eager) > _LONG
        return self.speedup >= least if is_sure else None

    def check(self, seconds: float) -> bool:
        """A compiled call took so long; whether it still seems to be faster than eager ones.

        Eager calls aren't run for that. Where compiled ones take longer than those did, the machine may be busier now:
        only calls that run both ways tell.
        """
        self.checks.append(seconds)
        return len(self.checks) < _DOUBTED or min(self.checks) <= self.costs.eager_seconds()

    def doubt(self) -> None:
        """The next calls run both ways again."""
        self.eager, self.compiled, self.is_doubted, self.is_trusted = [], [], True, False
        self.checks.clear()
