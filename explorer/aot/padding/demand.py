"""When another binary is worth compiling: as soon as it would have paid for itself.

That is the ski rental rule. Whoever buys skis once the rent paid equals their price spends at most twice of what they
would have spent, had they known how often they go. Rent is what calls waste by running in a larger bucket; the price
is a compile, taken to be what the largest bucket's was. A bucket saves for all sizes that it serves, an exact binary
for one size alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Lock

from explorer.aot.padding.buckets import Sizes, serves

# Of a call at a bucket's own size: what masks cost. Measured 0 to 20 % for most functions, 120 % for a softmax over
# the padded axis.
_MASKS = 0.1
_NEVER = float("-inf")  # saved by what is there, or was tried: it isn't named again
_REMEMBERED = 4096  # sizes whose demand is kept; past it the demand of exact sizes starts anew


@dataclass(frozen=True)
class Wish:
    """A binary that is worth having: of a bucket, or of one exact size."""

    sizes: Sizes
    is_padded: bool


class Demand:
    """What calls would have saved with binaries that there aren't.

    Args:
        candidates: Buckets that may be compiled, beside those that are.
        work: How much is done for such sizes, in any unit.
        price: Seconds of a compile.
    """

    def __init__(self, candidates: Sequence[Sizes], work: Callable[[Sizes], float], price: float) -> None:
        self._work = work
        self._price = price
        self._lock = Lock()
        self._saved = dict.fromkeys(candidates, 0.0)
        self._saved_exact: dict[Sizes, float] = {}
        # What was named and isn't there yet: calls count as if it were, else every larger bucket would be named too.
        self._pending: set[Wish] = set()
        self._shares: dict[tuple[Sizes, Sizes], tuple[float, list[tuple[Sizes, float]]]] = {}

    def note(self, sizes: Sizes, bucket: Sizes, seconds: float, overhead: float) -> Wish | None:
        """A call was padded.

        Args:
            sizes: Its own.
            bucket: What served it.
            seconds: What it took.
            overhead: Of those, what padding and cutting took.

        Returns:
            What is worth compiling now; it isn't named again.
        """
        with self._lock:
            if Wish(sizes, is_padded=False) in self._pending:
                return None
            coming = [wish.sizes for wish in self._pending if wish.is_padded and serves(wish.sizes, sizes)]
            smallest = min((bucket, *coming), key=self._work)
            spent = (seconds - overhead) * self._work(smallest) / (self._work(bucket) or 1.0)
            wish = self._add(sizes, smallest, spent, overhead)
            if wish is not None:
                self._pending.add(wish)
            return wish

    def _add(self, sizes: Sizes, bucket: Sizes, seconds: float, overhead: float) -> Wish | None:
        """A call took so many seconds, and some more for padding and cutting."""
        exact_share, shares = self._shares_of(sizes, bucket)
        for candidate, share in shares:
            self._saved[candidate] += seconds * share
        if len(self._saved_exact) >= _REMEMBERED:
            self._saved_exact.clear()
        saved = self._saved_exact.get(sizes, 0.0) + overhead + seconds * exact_share
        self._saved_exact[sizes] = saved
        if saved >= self._price:
            self._saved_exact[sizes] = _NEVER
            return Wish(sizes, is_padded=False)
        best = max(shares, key=lambda pair: self._saved[pair[0]], default=None)
        if best is None or self._saved[best[0]] < self._price:
            return None
        self._saved[best[0]] = _NEVER
        return Wish(best[0], is_padded=True)

    def finish(self, wish: Wish) -> None:
        """What was named is there, or never will be."""
        with self._lock:
            self._pending.discard(wish)

    def add(self, bucket: Sizes) -> None:
        """A bucket is there now: what others would save is counted from here on."""
        with self._lock:
            self._saved.pop(bucket, None)
            self._saved = {candidate: min(saved, 0.0) for candidate, saved in self._saved.items()}
            self._shares.clear()

    def _shares_of(self, sizes: Sizes, bucket: Sizes) -> tuple[float, list[tuple[Sizes, float]]]:
        """Of a call's seconds, what an exact binary would save, and each bucket that is smaller than its own."""
        key = sizes, bucket
        if key not in self._shares:
            if len(self._shares) >= _REMEMBERED:
                self._shares.clear()
            whole = self._work(bucket) or 1.0
            smaller = [(c, 1 - self._work(c) / whole) for c in self._saved if c != bucket and serves(c, sizes)]
            exact = 1 - (1 - _MASKS) * self._work(sizes) / whole
            self._shares[key] = exact, [(candidate, share) for candidate, share in smaller if share > 0]
        return self._shares[key]
