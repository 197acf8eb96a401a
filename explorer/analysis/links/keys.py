"""The keys by which nodes of different stages correspond, and what tells nodes of one key apart."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.model.graph import Graph, Ints
from explorer.model.types import elements

_Name = tuple[object, ...]
Dependencies = tuple[tuple[Ints, Ints], tuple[Ints, Ints]]
"""Codes of both stages' nodes: for what each depends on, then for what depends on it; -1 for nothing known."""
_ROUNDS = 8  # how deep calls are nested


def phase(scope: str) -> str:
    """`backward`, `forward` or empty: JAX marks what differentiation made as `transpose(jvp(…))` and `jvp(…)`."""
    if "transpose(" in scope:
        return "backward"
    return "forward" if "jvp(" in scope else ""


class FirstKeys(NamedTuple):
    """The keys of the first stage's nodes, and what another stage's are looked up in.

    Args:
        graph: The first stage's.
        keys: Of each node, -1 for none, shape `[n]`.
        code: The key of each name.
        sole: The key of the only equation at a place, by the place.
    """

    graph: Graph
    keys: Ints
    code: dict[_Name, int]
    sole: dict[_Name, int]


def first_keys(graph: Graph) -> FirstKeys:
    """A key for each equation of the first stage, the same for those that have the same name."""
    code: dict[_Name, int] = {}
    pairs, row = _distinct(graph)
    codes = [
        code.setdefault(names[0], len(code)) if (names := _names(graph, frame, scope, loops)) else -1
        for frame, scope, loops in pairs
    ]
    keys = np.where(graph.is_equation, np.asarray([*codes, -1], np.int32)[row], -1).astype(np.int32)
    at_place: dict[_Name, set[int]] = {}
    used: list[int] = np.unique(row[keys >= 0]).tolist()
    for i in used:
        frame, scope, _ = pairs[i]
        if frame >= 0:
            at_place.setdefault(_place(graph, frame, scope), set()).add(codes[i])
    sole = {at: codes.pop() for at, codes in at_place.items() if len(codes) == 1}
    for i, name in _arguments(graph):
        keys[i] = code.setdefault(name, len(code)) if name[1] else -1
    return FirstKeys(graph, keys, code, sole)


def pair_keys(
    first: FirstKeys, other: Graph, dependencies: Callable[[], Dependencies]
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """The keys of both graphs' nodes, refined until equal for as few as can be; and which keys were refined.

    Args:
        first: The keys of the first stage.
        other: The graph of a later stage.
        dependencies: Returns codes by which nodes of one key are told apart; called only if there are such.
    """
    pairs, row = _distinct(other)
    codes = [_matching_key(first, other, *pair) for pair in pairs]
    keys = np.asarray([*codes, -1], np.int32)[row]
    for i, name in _arguments(other):
        keys[i] = first.code.get(name, -1) if name[1] else -1
    return _refine(first.graph, first.keys, other, keys, dependencies)


def _matching_key(first: FirstKeys, graph: Graph, frame: int, scope: str, loops: int) -> int:
    for name in _names(graph, frame, scope, loops):
        if name in first.code:
            return first.code[name]
    return first.sole.get(_place(graph, frame, scope), -1) if frame >= 0 and scope else -1


def _arguments(graph: Graph) -> Iterator[tuple[int, tuple[str, str]]]:
    """The program's arguments: each node with its name, which is its path."""
    entries = np.asarray([group.kind == "entry" for group in graph.groups] + [False])[graph.group]
    is_argument = np.asarray([op == "parameter" for op in graph.ops] + [False])[graph.op] & entries
    for i in np.flatnonzero(is_argument & (graph.frame < 0)).tolist():
        yield i, ("argument", graph.scopes[int(graph.scope[i])])


def _distinct(graph: Graph) -> tuple[list[tuple[int, str, int]], Ints]:
    """The frames with scopes and depths of loops that there are, few for many nodes, and which each node has.

    A function that was traced before keeps no frames inside: where it is called is its place.
    """
    frame, loops = graph.frame.copy(), np.zeros(len(graph.op), np.int64)
    callers = np.asarray([group.caller for group in graph.groups] + [-1], np.int32)
    is_loop = np.asarray([op in _LOOPS for op in graph.ops] or [False])
    caller = callers[graph.group]
    for _ in range(_ROUNDS):
        open_ = np.flatnonzero(caller >= 0)
        if not len(open_):
            break
        above = caller[open_]
        loops[open_] += is_loop[graph.op[above]]
        frame[open_] = np.where(frame[open_] < 0, frame[above], frame[open_])
        caller[open_] = callers[graph.group[above]]
    scopes, deepest = max(len(graph.scopes), 1), _ROUNDS + 1
    packed = (frame.astype(np.int64) * scopes + graph.scope) * deepest + loops
    distinct, row = np.unique(packed, return_inverse=True)
    pairs = [
        (int(p // deepest // scopes), graph.scopes[int(p // deepest % scopes)], int(p % deepest)) for p in distinct
    ]
    return pairs, row.astype(np.int32)


_LOOPS = frozenset(["scan", "while", "stablehlo.while"])


def _place(graph: Graph, frame: int, scope: str) -> _Name:
    place = graph.frames[frame]
    return (place.file, place.line, place.column, phase(scope))


def _names(graph: Graph, frame: int, scope: str, loops: int) -> list[_Name]:
    """By what a node may be known to another stage, the surest first. `loops`: how deep inside loops it stands."""
    keys: list[_Name] = []
    # XLA joins the paths of merged instructions with `;`: the last is the one that the merged one ends in.
    for path in reversed(scope.split(";")):
        *outer, primitive = path.split("/")
        primitive = "while" if primitive == "scan" else primitive
        if not primitive or (primitive.startswith("jit(") and not outer):
            continue
        primitive = primitive.partition("(")[0] if primitive.startswith("jit(") else primitive
        at = _place(graph, frame, path) if frame >= 0 else _words(outer)
        # XLA may have unrolled a loop; JAX still names it.
        depth = max(loops, outer.count("while"))
        keys.append((*at, primitive, depth))
        if depth and "while" in outer:  # the counting of a loop
            keys.append((*at, "while", depth - 1))
    return keys


def _words(outer: Sequence[str]) -> _Name:
    """A path without the calls in it, which not every stage writes."""
    return tuple(word for part in outer if (word := _CALL.sub("", part)))


_CALL = re.compile(r"(?:p?jit|checkpoint|remat)\([^()]*\)|^(?:while|body|cond|closed_call|branch_\d+_fun)$")


def _refine(
    first: Graph, here: Ints, other: Graph, there: Ints, dependencies: Callable[[], Dependencies]
) -> tuple[Ints, Ints, NDArray[np.bool_]]:
    """Keys that fewer nodes share, and which keys are such."""
    is_shared = (_tally(here, there) > 1) & (_tally(there, here) > 1)  # one on either side: all correspond to it
    base = len(is_shared)
    open_here, open_there = (np.flatnonzero((keys >= 0) & is_shared[keys]) for keys in (here, there))
    if not len(open_here):
        return here, _with_caller(other, there), np.zeros(base + 1, bool)
    (reach_here, reach_there), (serve_here, serve_there) = dependencies()
    fine_here, fine_there = _refine_ambiguous(
        (here[open_here], _sizes(first)[open_here], reach_here[open_here], serve_here[open_here]),
        (there[open_there], _sizes(other)[open_there], reach_there[open_there], serve_there[open_there]),
        (_order(first)[open_here], _order(other)[open_there]),
        other.op[open_there],
    )
    here, there = here.copy(), there.copy()
    here[open_here] = fine_here + base
    there[open_there] = np.where(fine_there < 0, -1, fine_there + base)
    are_refined = np.arange(int(max(here.max(), there.max())) + 2) >= base
    return here, _with_caller(other, there), are_refined


_Side = tuple[Ints, Ints, Ints, Ints]


def _refine_ambiguous(first: _Side, other: _Side, order: tuple[Ints, Ints], op: Ints) -> tuple[Ints, Ints]:
    """Finer keys, by size, by what nodes depend on and serve, by order.

    Args:
        first, other: Of each node its key, its size, and codes for what it depends on and serves.
        order: When each node of the first and of the other runs.
        op: The operation of the other's nodes.
    """
    here, there = _split(first[0], other[0], first[1], other[1])
    here, there = _split(here, there, first[2], other[2])
    # An instruction that is there several times serves less each time, and may look like another's: only where there
    # are as many as equations does what they serve, or their order, say which is which.
    depends = other[2] >= 0  # XLA makes a constant once for all
    as_often = depends & _as_often(here, there, first[3], other[3], op)
    here, there = _split(here, there, first[3], np.where(as_often, other[3], -1))
    as_often = depends & _as_often(here, there, np.zeros_like(here), np.zeros_like(there), op)
    rank = np.where(as_often, _rank(_per_op(there, op), order[1]), -1).astype(np.int32)
    return _split(here, there, _rank(here, order[0]), rank)


def _split(here: Ints, there: Ints, by_here: Ints, by_there: Ints) -> tuple[Ints, Ints]:
    """Tell the nodes of a key apart by a number; those of which the other side has none are left out, not guessed.

    A key stays whole where the number says nothing: it is the same for all, or fits nowhere; -1 fits nothing.
    """
    fine_here, fine_there = _joint((here, by_here), (there, by_there))
    fine_there = np.where(by_there < 0, -1, fine_there)
    fits = (fine_there >= 0) & (_tally(fine_here, fine_there)[fine_there] > 0)
    key_of = np.full(int(fine_here.max(initial=-1)) + 1, -1, np.int32)
    key_of[fine_here] = here
    either = np.concatenate([there, key_of])  # a key may be on one side alone
    many = (_tally(key_of[key_of >= 0], either) > 1) & (_tally(there[fits], either) > 0)
    base = int(max(here.max(initial=-1), there.max(initial=-1))) + 1
    new_here = np.where(many[here], fine_here + base, here)
    new_there = np.where(many[there], np.where(fits, fine_there + base, -1), there)
    return new_here.astype(np.int32), new_there.astype(np.int32)


def _tally(codes: Ints, others: Ints) -> Ints:
    """How often each code is there, with a place for each that `others` has, and an empty one at the end, for -1."""
    most = int(max(codes.max(initial=-1), others.max(initial=-1)))
    return np.append(np.bincount(codes[codes >= 0], minlength=most + 1), 0).astype(np.int32)


def _joint(here: tuple[Ints, Ints], there: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """One code for each pair of a code and a number, the same on both sides; -1 where the code is."""
    code, number = (np.concatenate([a, b]).astype(np.int64) for a, b in zip(here, there, strict=True))
    pair = np.where(code < 0, -1, code * (int(number.max(initial=0)) + 1) + number)
    _, joint = np.unique(np.append(pair, -1), return_inverse=True)
    joint = joint.astype(np.int32) - 1
    return joint[: len(here[0])], joint[len(here[0]) : -1]


def _sizes(graph: Graph) -> Ints:
    sizes = np.asarray([min(elements(type_), 2**31 - 1) for type_ in graph.types] or [0], np.int64)
    return sizes[graph.type].astype(np.int32)


def _as_often(here: Ints, there: Ints, by_here: Ints, by_there: Ints, op: Ints) -> NDArray[np.bool_]:
    """Which nodes are of an operation that is there as often as the key on the other side, with the same numbers."""
    group = _per_op(there, op)
    counterpart, own = _joint((here, _rank(here, by_here)), (there, _rank(group, by_there)))
    number = np.full(int(max(counterpart.max(initial=-1), own.max(initial=-1))) + 2, -2, np.int32)
    number[counterpart] = by_here
    fits = (there >= 0) & (_tally(group, group)[group] == _tally(here, there)[there]) & (number[own] == by_there)
    return fits & ~np.isin(group, group[~fits])


def _per_op(there: Ints, op: Ints) -> Ints:
    """A code for each key and operation."""
    return _joint((there, op), (there[:0], op[:0]))[0]


def _rank(codes: Ints, by: Ints) -> Ints:
    """The how-manieth each node is of its code, by a number."""
    order = np.lexsort((by, codes))
    sorted_ = codes[order]
    rank = np.empty(len(codes), np.int32)
    rank[order] = np.arange(len(codes)) - np.searchsorted(sorted_, sorted_)
    return rank


def _order(graph: Graph) -> Ints:
    """When each node runs, compared to the others."""
    order = np.empty(len(graph.op), np.int32)
    order[np.lexsort((graph.line, _when(graph)))] = np.arange(len(graph.op))
    return order


def _when(graph: Graph) -> Ints:
    """The line of what runs each node: fusions stand in the text before what calls them, in no order."""
    inside = np.asarray([group.kind in ("fusion", "apply", "call") for group in graph.groups] + [False])
    caller = np.asarray([group.caller for group in graph.groups] + [-1], np.int32)
    at = np.arange(len(graph.op), dtype=np.int32)
    for _ in range(_ROUNDS):
        up = np.where(inside[graph.group[at]], caller[graph.group[at]], -1)
        if not (up >= 0).any():
            break
        at = np.where(up >= 0, up, at)
    return graph.line[at]


def _with_caller(graph: Graph, keys: Ints) -> Ints:
    """What a reduction applies to each pair of elements is the reduction."""
    applies = [group.caller if group.kind == "apply" else -1 for group in graph.groups] + [-1]
    caller = np.asarray(applies, np.int32)[graph.group]
    return np.where((caller >= 0) & (keys >= 0), keys[caller], keys).astype(np.int32)
