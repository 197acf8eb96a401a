"""Sequences of operations that ran several times with the same wiring, found with a suffix array.

As in Apophenia (Yadav et al., "Automatic Tracing in Task-Based Runtime Systems", ASPLOS 2025), each two neighboring
suffixes in sorted order propose their common prefix, and the longest proposals are taken first. Two overlapping
occurrences come from a loop: there the repeat is the shortest period, one iteration and not half of all iterations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, cast

import numpy

from explorer.model.results.hot_paths import RepeatedSequence, Step

_Wiring = tuple[tuple[tuple[int, int], ...], ...]
_OUTSIDE, _NO_ARRAY = -1, (-2, 0)


def repeated_sequences(steps: Sequence[Step], *, length: int = 2, count: int = 2) -> tuple[RepeatedSequence, ...]:
    """Return the repeated sequences in one thread's steps: equal operations, parameters, types and wiring.

    Reading a value on the host ends a sequence. Values from before a sequence count as equal or different only: an
    iteration on other values is the same sequence. Each sequence has at least `length` operations and ran at least
    `count` times. Sequences don't overlap and come in the order of their first occurrence.
    """
    groups: dict[tuple[tuple[int, ...], _Wiring], list[int]] = {}
    for repeat in find_repeats(_tokens(steps), length=length, count=count):
        for start in repeat.starts:
            part = steps[start : start + repeat.length]
            keys = tuple(step.operation.key for step in part if step.operation is not None)
            groups.setdefault((keys, wiring_of(part)), []).append(start)
    found_often = [(starts, wiring) for (_, wiring), starts in groups.items() if len(starts) >= count]
    return tuple(_sequence(steps, starts, wiring) for starts, wiring in sorted(found_often))


def _tokens(steps: Iterable[Step]) -> list[tuple[int, ...]]:
    """Return tokens that are equal where steps repeat: the operation, and how far back each input was made."""
    tokens: list[tuple[int, ...]] = []
    made: dict[int, tuple[int, int]] = {}  # since the last value was read
    for at, step in enumerate(steps):
        if step.operation is None:
            tokens.append((-1, at))  # equal to no other token
            made.clear()
            continue
        wires: list[int] = []
        for value in step.inputs:
            place = made.get(value)
            # The first input with the same outside value distinguishes `f(x, x)` from `f(x, y)`.
            wires += [0, step.inputs.index(value) if value else -1] if place is None else [at - place[0], place[1]]
        made.update((value, (at, result)) for result, value in enumerate(step.outputs))
        tokens.append((step.operation.key, *wires))
    return tokens


def wiring_of(steps: Iterable[Step]) -> _Wiring:
    """Return the origin of each operation's inputs, with values renumbered; see `RepeatedSequence.wiring`."""
    made: dict[int, tuple[int, int]] = {0: _NO_ARRAY}
    outside: dict[int, tuple[int, int]] = {}
    wiring: list[tuple[tuple[int, int], ...]] = []
    for at, step in enumerate(steps):
        wiring.append(
            tuple(made.get(value) or outside.setdefault(value, (_OUTSIDE, len(outside))) for value in step.inputs)
        )
        made.update((value, (at, result)) for result, value in enumerate(step.outputs))
    return tuple(wiring)


def _sequence(steps: Sequence[Step], starts: Sequence[int], wiring: _Wiring) -> RepeatedSequence:
    part = steps[starts[0] : starts[0] + len(wiring)]
    operations = tuple(step.operation for step in part if step.operation is not None)
    files = {step.file for step in part}
    lines = [step.top_line or step.line for step in part]
    is_one = (len(files), len({bool(step.top_line) for step in part})) == (1, 1)
    file, first, last = (part[0].file, min(lines), max(lines)) if is_one else ("", 0, 0)
    numbers = tuple(steps[start].number for start in starts)
    texts = [f"{operation} {wires}" for operation, wires in zip(operations, wiring, strict=True)]
    # Unlike `hash`, equal in every process.
    digest = blake2b("\n".join(texts).encode(), digest_size=6).hexdigest()
    return RepeatedSequence(digest, operations, wiring, numbers, file, first, last)


np: Any = numpy  # sorted arrays lose their types in NumPy's stubs


@dataclass(frozen=True, slots=True)
class Repeat:
    """A repeated substring: its length, and the sorted starts of occurrences that don't overlap."""

    length: int
    starts: tuple[int, ...]


def find_repeats(tokens: Sequence[Hashable], *, length: int = 2, count: int = 2) -> tuple[Repeat, ...]:
    """Return repeated substrings that leave no repeat uncovered.

    Takes O(n log² n) for each of a few rounds. A repeat has at least `length` tokens (1 or more) and occurs at least
    `count` times (2 or more). Repeats come in the order of their first occurrence.

    Example:
        >>> find_repeats("abcabcabcxab", length=2)
        (Repeat(length=3, starts=(0, 3, 6)),)
    """
    numbers = dict[Hashable, int]()
    codes = np.array([numbers.setdefault(token, len(numbers)) for token in tokens], np.int64)
    groups: dict[tuple[int, ...], list[int]] = {}
    is_covered = np.zeros(len(codes), bool)
    while True:
        # Shorter repeats may remain between those that a round covered.
        chosen = _round(codes, is_covered, length, count)
        if not chosen:
            break
        for start, size in chosen:
            groups.setdefault(tuple(codes[start : start + size].tolist()), []).append(start)
            is_covered[start : start + size] = True
    repeats = (Repeat(len(content), tuple(sorted(starts))) for content, starts in groups.items())
    return tuple(sorted(repeats, key=lambda repeat: repeat.starts))


def _round(codes: Any, is_covered: Any, length: int, count: int) -> list[tuple[int, int]]:
    free = codes.copy()
    free[is_covered] = -1 - np.arange(int(is_covered.sum()))  # unique codes, so that no repeat crosses them
    order = suffix_array(free)
    common = common_prefixes(free, order)
    chosen: dict[tuple[int, ...], list[int]] = {}
    taken: Any = is_covered.copy()
    for span, period, start, other in _proposals(free, order, common, length):
        size, places = _occurrences(codes, span, period, start, other, length)
        places = [at for at in places if not taken[at : at + size].any()]
        content = tuple(codes[start : start + size].tolist())
        # A new repeat needs two places; a known one takes any further place.
        if len(places) > (content not in chosen):
            chosen.setdefault(content, []).extend(places)
            for at in places:
                taken[at : at + size] = True
    return [(at, len(content)) for content, starts in chosen.items() if len(starts) >= count for at in starts]


def _occurrences(codes: Any, span: int, period: int, start: int, other: int, length: int) -> tuple[int, list[int]]:
    stride = _period(codes[start : start + period])
    stride *= -(-length // stride)  # enough iterations for the minimum length
    size = stride if other >= 0 or span >= 2 * stride else length
    firsts = (start,) if other < 0 else (start, other)
    return size, [at for first in firsts for at in range(first, first + span - size + 1, stride)]


def _proposals(codes: Any, order: Any, common: Any, length: int) -> list[tuple[int, int, int, int]]:
    """Return (span, period, start, second start or -1) of the proposals of neighboring suffixes, longest first."""
    first: Any = np.minimum(order[:-1], order[1:])
    second: Any = np.maximum(order[:-1], order[1:])
    distance = second - first
    is_one = distance <= common  # they overlap: iterations of a loop
    # A proposal that extends to the left is part of a longer one. A loop of n steps would propose n rotations.
    is_whole = (first == 0) | (codes[first - 1] != codes[second - 1])
    is_enough = np.where(is_one, distance + common >= 2 * length, common >= length)
    at: Any = np.flatnonzero(is_whole & is_enough)
    span: Any = np.where(is_one, distance + common, common)
    columns: Any = (span, np.where(is_one, distance, common), first, np.where(is_one, -1, second))
    rows: Any = np.stack(columns, axis=1)[at[np.lexsort((first[at], -span[at]))]]
    return cast("list[tuple[int, int, int, int]]", rows.tolist())


def _period(part: Any) -> int:
    """Return the length of the shortest string that gives `part` when repeated (Knuth, Morris and Pratt)."""
    text = part.tolist()
    border = [0] * len(text)
    at = 0
    for place in range(1, len(text)):
        while at and text[place] != text[at]:
            at = border[at - 1]
        at += text[place] == text[at]
        border[place] = at
    period = len(text) - border[-1]
    return period if len(text) % period == 0 else len(text)


def suffix_array(codes: Any) -> Any:
    """Return the starts of the suffixes in sorted order, by prefix doubling (Manber and Myers 1990)."""
    size = len(codes)
    rank: Any = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    order: Any = np.argsort(rank, kind="stable")
    step = 1
    # Ends once all ranks are distinct, which is early without long repeats.
    while size and step < size and rank[order[-1]] < size - 1:
        second = np.full(size, -1, np.int64)
        second[: size - step] = rank[step:]
        order = np.lexsort((second, rank))
        is_next = (np.diff(rank[order]) != 0) | (np.diff(second[order]) != 0)
        rank[order] = np.concatenate(([0], np.cumsum(is_next)))
        step *= 2
    return order


def common_prefixes(codes: Any, order: Any) -> Any:
    """Return the length of the common prefix of each two neighbors in sorted order (Kasai et al. 2001)."""
    text, size = codes.tolist(), len(codes)
    common = np.zeros(max(size - 1, 0), np.int64)
    place = np.empty(size, np.int64)
    place[order] = np.arange(size)
    places, sorted_starts = place.tolist(), order.tolist()
    shared = 0
    for start in range(size):
        if places[start] == size - 1:
            shared = 0
            continue
        other = sorted_starts[places[start] + 1]
        while start + shared < size and other + shared < size and text[start + shared] == text[other + shared]:
            shared += 1
        common[places[start]] = shared
        # Without its first token, a suffix shares at least all but one of them with a neighbor.
        shared = max(shared - 1, 0)
    return common
