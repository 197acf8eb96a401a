"""What the recorded passes say of each equation: that it runs to the end, or which pass ended it, and how.

Each line of each snapshot names the equations that it is of. The last snapshot that has an equation's own operation
tells the pass that took it away: the next one. What the lines before and after that pass say of what took its place is
followed to the end, since what is rewritten may lose its name and live on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.fates.endings import Ending, at_work, displaced, ending, identity
from explorer.analysis.fates.formulas import formula
from explorer.analysis.fates.row_lives import Change, changes, last_snapshots
from explorer.model.graph import Ints
from explorer.model.passes import Passes


@dataclass(frozen=True, slots=True)
class Life:
    """What the passes say of one equation.

    Args:
        kind: `lives` if it is there at the end as it was; `rewritten` if what a pass put into its place is; else how it
            ended, a kind of fate.
        row: Of the last snapshot, what stands for it; -1 if nothing does.
        position: Of the pass that ended or rewrote it among those that changed something; -1 if none did.
        before, after: Its line before that pass, and that of what took its place.
        why: What the pass did to it, in words or as a formula.
        other: The row after the pass that stands for it, -1 for none.
        changes_nothing: It gave a value as it was before: what bears its name now does something else.
    """

    kind: str = "lives"
    row: int = -1
    position: int = -1
    before: str = ""
    after: str = ""
    why: str = ""
    other: int = -1
    changes_nothing: bool = False


@dataclass(frozen=True)
class _Tracked:
    """An equation and the row that stands for it; and, where that is another operation, how it came to that."""

    equation: int
    row: int
    life: Life = Life()
    is_named: bool = True  # the row bears the equation's number
    is_shared: bool = False


def follow(
    passes: Passes, snapshots: Sequence[Ints], stages: Sequence[tuple[Ints, Ints, NDArray[np.bool_]]]
) -> list[Mapping[int, Life]]:
    """What the passes say of the equations of several stages, which are followed from snapshot to snapshot in one go.

    Args:
        passes: What was recorded.
        snapshots: The rows of each.
        stages: Of each, three columns of shape `[pairs]`: a line and an equation that it names, without what only comes
            along with it; whether the line does what the equation does in StableHLO, under that name.

    Returns:
        Of each stage, by equation; those without a row are not there.
    """
    last: list[int] = last_snapshots(snapshots, len(passes.versions.lines)).tolist()
    trackers = [_Tracker(last, len(snapshots) - 1, *columns) for columns in stages]
    for change in changes(passes, snapshots):
        for tracker in trackers:
            tracker.meet(change)
    return [tracker.lives() for tracker in trackers]


class _Tracker:
    """Follows the equations of one stage.

    Args:
        last: Of each row, the last snapshot that has it.
        final: The last snapshot of all.
        row, equation, own: As in `follow`.
    """

    def __init__(self, last: Sequence[int], final: int, row: Ints, equation: Ints, own: NDArray[np.bool_]) -> None:
        self.last, self._final = last, final
        self._rows: dict[int, list[int]] = {}
        self._own: dict[int, list[int]] = {}
        for at, of, does in zip(row.tolist(), equation.tolist(), own.tolist(), strict=True):
            self._rows.setdefault(of, []).append(at)
            if does:
                self._own.setdefault(of, []).append(at)
        self._pending: dict[int, list[_Tracked]] = {}
        self._lives: dict[int, Life] = {}
        for of, rows in self._rows.items():
            # In the order of the text: of rows that go together, the last one is nearest to the equation's result.
            nearest = max(self._own.get(of, rows), key=lambda at: (last[at], at))
            self._go_on(_Tracked(of, nearest))

    def meet(self, change: Change) -> None:
        """Go on with the equations whose rows a pass took away."""
        for at in range(change.step.first, change.step.snapshot):
            for tracked in self._pending.pop(at, ()):
                self._go_on(self._after(change, tracked))

    def lives(self) -> Mapping[int, Life]:
        """By equation, what the passes say of it; those without a row are not there."""
        for tracked in chain.from_iterable(self._pending.values()):
            life = replace(tracked.life, kind="unknown", why="the recording ends before it does")
            self._lives[tracked.equation] = life
        return self._lives

    def _go_on(self, tracked: _Tracked) -> None:
        if tracked.row < 0 or self.last[tracked.row] == self._final:
            self._lives[tracked.equation] = replace(tracked.life, row=tracked.row)
        else:
            self._pending.setdefault(self.last[tracked.row], []).append(tracked)

    def _after(self, change: Change, tracked: _Tracked) -> _Tracked:
        """What stands for an equation after a pass that took its row away."""
        row = tracked.row
        if row in change.same:
            return replace(tracked, row=change.same[row])
        # What was there before is another part of the equation: a reduction's own addition, in its computation.
        there = [at for at in self._rows[tracked.equation] if change.is_new(at)] if tracked.is_named else []
        if there and identity(change, row) >= 0:
            end = ending(change, row)
        elif there and displaced(change, row, there[-1]):
            # `transpose(dot(a, b))` is computed as another product: what is new there does the work of both.
            end = Ending("lives", row, there[-1], is_shared=True)
        elif there:
            life = self._life_as(change, tracked, there[-1])
            return replace(tracked, row=at_work(change, row, there[-1]), life=life)
        else:
            end = ending(change, row)
        if end.kind == "lives":
            life = _life(change, end) if tracked.life.kind == "lives" else tracked.life
            shared = tracked.is_shared or end.is_shared
            after = at_work(change, row, end.after)
            return replace(tracked, row=after, life=life, is_named=False, is_shared=shared)
        # What stood for two ends for the one whose number it has: the other was gone when they became one.
        life = replace(tracked.life, kind="eliminated") if tracked.is_shared else _life(change, end)
        return replace(tracked, row=-1, life=life)

    def _life_as(self, change: Change, tracked: _Tracked, row: int) -> Life:
        """The life of an equation that goes on as a row of its number: as it was, or rewritten as something else."""
        own = self._own.get(tracked.equation, ())
        if row in own or not own:
            return Life()
        return _life(change, Ending("lives", tracked.row, row)) if tracked.row in own else tracked.life


def _life(change: Change, end: Ending) -> Life:
    lines = change.versions.lines
    return Life(
        "rewritten" if end.kind == "lives" else end.kind,
        position=change.position,
        before=lines[end.before].strip(),
        after=lines[end.after].strip() if end.after >= 0 else "",
        why=end.why or formula(change, end.before, end.after),
        other=end.after,
        changes_nothing=end.changes_nothing,
    )
