"""Several callables that were measured in turns, and how many times as long as one of them the others take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from explorer.model.attached import Charted, Saved, attached, cached_property
from explorer.model.results.statistics import ratio_interval
from explorer.model.results.timing import Samples
from explorer.model.units import duration_text, factor_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times as long as the baseline something takes.

    Args:
        name: Of what is compared.
        ratio: The median of the ratios of each round: 2 takes twice as long.
        low, high: Where that median lies.

    Example:
        >>> import explorer
        >>> ratio = explorer.Ratio("new", 0.5, 0.48, 0.53)
        >>> ratio.is_same, explorer.Ratio("other", 1.01, 0.97, 1.04).is_same
        (False, True)
    """

    name: str
    ratio: float
    low: float
    high: float

    @property
    def is_same(self) -> bool:
        """Whether no difference is seen: the interval holds 1."""
        return self.low <= 1 <= self.high

    def __str__(self) -> str:
        if self.is_same:
            return f"no difference seen ({_span(self.low, self.high)})"
        low, high = (self.low, self.high) if self.ratio > 1 else (1 / self.high, 1 / self.low)
        middle = self.ratio if self.ratio > 1 else 1 / self.ratio
        return f"{factor_text(middle)} {'slower' if self.ratio > 1 else 'faster'} ({_span(low, high)})"


@dataclass(frozen=True, repr=False, eq=False)
class Comparison(Charted, Saved):
    """What `explorer.compare` measured. Iterating gives a `Ratio` for each name but the baseline's.

    Args:
        samples: Of each name; the samples of one position were taken in the same round.
        baseline: The name that the others are compared with.
        signature: The arguments with their types; empty where each has its own.
        notes: What the reader should know before trusting the figures.
        environment: Versions, device, cores.

    Example:
        >>> import explorer
        >>> a, b = explorer.Samples((1.0, 1.1, 1.0) * 5), explorer.Samples((2.1, 2.0, 2.2) * 5)
        >>> compared = explorer.Comparison({"old": b, "new": a}, "old")
        >>> compared
        Comparison(new is 2.1× faster (1.82 … 2.20×) than old)
          old   2.1 s    the baseline
          new   1 s      2.1× faster (1.82 … 2.20×)
          15 rounds, each in an order of its own
        >>> compared["new"].is_same
        False
    """

    samples: Mapping[str, Samples]
    baseline: str
    signature: str = ""
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    @cached_property
    def ratios(self) -> dict[str, Ratio]:
        """By name, how many times as long as the baseline each takes, the baseline not among them."""
        base = self.samples[self.baseline]
        return {
            name: Ratio(name, *ratio_interval(one.samples, base.samples, one.confidence))
            for name, one in self.samples.items()
            if name != self.baseline
        }

    def __getitem__(self, name: str) -> Ratio:
        return self.ratios[name]

    def __iter__(self) -> Iterator[Ratio]:
        return iter(self.ratios.values())

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def rounds(self) -> int:
        return min((one.count for one in self.samples.values()), default=0)

    @property
    def fastest(self) -> str:
        """The name with the least median."""
        return min(self.samples, key=lambda name: self.samples[name].median)

    @property
    def headline(self) -> str:
        """The result in one sentence."""
        different = [ratio for ratio in self if not ratio.is_same]
        if not different:
            others = " and ".join(self.ratios) if len(self) < 4 else f"{len(self) - 1} others"
            low, high = min(ratio.low for ratio in self), max(ratio.high for ratio in self)
            return f"no difference seen between {self.baseline} and {others} ({_span(low, high)})"
        # The fastest one against the baseline; where none is faster, the slowest.
        ratio = min(different, key=lambda ratio: ratio.ratio)
        if ratio.ratio > 1:
            ratio = max(different, key=lambda ratio: ratio.ratio)
        return f"{ratio.name} is {ratio} than {self.baseline}"

    @attached
    def to_frame(self, samples: bool = False) -> pd.DataFrame:
        """A table for pandas: a row for each name, or for each round.

        Args:
            samples: False gives `name`, `median`, `low`, `high`, `fastest`, `spread` in seconds, `ratio`, `ratio_low`,
                `ratio_high`, `samples` and `calls`; True gives a column of seconds for each name, a row for each round.

        Raises:
            MissingPackageError: pandas is not installed.
        """
        ...

    def __repr__(self) -> str:
        # Times, as in the repr of a Timing: they are what there is to say.
        widest = max(map(len, self.samples), default=0) + 2
        lines = [
            f"  {name:<{widest}} {duration_text(samples.median):<8} {self.ratios.get(name, 'the baseline')}"
            for name, samples in self.samples.items()
        ]
        lines.append(f"  {self.rounds:,} rounds, each in an order of its own")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join([f"Comparison({self.headline})", *lines])


def _span(low: float, high: float) -> str:
    digits = 2 if high < 9.95 else 1 if high < 99.5 else 0
    return f"{low:,.{digits}f} … {high:,.{digits}f}×"
