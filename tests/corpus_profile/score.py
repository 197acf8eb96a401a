"""Ablation against profile: who names the hottest line of each model?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import explorer as ex
from explorer.model.results.profile import Profile
from tests.corpus_profile.ablation import MODELS, Model, ablated, load, seconds_of

__all__ = ["Outcome", "outcome", "outcomes", "profiled", "table"]

_MS = 1e3


@dataclass(frozen=True)
class Outcome:
    """What came of one model. Seconds are of one call.

    Args:
        model, marked: Its name, and the line that who wrote it says is the hottest.
        gains: By line, the seconds that the model gains without it: the truth.
        whole: Seconds of the model as it is.
        profile: What the profile says.
        hottest: The line that the profile says is the hottest, 0 if that is in no line of the model.
        attributed: By line, the seconds that the profile gives it.
    """

    model: str
    marked: int
    gains: dict[int, float]
    whole: float
    profile: Profile
    hottest: int
    attributed: dict[int, float]

    @property
    def truth(self) -> int:
        """The line without which the model gains most."""
        return max(self.gains, key=self.gains.__getitem__)

    @property
    def margin(self) -> float:
        """How many times as much as without any other line."""
        best, second = sorted(self.gains.values())[:-3:-1]
        return best / second if second > 0 else math.inf

    @property
    def tied(self) -> tuple[int, ...]:
        """The lines that the profile can't tell from its hottest one, that among them."""
        return tuple(line.line if Path(line.file).stem == self.model else 0 for line in self.profile.hottest)

    @property
    def is_tie(self) -> bool:
        """Whether without another line the model gains nearly as much: within 10 %."""
        return self.margin < 1.1

    @property
    def is_right(self) -> bool:
        """True if the profile names the hottest line, or one of those that tie with it; or calls that a tie."""
        near = [line for line, gain in self.gains.items() if gain >= self.gains[self.truth] / 1.1]
        return self.hottest in near or self.truth in self.tied

    @property
    def off(self) -> float:
        """How far the lines and what is in no line are from the device's time, as a part of it."""
        profile = self.profile
        return abs(sum(line.seconds for line in profile.lines) + profile.unattributed - profile.device_seconds) / (
            profile.device_seconds
        )


def outcomes(names: Sequence[str] = (), rounds: int = 15) -> Iterator[Outcome]:
    """One for each model, or each of those named."""
    for name in names or MODELS:
        yield outcome(load(name), rounds)


def outcome(model: Model, rounds: int) -> Outcome:
    """Profile a model and time it without each of its lines."""
    lines = list(model.candidates)
    whole, *without = seconds_of([model.full, *(ablated(model, line) for line in lines)], rounds)
    gains = {line: whole - seconds for line, seconds in zip(lines, without, strict=True)}
    profile, attributed = profiled(model)
    hottest = max(attributed, key=attributed.__getitem__, default=0)
    return Outcome(model.name, model.marked, gains, whole, profile, hottest, attributed)


def profiled(model: Model) -> tuple[Profile, dict[int, float]]:
    """The profile, and the seconds that it gives each line; line 0 is the dearest that is not in the model's file."""
    profile = ex.profile(model.full.function, *model.full.arguments)
    own = {line.line: line.seconds for line in profile.lines if Path(line.file) == Path(model.file)}
    others = [line.seconds for line in profile.lines if Path(line.file) != Path(model.file)]
    return profile, own | ({0: max(others)} if others else {})


def table(found: Sequence[Outcome]) -> str:
    """One row for each model, and the score below."""
    rows = [
        f"{'model':<20}{'ms':>7}{'truth':>7}{'profile':>8}  {'':<2}{'gain':>7}{'given':>7}{'margin':>8}{'off':>7}"
        f"{'no line':>9}  hottest line",
    ]
    for one in found:
        text = one.profile.lines[0].text
        given = one.attributed.get(one.truth, 0.0)
        rows.append(
            f"{one.model:<20}{one.whole * _MS:>7.2f}{one.truth:>7}{one.hottest:>8}  {_mark(one):<2}"
            f"{one.gains[one.truth] * _MS:>7.2f}{given * _MS:>7.2f}{one.margin:>8.1f}{one.off:>7.2%}"
            f"{one.profile.unattributed / one.profile.device_seconds:>9.1%}  {text[:60]}"
            + ("" if one.marked == one.truth else f"  (marked: line {one.marked})")
        )
    right, tied = sum(one.is_right for one in found), sum(len(one.tied) > 1 for one in found)
    rows.append(f"of {len(found)} models the profile names the hottest line of {right}; {tied} are called a tie")
    return "\n".join(rows)


def _mark(one: Outcome) -> str:
    """✓ for right, ≈ for right by a tie, ✗ for wrong."""
    if not one.is_right:
        return "✗"
    return "✓" if one.hottest == one.truth else "≈"
