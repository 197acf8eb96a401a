"""Iterations that are nearly equal: which may stand together, which nodes correspond, and what differs.

A model's layers are seldom all equal: one in six looks at a wider window, the first or the last lacks an operation, the
compiler fused one of them otherwise. They are read as one loop all the same, if it says what differs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.outline.group_tree import split
from explorer.analysis.outline.repeats import Repeats
from explorer.model.graph import Ints
from explorer.model.text import cut_end
from explorer.model.types import parse_type
from explorer.model.units import count_text

# What two iterations must have in common of what their lines made. Of 24 blocks of a decoder, those with a wider window
# have 0.94 of the others', one without its last norm 0.89; the two kinds of block of an encoder and decoder 0.6.
_NEAR = 0.75
_REFERENCES = 8  # classes that are tried as the one that the others are like
_KINDS = 16  # of nearly equal iterations; what is like none of these stands for itself: each kind compares all the rest
_NUMBERED = 4  # iterations that are listed by number
_OPS = 3  # operations that are listed
_LONGEST = 160
# They come and go with where the compiler draws the borders of a kernel.
_PLUMBING = ("fusion", "parameter", "get-tuple-element", "tuple", "bitcast", "constant")


@dataclass(frozen=True)
class NearRepeat:
    """Iterations that stand together.

    Args:
        classes: Their numbers, by what is equal; the first class is what the others are like.
        difference: What differs, in words; empty where all are equal.
        differ: How many nodes of an iteration have no counterpart in another, at most.
    """

    classes: Sequence[Sequence[int]]
    difference: str = ""
    differ: int = 0

    @property
    def numbers(self) -> list[int]:
        return sorted(number for alike in self.classes for number in alike)


def merge_near(
    repeats: Repeats, nodes: Ints, iteration: Ints, classes: Sequence[Sequence[int]], twin: Ints
) -> list[NearRepeat]:
    """Put classes of equal iterations together that are nearly equal; the largest first.

    Args:
        repeats: Of the graph.
        nodes, iteration: Of each node of the loop, its index and its iteration, from 0.
        classes: The iterations that are equal, the largest class first.
        twin: Where the counterparts of the first nodes of each class are written.
    """
    of_iteration = dict(split(iteration, nodes))
    members = {alike[0]: of_iteration[alike[0]] for alike in classes}
    made: dict[int, Counter[int]] = {first: Counter(repeats.made_by[own].tolist()) for first, own in members.items()}
    rest: list[Sequence[int]] = list(classes)
    merged: list[NearRepeat] = []
    while rest and len(merged) < _KINDS:
        reference = max(rest[:_REFERENCES], key=lambda alike: _weight(made, alike, rest))
        is_near = [_is_near(made[reference[0]], made[alike[0]]) for alike in rest]
        near = [alike for alike, is_one in zip(rest, is_near, strict=True) if is_one]
        rest = [alike for alike, is_one in zip(rest, is_near, strict=True) if not is_one]
        near.sort(key=lambda alike: alike is not reference)
        merged.append(_together(repeats, members, near, twin))
    return merged + [NearRepeat([alike]) for alike in rest]


def _weight(made: Mapping[int, Counter[int]], alike: Sequence[int], others: Sequence[Sequence[int]]) -> int:
    """How many iterations are near those of a class, its own counted twice."""
    own = made[alike[0]]
    return len(alike) + sum(len(other) for other in others if _is_near(own, made[other[0]]))


def _is_near(a: Counter[int], b: Counter[int]) -> bool:
    return a is b or (a & b).total() >= _NEAR * max(a.total(), b.total())


def _together(
    repeats: Repeats, members: Mapping[int, Ints], classes: Sequence[Sequence[int]], twin: Ints
) -> NearRepeat:
    reference, *others = classes
    count = sum(map(len, classes))
    texts: list[str] = []
    most = 0
    for alike in others:
        mine, theirs = counterparts(repeats, members[alike[0]], members[reference[0]])
        repeats.pair(mine, theirs, twin)
        differ = len(members[alike[0]]) + len(members[reference[0]]) - 2 * len(mine)
        most = max(most, differ)
        what = _difference(repeats, members[reference[0]], members[alike[0]])
        texts.append(f"{_which(alike, count)} {what}")
    return NearRepeat(classes, cut_end("; ".join(texts), _LONGEST), most)


def counterparts(repeats: Repeats, a: Ints, b: Ints) -> tuple[Ints, Ints]:
    """The nodes of `a` that have a counterpart in `b`, and these: by type and place, or else by place alone."""
    mine, theirs = list[int](), list[int]()
    left_a, left_b = a.tolist(), b.tolist()
    for key in (repeats.token, repeats.made_by):
        waiting: dict[int, list[int]] = {}
        for node in reversed(left_b):
            waiting.setdefault(int(key[node]), []).append(node)
        unmatched: list[int] = []
        for node in left_a:
            candidates = waiting.get(int(key[node]))
            if candidates:
                mine.append(node)
                theirs.append(candidates.pop())
            else:
                unmatched.append(node)
        left_a, left_b = unmatched, sorted(node for nodes in waiting.values() for node in nodes)
    return np.asarray(mine, np.int32), np.asarray(theirs, np.int32)


def _which(alike: Sequence[int], count: int) -> str:
    """`the last`, `6, 12, 18 and 24`: iterations of so many, as a person counts them."""
    names = {0: "the first", count - 1: "the last"}
    if len(alike) == 1:
        return names.get(alike[0], str(alike[0] + 1))
    if len(alike) > _NUMBERED:
        return f"{len(alike):,} others"
    numbers = [str(number + 1) for number in alike]
    return f"{', '.join(numbers[:-1])} and {numbers[-1]}"


def _difference(repeats: Repeats, usual: Ints, other: Ints) -> str:
    """What an iteration has more or less than the usual one: operations, or else the shapes of some."""
    graph, insides = repeats.graph, (repeats.with_insides(usual), repeats.with_insides(other))
    ops = [Counter(graph.ops[int(code)] for code in graph.op[nodes]) for nodes in insides]
    less, more = (_without(a - b, _PLUMBING) for a, b in (ops, ops[::-1]))
    parts = [f"{word} {_listed(counts)}" for word, counts in (("with", more), ("without", less)) if counts]
    if parts:
        return " and ".join(parts)
    types = [Counter(graph.types[int(code)] for code in graph.type[nodes]) for nodes in insides]
    here, there = (_first_type(a - b) for a, b in (types, types[::-1]))
    return f"with {there} for {here}" if here and there else "with the same operations, fused otherwise"


def _without(counts: Counter[str], left_out: Collection[str]) -> Counter[str]:
    return Counter({op: n for op, n in counts.items() if op not in left_out})


def _listed(counts: Counter[str]) -> str:
    ranked = [op.removeprefix("stablehlo.") + (f" ×{n}" if n > 1 else "") for op, n in counts.most_common(_OPS)]
    left = sum(counts.values()) - sum(n for _, n in counts.most_common(_OPS))
    return ", ".join(ranked) + (f" and {count_text(left, 'more')}".removesuffix("s") if left else "")


def _first_type(types: Counter[str]) -> str:
    arrays = parse_type(next(iter(types), "")).arrays
    return str(arrays[0]) if arrays else ""
