"""Which line of one record is which of another: lines move, are renamed, come and go.

Lines are aligned as they are traced: first those with the same text, between them those with the same equations,
between those what is left, by how much of its text is alike. So a line that was only moved, renamed or given a comment
is itself, and one that was edited is the line between the same neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest

from explorer.model.golden import LineRecord

Pair = tuple[LineRecord | None, LineRecord | None]
_KEYS: Sequence[Callable[[LineRecord], Hashable]] = (
    lambda row: (row.code, tuple(row.equations.items())),
    lambda row: row.code,
    lambda row: tuple(row.equations.items()),
)
_MOST_COMPARED = 2_500  # pairs of lines, each of which takes some 20 µs


def matched_lines(before: Sequence[LineRecord], after: Sequence[LineRecord]) -> list[Pair]:
    """Each line of both, beside the same one of the other, None where that has none; in the order of `after`."""
    return list(_aligned(before, after, 0))


def _aligned(before: Sequence[LineRecord], after: Sequence[LineRecord], level: int) -> Iterator[Pair]:
    if level == len(_KEYS):
        yield from _by_likeness(before, after)
        return
    key = _KEYS[level]
    matcher = SequenceMatcher(None, [key(row) for row in before], [key(row) for row in after], autojunk=False)
    from_before = from_after = 0
    for start, other, length in matcher.get_matching_blocks():  # the last has no length, and stands at both ends
        yield from _aligned(before[from_before:start], after[from_after:other], level + 1)
        yield from zip(before[start : start + length], after[other : other + length], strict=True)
        from_before, from_after = start + length, other + length


def _by_likeness(before: Sequence[LineRecord], after: Sequence[LineRecord]) -> Iterator[Pair]:
    """The lines between two neighbours: the more of them have a partner, and the more these are alike, the better."""
    if len(before) == len(after) or len(before) * len(after) > _MOST_COMPARED:
        yield from zip_longest(before, after)
        return
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    alike = [[1 + _likeness(old, new) for new in after] for old in before]
    for i in reversed(range(len(before))):
        for j in reversed(range(len(after))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + alike[i][j])
    i = j = 0
    while i < len(before) and j < len(after):
        if best[i][j] == best[i + 1][j + 1] + alike[i][j]:
            yield before[i], after[j]
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            yield before[i], None
            i += 1
        else:
            yield None, after[j]
            j += 1
    yield from zip_longest(before[i:], after[j:])


def _likeness(old: LineRecord, new: LineRecord) -> float:
    """0 to 1: how much of the text is the same."""
    return SequenceMatcher(None, old.code, new.code, autojunk=False).ratio()
