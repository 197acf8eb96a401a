"""Which lowered operations an instruction of HLO may be: by its path and place, and by what it does.

Equal operations of one name and place are told apart by what they do: opcode, type, attributes; then by the arguments
they depend on and the results they serve. Their order says nothing, for XLA schedules anew: what is left may be many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.links.features import FeatureCodes
from explorer.analysis.links.lowering import frames_with_callers
from explorer.analysis.links.paths import parse_path
from explorer.model.graph import Graph, Ints

_Place = tuple[str, int, int]
_Name = tuple[object, ...]
_NOWHERE = ("", 0, 0)


class Candidates(NamedTuple):
    """The operations that instructions can be.

    Args:
        graph: StableHLO with its calls inlined.
        row: Of each candidate, its row in `graph`.
        origin: Codes for the equations of each candidate, equal for equal ones: what need not be told apart.
    """

    graph: Graph
    row: Ints
    origin: Ints


class Dependence(NamedTuple):
    """What each node depends on and what depends on it.

    Args:
        arguments, results: Codes for the program's arguments that it depends on and the results that it serves; -1 for
            none.
        depths: By kinds of operations, how many of them follow one another up to it.
    """

    arguments: Ints
    results: Ints
    depths: Sequence[Ints]


class Matches(NamedTuple):
    """Classes of operations, and the class that each instruction is of.

    Args:
        start, operation: Compressed rows: the operations of each class, by their row.
        of: For each instruction its classes, few: several only where XLA joined the names of merged ones.
        by_dependence: Of which instructions the class is so small only by what they depend on or serve, shape `[n]`.
    """

    start: Ints
    operation: Ints
    of: Sequence[tuple[int, ...]]
    by_dependence: NDArray[np.bool_]


def match(candidates: Candidates, optimised: Graph, dependence: tuple[Dependence, Dependence]) -> Matches:
    """Find the operations that each instruction may be.

    Args:
        candidates: What instructions can be.
        optimised: Any graph of HLO.
        dependence: Of both graphs' nodes.
    """
    claims = _claims(optimised)
    features = _features(candidates, optimised, claims.node, dependence)
    refined = _Refinement(features, candidates.origin)
    for here, there in _levels(candidates, claims):
        refined.run(here, there)
    start, member = refined.members()
    of: list[tuple[int, ...]] = [()] * len(optimised.names)
    for node, own in zip(claims.node.tolist(), refined.of.tolist(), strict=True):
        if own >= 0:
            of[node] += (own,)
    by_dependence = np.zeros(len(of), bool)
    by_dependence[claims.node[refined.by_dependence]] = True
    return Matches(start, candidates.row[member], of, by_dependence)


class _Claims(NamedTuple):
    """The names of instructions, one by one where XLA joined those of merged ones with `;`.

    Args:
        node: The instruction of each claim.
        name: Of each claim, an index into `names`.
        names: Paths with places.
    """

    node: Ints
    name: Ints
    names: Sequence[tuple[str, _Place]]


def _claims(graph: Graph) -> _Claims:
    distinct, row = _named(graph, graph.frame)
    code: dict[tuple[str, _Place], int] = {}
    parts = [
        [code.setdefault((part, place), len(code)) for part in path.split(";") if part] for path, place in distinct
    ]
    counts = np.asarray([*map(len, parts), 0], np.int32)[row]
    start = np.cumsum([0, *map(len, parts)])[row]
    flat = np.asarray([name for part in parts for name in part], np.int32)
    node = np.repeat(np.arange(len(row), dtype=np.int32), counts)
    offset = np.arange(len(node)) - np.repeat(np.cumsum(counts) - counts, counts)
    return _Claims(node, flat[np.repeat(start, counts) + offset], list(code))


def _named(graph: Graph, frame: Ints) -> tuple[list[tuple[str, _Place]], Ints]:
    """The paths with places that there are, few for many nodes, and which each node has."""
    frames = len(graph.frames) + 1
    packed = graph.scope.astype(np.int64) * frames + np.where(frame < 0, frames - 1, frame)
    distinct, row = np.unique(packed, return_inverse=True)
    places = [*((at.file, at.line, at.column) for at in graph.frames), _NOWHERE]
    pairs: list[int] = distinct.tolist()
    return [(graph.scopes[pair // frames], places[pair % frames]) for pair in pairs], row.astype(np.int32)


def _levels(candidates: Candidates, claims: _Claims) -> list[tuple[Ints, Ints]]:
    """Keys of candidates and of claims, the surest first; a claim has one only at the first level that has its key."""
    names, row = _named(candidates.graph, frames_with_callers(candidates.graph))
    row = row[candidates.row]
    open_ = np.ones(len(claims.names), bool)
    levels: list[tuple[Ints, Ints]] = []
    is_lowered = any(op.startswith("stablehlo.") for op in candidates.graph.ops)
    for level in _LEVELS if is_lowered else (*_LEVELS, _at_place):
        code: dict[_Name, int] = {}
        own = [-1] * len(names)
        used: list[int] = np.unique(row).tolist()
        for i in used:
            if key := level(*names[i]):
                own[i] = code.setdefault(key, len(code))
        wanted = [level(*name) if is_open else None for name, is_open in zip(claims.names, open_.tolist(), strict=True)]
        keys = np.asarray([code.get(key, -1) if key else -1 for key in wanted], np.int32)
        open_ &= keys < 0
        if (keys >= 0).any():
            levels.append((np.asarray([*own, -1], np.int32)[row], keys[claims.name]))
    return levels


def _whole(path: str, place: _Place) -> _Name:
    return (path, place)


def _path(path: str, place: _Place) -> _Name:
    return (path,)


def _parsed(path: str, place: _Place) -> _Name:
    """In other words, where versions differ in how they write calls."""
    return (parse_path(path), place)


def _primitive(path: str, place: _Place) -> _Name | None:
    parsed = parse_path(path)
    return (parsed.transforms, parsed.primitive, parsed.loops, place) if place != _NOWHERE else None


def _at_place(path: str, place: _Place) -> _Name | None:
    """A jaxpr's own paths don't say what loops they are inside of."""
    parsed = parse_path(path)
    return (parsed.transforms, parsed.primitive, place) if place != _NOWHERE else None


_LEVELS = (_whole, _path, _parsed, _primitive)


class _Features(NamedTuple):
    """What candidates and claims are told apart by, the surest first: codes, the same for what is the same; -1 unknown.

    Args:
        does: By opcode, size and dtype, dimensions, attributes.
        arguments, results, depths: What they depend on and serve.
    """

    does: Sequence[tuple[Ints, Ints]]
    arguments: tuple[Ints, Ints]
    results: tuple[Ints, Ints]
    depths: Sequence[tuple[Ints, Ints]]


def _features(
    candidates: Candidates, optimised: Graph, nodes: Ints, dependence: tuple[Dependence, Dependence]
) -> _Features:
    lowered, rows = candidates.graph, candidates.row
    codes = FeatureCodes()
    (size, shape), (its_size, its_shape) = codes.types(lowered), codes.types(optimised)
    columns = [
        (codes.opcodes(lowered), codes.opcodes(optimised)),
        (size, its_size),
        (shape, its_shape),
        (codes.attributes(lowered), codes.attributes(optimised)),
    ]
    here, there = dependence
    is_original = _is_original(optimised)[nodes]
    return _Features(
        [(own[rows], np.where(is_original, its[nodes], -1)) for own, its in columns],
        (here.arguments[rows], there.arguments[nodes]),
        (here.results[rows], there.results[nodes]),
        [(own[rows], its[nodes]) for own, its in zip(here.depths, there.depths, strict=True)],
    )


def _is_original(graph: Graph) -> NDArray[np.bool_]:
    """Which instructions XLA took over as they were: they are named by their primitive, `add_any.3`. What a pass makes
    in place of another is named by its opcode, `multiply.3`, and may be of any size."""
    primitives = [scope.rpartition("/")[2].replace("-", "_") for scope in graph.scopes]
    stems = [name.partition(".")[0].replace("-", "_") for name in graph.names]
    is_named = np.asarray(
        [stem == primitives[i] for stem, i in zip(stems, graph.scope.tolist(), strict=True)] or [False]
    )
    # Not every version of XLA names them so.
    return is_named if is_named.mean() > _FEW else np.ones(len(is_named), bool)


_FEW = 0.05


class _Refinement:
    """Classes of candidates, made smaller for each claim as long as its features fit any of them.

    A claim that a feature fits none of the candidates goes on without this feature: the compiler changed it.

    Args:
        features: Of candidates and claims.
        origin: Of candidates; a class of which all have the same is small enough.
    """

    def __init__(self, features: _Features, origin: Ints) -> None:
        self.features, self.origin = features, origin
        self.of = np.full(len(features.arguments[1]), -1, np.int32)
        self.by_dependence = np.zeros(len(self.of), bool)
        self._classes = 0
        self._members: list[tuple[Ints, Ints]] = []  # of some classes, their codes and candidates

    def run(self, here: Ints, there: Ints) -> None:
        """Refine classes by all features; `here`, `there`: the keys of all candidates and claims, -1 for none."""
        nodes, claims = (np.flatnonzero(keys >= 0).astype(np.int32) for keys in (here, there))
        self._refine(nodes, here[nodes], claims, there[claims], 0)

    def _refine(self, nodes: Ints, here: Ints, claims: Ints, there: Ints, step: int) -> None:
        here, there, nodes = _compact(here, there, nodes)
        is_open = self._has_several(here, nodes)[there]
        if step == len(self.features.does) + 2 + len(self.features.depths) or not is_open.any():
            self._settle(nodes, here, claims, there)
            return
        if not is_open.all():
            self._settle(nodes, here, claims[~is_open], there[~is_open])
            claims, there = claims[is_open], there[is_open]
            here, there, nodes = _compact(here, there, nodes)
        by_node, by_claim = self._feature(step, nodes, here, claims, there)
        fine, its = _joint((here, by_node), (there, by_claim))
        fits = (by_claim >= 0) & (_tally(fine, its)[its] > 0)
        if step >= len(self.features.does):
            is_smaller = _tally(fine, its)[its] < _tally(here, there)[there]
            self.by_dependence[claims[fits]] |= is_smaller[fits]
        if fits.any():
            self._refine(nodes, fine, claims[fits], its[fits], step + 1)
        if not fits.all():
            self._refine(nodes, here, claims[~fits], there[~fits], step + 1)

    def _has_several(self, here: Ints, nodes: Ints) -> NDArray[np.bool_]:
        """Of each key, whether its candidates are of different equations."""
        origin = self.origin[nodes]
        least = np.full(int(here.max(initial=-1)) + 1, len(self.origin), np.int32)
        np.minimum.at(least, here, origin)
        several = np.zeros(len(least), bool)
        several[here[origin != least[here]]] = True
        return several

    def _feature(self, step: int, nodes: Ints, here: Ints, claims: Ints, there: Ints) -> tuple[Ints, Ints]:
        does, arguments, results, depths = self.features
        step -= len(does)
        if step < 0:
            return does[step][0][nodes], does[step][1][claims]
        if step == 0:
            return arguments[0][nodes], arguments[1][claims]
        if step <= len(depths):
            return _ranks(here, there, depths[step - 1][0][nodes], depths[step - 1][1][claims])
        # An instruction that is there several times serves less each time, and may look like another's: only where
        # there are as many as candidates does what they serve say which is which.
        by_node, by_claim = results[0][nodes], results[1][claims]
        return by_node, np.where(_as_often(here, there, by_node, by_claim), by_claim, -1)

    def _settle(self, nodes: Ints, here: Ints, claims: Ints, there: Ints) -> None:
        used, place = np.unique(there, return_inverse=True)
        self.of[claims] = place + self._classes
        at = np.searchsorted(used, here)
        kept = np.flatnonzero((at < len(used)) & (used[np.minimum(at, len(used) - 1)] == here))
        self._members.append(((at[kept] + self._classes).astype(np.int32), nodes[kept]))
        self._classes += len(used)

    def members(self) -> tuple[Ints, Ints]:
        """The candidates of each class, as compressed rows."""
        nothing = np.zeros(0, np.int32)
        code = np.concatenate([nothing, *(code for code, _ in self._members)])
        node = np.concatenate([nothing, *(node for _, node in self._members)])
        order = np.argsort(code, kind="stable")
        start = np.searchsorted(code[order], np.arange(self._classes + 1))
        return start.astype(np.int32), node[order].astype(np.int32)


def _compact(here: Ints, there: Ints, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """Without the candidates whose key no claim has; and small keys."""
    used, compact = np.unique(there, return_inverse=True)
    at = np.searchsorted(used, here)
    kept = np.flatnonzero((at < len(used)) & (used[np.minimum(at, len(used) - 1)] == here))
    return at[kept].astype(np.int32), compact.astype(np.int32), nodes[kept]


def _tally(codes: Ints, others: Ints) -> Ints:
    """How often each code is there, with a place for each that `others` has."""
    most = int(max(codes.max(initial=-1), others.max(initial=-1)))
    return np.bincount(codes, minlength=most + 1).astype(np.int32)


def _joint(here: tuple[Ints, Ints], there: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """One code for each pair of a key and a feature, the same on both sides."""
    key, feature = (np.concatenate([a, b]).astype(np.int64) for a, b in zip(here, there, strict=True))
    feature += 1
    _, joint = np.unique(key * (int(feature.max(initial=0)) + 1) + feature, return_inverse=True)
    joint = joint.astype(np.int32)
    return joint[: len(here[0])], joint[len(here[0]) :]


def _ranks(here: Ints, there: Ints, by_node: Ints, by_claim: Ints) -> tuple[Ints, Ints]:
    """The rank of each node's depth among those of its key; -1 for claims where the other side has fewer or more."""
    (ranks, counts), (their_ranks, their_counts) = _dense_ranks(here, by_node), _dense_ranks(there, by_claim)
    most = max(len(counts), len(their_counts))
    differs = np.zeros(most, bool)
    differs[: len(counts)] |= counts != np.pad(their_counts, (0, most))[: len(counts)]
    return ranks, np.where(differs[there], -1, their_ranks)


def _dense_ranks(keys: Ints, values: Ints) -> tuple[Ints, Ints]:
    """Which of the distinct values of its key each has, in order; and how many each key has."""
    width = int(values.max(initial=0)) + 1
    distinct, inverse = np.unique(keys.astype(np.int64) * width + values, return_inverse=True)
    of_key = distinct // width
    first = np.searchsorted(of_key, of_key)
    ranks = (np.arange(len(distinct)) - first)[inverse]
    return ranks.astype(np.int32), np.bincount(of_key, minlength=int(keys.max(initial=-1)) + 1).astype(np.int32)


def _as_often(here: Ints, there: Ints, by_node: Ints, by_claim: Ints) -> NDArray[np.bool_]:
    """Which claims are of a key that has as many candidates, with the same features."""
    fine, its = _joint((here, by_node), (there, by_claim))
    counts, their_counts = _tally(fine, its), _tally(its, fine)
    key_of = np.zeros(len(counts), np.int32)
    key_of[fine], key_of[its] = here, there
    differs = np.zeros(int(max(here.max(initial=0), there.max(initial=0))) + 1, bool)
    differs[key_of[counts != their_counts]] = True
    return ~differs[there]
