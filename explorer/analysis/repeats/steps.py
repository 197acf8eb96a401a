"""Sequences of operations that ran several times with the same wiring."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from explorer.analysis.repeats.suffixes import find_repeats
from explorer.model.results.hot_paths import Operation, RepeatedSequence, Step

_Wiring = tuple[tuple[tuple[int, int], ...], ...]
_OUTSIDE, _NO_ARRAY = -1, (-2, 0)


def repeated_sequences(steps: Sequence[Step], *, length: int = 2, count: int = 2) -> tuple[RepeatedSequence, ...]:
    """What repeats in the steps of one thread: the same operations, with the same parameters, types and wiring.

    A look at a value ends whatever runs, so no sequence has one inside. Values from before a sequence are told apart
    only by whether two are the same: a turn of a loop is the same as the one before it on other values.

    Args:
        steps: Of one thread, in order.
        length: Of a sequence, at least.
        count: How often it ran, at least.

    Returns:
        In the order of their first occurrence; no two overlap.
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
    """Each step as something that is equal where it repeats: the operation, and how far back each input was made."""
    tokens: list[tuple[int, ...]] = []
    made: dict[int, tuple[int, int]] = {}  # since the last look at a value
    for at, step in enumerate(steps):
        if step.operation is None:
            tokens.append((-1, at))  # like no other
            made.clear()
            continue
        wires: list[int] = []
        for value in step.inputs:
            place = made.get(value)
            wires += [0, step.inputs.index(value) if value else -1] if place is None else [at - place[0], place[1]]
        made.update((value, (at, result)) for result, value in enumerate(step.outputs))
        tokens.append((step.operation.key, *wires))
    return tokens


def wiring_of(steps: Iterable[Step]) -> _Wiring:
    """Where each input of some operations comes from, with values numbered anew; see `RepeatedSequence.wiring`."""
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
    is_one = len(files) == 1 and len({bool(step.top_line) for step in part}) == 1
    file, first, last = (part[0].file, min(lines), max(lines)) if is_one else ("", 0, 0)
    numbers = tuple(steps[start].number for start in starts)
    return RepeatedSequence(digest_of(operations, wiring), operations, wiring, numbers, file, first, last)


def digest_of(operations: Iterable[Operation], wiring: _Wiring) -> str:
    """Twelve hexadecimal digits for operations and their wiring."""
    texts = [f"{operation} {wires}" for operation, wires in zip(operations, wiring, strict=True)]
    return blake2b("\n".join(texts).encode(), digest_size=6).hexdigest()
