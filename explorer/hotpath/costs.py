"""What a call takes, as it was written and compiled, estimated from what was measured on the way.

Nothing runs to be measured alone. Of eager calls there are two kinds of figures: those before the function was
compiled, timed until they returned; and those that ran both ways, which waited for their results. Each errs to one side
only: whatever else the machine did made it longer. (Calls both ways come right after a compile, while others may go on:
some took twice as long as the program's own calls did.) So the lower of the two is the estimate, and never the mean.
Eager calls while a compile of their own ran beside them are in neither.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, nan
from statistics import median

from explorer.model.results.hot_paths import Basis
from explorer.model.results.statistics import interval_of_median

_KEPT = 64  # seconds of each sort


@dataclass(frozen=True, slots=True)
class Estimate:
    """Of the seconds of a call.

    Args:
        seconds: The median.
        low, high: It lies between, as far as the samples say.
        count: Of how many samples.
    """

    seconds: float = nan
    low: float = nan
    high: float = nan
    count: int = 0


class CallCosts:
    """What calls of one kind took: bounded, whatever the program does.

    Attributes:
        calls: How many ran compiled; those that weren't looked at are counted by those that were.
    """

    __slots__ = ("_before", "_both", "_compiled", "_left", "calls")

    def __init__(self) -> None:
        self.calls = 0
        self._before: deque[float] = deque(maxlen=_KEPT)
        self._both: deque[float] = deque(maxlen=_KEPT)
        self._left: deque[float] = deque(maxlen=_KEPT)
        self._compiled: deque[float] = deque(maxlen=_KEPT)

    def note_before(self, seconds: float) -> None:
        """An eager call, before anything was compiled for its kind, returned after so many seconds."""
        self._before.append(seconds)

    def note_both(self, eager: float, left: float, compiled: float) -> None:
        """A call ran both ways, and took so many seconds each; eagerly it had returned when `left` were left."""
        self._both.append(eager)
        self._left.append(left)
        self._compiled.append(compiled)

    def note_compiled(self, seconds: float) -> None:
        """A compiled call was waited for."""
        self._compiled.append(seconds)

    def eager_seconds(self) -> float:
        """What a call takes as it was written, without how sure that is; NaN where none was measured."""
        return min((median(samples) for samples in self._eager().values()), default=nan)

    def eager(self) -> tuple[Estimate, Basis]:
        """What a call takes as it was written, with the results there; and which calls say so."""
        estimates: dict[Basis, Estimate] = {basis: _estimate(samples) for basis, samples in self._eager().items()}
        if not estimates:
            return Estimate(), ""
        lowest: Basis = min(estimates, key=lambda basis: estimates[basis].seconds)
        # No estimate is above the upper end of another one's interval: what it says beyond is a disturbance.
        low, high = (min(getattr(one, end) for one in estimates.values()) for end in ("low", "high"))
        return Estimate(estimates[lowest].seconds, low, high, estimates[lowest].count), lowest

    def _eager(self) -> dict[Basis, Sequence[float]]:
        # A call that returns hasn't got its results yet where JAX runs ahead; how much is left then, those show that
        # were waited for. The least of them: a thread that waits is given the interpreter late on a busy machine.
        left = min(self._left.copy(), default=0.0)
        samples: list[tuple[Basis, Sequence[float]]] = [
            ("both ways", self._both.copy()),
            ("before", [seconds + left for seconds in self._before.copy()]),
        ]
        return {basis: seconds for basis, seconds in samples if seconds}

    def compiled(self) -> Estimate:
        """What a compiled call takes, with the results there."""
        return _estimate(self._compiled.copy()) if self._compiled else Estimate()


@dataclass(frozen=True, slots=True)
class FunctionCosts:
    """What a call of a function takes, the kinds of its calls together, as often as each ran compiled.

    Args:
        eager, compiled: Each way.
        basis: What says so of eager calls.
    """

    eager: Estimate
    compiled: Estimate
    basis: Basis


def together(kinds: Sequence[CallCosts]) -> FunctionCosts | None:
    """What a call takes, over the kinds of calls that were compiled; None where there is none."""
    measured = [(kind, *kind.eager(), kind.compiled()) for kind in kinds]
    measured = [entry for entry in measured if entry[1].count and entry[3].count]
    if not measured:
        return None
    weights = [float(kind.calls) for kind, *_ in measured]
    weights = weights if any(weights) else [1.0] * len(weights)
    bases = [basis for _, _, basis, _ in measured]
    return FunctionCosts(
        _mean([eager for _, eager, _, _ in measured], weights),
        _mean([compiled for *_, compiled in measured], weights),
        bases[weights.index(max(weights))],
    )


def _estimate(samples: Sequence[float]) -> Estimate:
    low, high = interval_of_median(samples)
    return Estimate(median(samples), max(low, 0.0), high, len(samples))


def _mean(estimates: Sequence[Estimate], weights: Sequence[float]) -> Estimate:
    def of(name: str) -> float:
        return fsum(w * getattr(one, name) for w, one in zip(weights, estimates, strict=True)) / fsum(weights)

    return Estimate(of("seconds"), of("low"), of("high"), sum(estimate.count for estimate in estimates))
