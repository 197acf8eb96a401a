"""Matching of the nodes of two graphs without names: for another shape, option, version, or edit.

Nodes match if they and their surroundings look alike. Each label of a node, from the most specific (place in the
source, scope, shape) to the least, is hashed with those of its operands and readers, round after round
(Weisfeiler–Leman). Equally many nodes of one hash match in program order. From these pairs the match spreads along
operands and readers where there is only one candidate. All steps are symmetric: exchanging the graphs inverts the
match.

Graphs are compared without fusions: two compilations fuse differently, but compute the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from explorer.model.declared import cached_property
from explorer.model.graph import Graph, Ints
from explorer.model.stage import Source
from explorer.model.types import parse_type

_MAX_HOPS = 64  # through nested plumbing


@dataclass(frozen=True, eq=False)
class UnfusedDataflow:
    """The operands of nodes that compute, through fusions, parameters and tuples ("plumbing").

    Args:
        real: True for a node that computes, shape `[n]`.
        start, operand: Compressed rows of real nodes' operands, all real; a plumbing node has an empty row.
        kernel: The fusion around a node, or -1, shape `[n]`.
        source: The node that computes a node's value, shape `[n]`.
    """

    real: NDArray[np.bool_]
    start: Ints
    operand: Ints
    kernel: Ints
    source: Ints


def unfused_dataflow(graph: Graph) -> UnfusedDataflow:
    callers = [group.caller if group.kind == "fusion" else -1 for group in graph.groups]
    kernel = np.maximum(np.asarray([*callers, -1], np.int32), -1)[graph.group]
    through, tuples = _passed_on(graph, kernel)
    real = through < 0
    real[list(tuples)] = False
    source = _sources(through)
    counts = np.where(real, np.diff(graph.operand_start), 0)
    is_kept = np.repeat(real, np.diff(graph.operand_start))
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return UnfusedDataflow(real, start, source[graph.operand[is_kept]], kernel, source)


def _passed_on(graph: Graph, kernel: Ints) -> tuple[NDArray[np.int64], set[int]]:
    """Return the node whose value each node passes on, or -1, shape `[n]`; and the fusions' roots that are tuples.

    Only a fusion, its parameters, and the elements of its tuple pass a value on. `kernel` is the fusion around each
    node, or -1.
    """
    code = {op: code for code, op in enumerate(graph.ops)}
    through = np.full(len(graph.names), -1, np.int64)
    inside = np.flatnonzero(kernel >= 0)

    parameters = inside[graph.op[inside] == code.get("parameter", -1)]
    number = graph.parameter_number[parameters]
    is_there = (number >= 0) & (number < np.diff(graph.operand_start)[kernel[parameters]])
    parameters, number = parameters[is_there], number[is_there]
    through[parameters] = graph.operand[graph.operand_start[kernel[parameters]] + number]

    roots = _roots(graph, inside)
    through[kernel[roots]] = roots
    tuples = set(roots[graph.op[roots] == code.get("tuple", -1)].tolist())

    # An element of a kernel's tuple has the value at that index.
    index = graph.attribute_table.integers("index")
    for node in np.flatnonzero(graph.op == code.get("get-tuple-element", -1)).tolist():
        of = _operand(graph, node, 0)
        root = int(through[of]) if of >= 0 else -1
        if root in tuples:
            through[node] = _operand(graph, root, int(index[node]))
    return through, tuples


def _roots(graph: Graph, inside: NDArray[np.intp]) -> NDArray[np.intp]:
    root_of: dict[int, int] = {}
    for node, group in zip(inside.tolist(), graph.group[inside].tolist(), strict=True):
        if group not in root_of or graph.is_root[node]:
            root_of[group] = node
    return np.asarray(list(root_of.values()), np.intp)


def _operand(graph: Graph, node: int, position: int) -> int:
    start, end = graph.operand_start[node : node + 2].tolist()
    return int(graph.operand[start + position]) if 0 <= position < end - start else -1


def _sources(through: NDArray[np.int64]) -> Ints:
    source = np.arange(len(through), dtype=np.int64)
    for _ in range(_MAX_HOPS):
        next_ = np.where(through[source] >= 0, through[source], source)
        if (next_ == source).all():
            break
        source = next_
    return source.astype(np.int32)


Hashes = NDArray[np.uint64]
# 2**64 over the golden ratio, an odd factor that scatters small numbers.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_COMMON = frozenset(["constant", "broadcast", "bitcast", "copy", "reshape", "transpose", "convert", "iota"])
# Distances of neighbors that must match too: the farther, the surer a pair.
_ROUNDS = (3, 1, 0)


@dataclass(frozen=True, eq=False)
class Side:
    """One graph of a comparison, and the sources that identify lines that moved."""

    graph: Graph
    sources: Mapping[str, Source] | None = None

    @cached_property
    def flow(self) -> UnfusedDataflow:
        return unfused_dataflow(self.graph)

    @cached_property
    def readers(self) -> tuple[Ints, Ints]:
        """Return the edges to the readers of each node as compressed rows: (starts, edges).

        An edge is an index in `flow.operand`. The edges of node `i` are `edges[starts[i]:starts[i + 1]]`.
        """
        # Stable, so that the edges of a node stay in program order.
        edge = np.argsort(self.flow.operand, kind="stable")
        start = np.searchsorted(self.flow.operand[edge], np.arange(len(self.graph.names) + 1))
        return start.astype(np.int32), edge.astype(np.int32)

    @cached_property
    def reader_of_edge(self) -> Ints:
        return np.repeat(np.arange(len(self.graph.names), dtype=np.int32), np.diff(self.flow.start))

    @cached_property
    def place_of_edge(self) -> Ints:
        return (np.arange(len(self.flow.operand)) - self.flow.start[self.reader_of_edge]).astype(np.int32)

    def column(self, codes: Ints, strings: Iterable[str]) -> Hashes:
        table = np.asarray([*map(_hash, strings), 0], np.uint64)
        return table[codes]

    @cached_property
    def op(self) -> Hashes:
        return self.column(self.graph.op, self.graph.ops)

    @cached_property
    def weight(self) -> Ints:
        """Return the weight of each node for matching its kernel: 1 for constants, reshapes and the like, else 10."""
        # Common operations are weak evidence that two kernels are the same.
        table = np.asarray([1 if op in _COMMON else 10 for op in self.graph.ops] or [0], np.int32)
        return table[self.graph.op]

    @cached_property
    def shape(self) -> Hashes:
        return self.column(self.graph.type, (_shape(type_) for type_ in self.graph.types))

    @cached_property
    def scope(self) -> Hashes:
        return self.column(self.graph.scope, (_scope(scope) for scope in self.graph.scopes))

    @cached_property
    def place(self) -> Hashes:
        return self.column(self.graph.frame, map(self._place, range(len(self.graph.frames))))

    def _place(self, frame: int) -> str:
        """Return a frame's function, column and line text, which survive insertions above it, as one text.

        The line number stands for an unknown line text.
        """
        at = self.graph.frames[frame]
        source = (self.sources or {}).get(at.file)
        lines = source.text.splitlines() if source is not None else []
        text = lines[at.line - 1].strip() if 0 < at.line <= len(lines) else str(at.line)
        return f"{at.function.rpartition('.')[2]}\0{text}\0{at.column}"


def _shape(type_: str) -> str:
    parsed = parse_type(type_)
    return str(parsed) if parsed.arrays else type_


def _scope(scope: str) -> str:
    """Return a scope without the `jit(f)` before its first slash, as an edit may rename the function."""
    head, slash, rest = scope.partition("/")
    return rest if slash and head.startswith("jit(") else scope


def _hash(text: str) -> int:
    # Unlike `hash`, equal in every process, so that matches are too.
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def _mix(values: Hashes) -> Hashes:
    """Return the values with their 64 bits scrambled (splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


@dataclass(frozen=True, eq=False)
class Alignment:
    """Matched nodes of two graphs.

    Args:
        there: For each node of `a` its node in `b`, or -1, shape `[len(a)]`.
        back: The inverse, shape `[len(b)]`.
    """

    there: Ints
    back: Ints


def match_graphs(a: Side, b: Side) -> Alignment:
    """Match the nodes of two graphs that are the same operation; exact for equal graphs, and deterministic."""
    return _Matching(a, b).run()


class _Matching:
    def __init__(self, a: Side, b: Side) -> None:
        self.a, self.b = a, b
        self.there = np.full(len(a.graph), -1, np.int32)
        self.back = np.full(len(b.graph), -1, np.int32)

    def run(self) -> Alignment:
        # From the strictest label to the weakest.
        labels: list[Callable[[Side], Hashes]] = [
            lambda side: _joined(side.op, side.shape, side.scope, side.place),
            lambda side: _joined(side.op, side.shape, side.scope),
            lambda side: _joined(side.op, side.scope, side.place),
            lambda side: _joined(side.op, side.scope),
            lambda side: _joined(side.op, side.shape),
            lambda side: side.op,
        ]
        for i, label in enumerate(labels):
            for rounds in _ROUNDS:
                # Without neighbors, the weakest labels are too vague to pair nodes by order.
                if rounds or i < 4:
                    self.spread(self.pair(label, rounds))
        for label in labels[:4]:
            self.spread(self.pair(label, 0, is_exact=False))
        self.plumb()
        return Alignment(self.there, self.back)

    def free(self, side: Side) -> Ints:
        there = self.there if side is self.a else self.back
        return np.flatnonzero((there < 0) & side.flow.real).astype(np.int32)

    def pair(self, label: Callable[[Side], Hashes], rounds: int, *, is_exact: bool = True) -> list[tuple[int, int]]:
        """Match unmatched nodes of equal hash in program order; with `is_exact` only if both sides have equally many.

        Return the new pairs (node of `a`, node of `b`). `label` gives each node's first hash.
        """
        free = self.free(self.a), self.free(self.b)
        if not len(free[0]) or not len(free[1]):
            return []
        # Both nodes of a pair get a unique hash, which identifies their neighbors.
        pair_of = np.where(self.there >= 0, np.arange(len(self.there)), -1), self.back
        seeds = [_mix(pair.astype(np.uint64) * _SPREAD + np.uint64(1)) for pair in pair_of]
        sides = zip((self.a, self.b), pair_of, seeds, strict=True)
        hashes = [_refined(side, np.where(pair >= 0, seed, label(side)), rounds) for side, pair, seed in sides]
        pairs: list[tuple[int, int]] = []
        rows_a, rows_b = (_by_hash(hashes[i][free[i]], free[i]) for i in (0, 1))
        for value, rows in rows_a.items():
            others = rows_b.get(value, ())
            if len(rows) == len(others) or not is_exact:
                # One side may have more nodes: the rest stays unmatched.
                pairs += zip(rows, others, strict=False)
        self.take(pairs)
        return pairs

    def take(self, pairs: Sequence[tuple[int, int]]) -> None:
        for x, y in pairs:
            self.there[x], self.back[y] = y, x

    def spread(self, pairs: list[tuple[int, int]]) -> None:
        """Extend the match along operands and readers while both sides have exactly one candidate."""
        while pairs:
            proposed = {pair for one in pairs for pair in (*self.operands_of(*one), *self.readers_of(*one))}
            once_a, once_b = Counter(x for x, _ in proposed), Counter(y for _, y in proposed)
            pairs = [(x, y) for x, y in proposed if once_a[x] == once_b[y] == 1]
            self.take(pairs)

    def operands_of(self, x: int, y: int) -> Iterable[tuple[int, int]]:
        olds = self.a.flow.operand[self.a.flow.start[x] : self.a.flow.start[x + 1]].tolist()
        news = self.b.flow.operand[self.b.flow.start[y] : self.b.flow.start[y + 1]].tolist()
        if len(olds) != len(news):
            return ()
        return ((old, new) for old, new in zip(olds, news, strict=True) if self.is_open(old, new))

    def is_open(self, x: int, y: int) -> bool:
        return self.there[x] < 0 and self.back[y] < 0 and self.a.op[x] == self.b.op[y]

    def readers_of(self, x: int, y: int) -> Iterable[tuple[int, int]]:
        olds, news = self.only_readers(self.a, self.there, x), self.only_readers(self.b, self.back, y)
        return ((old, news[kind]) for kind, old in olds.items() if kind in news)

    def only_readers(self, side: Side, taken: Ints, node: int) -> dict[tuple[int, int], int]:
        """Return the unmatched readers of a node by (hash of the operation, operand place), where one reader has it."""
        start, edges = side.readers
        reader_of: dict[tuple[int, int], int] = {}
        seen: Counter[tuple[int, int]] = Counter()
        for edge in edges[start[node] : start[node + 1]].tolist():
            reader = int(side.reader_of_edge[edge])
            if taken[reader] < 0:
                kind = int(side.op[reader]), int(side.place_of_edge[edge])
                seen[kind] += 1
                reader_of[kind] = reader
        return {kind: reader for kind, reader in reader_of.items() if seen[kind] == 1}

    def plumb(self) -> None:
        """Match kernels by their contents, then their parameters, tuples and elements."""
        a, b = self.a, self.b
        size_a, size_b = _weights(a), _weights(b)
        pairs = np.flatnonzero((self.there >= 0) & (a.flow.kernel >= 0) & a.flow.real)
        homes = zip(a.flow.kernel[pairs].tolist(), b.flow.kernel[self.there[pairs]].tolist(), strict=True)
        shared: Counter[tuple[int, int]] = Counter()
        for home, weight in zip(homes, a.weight[pairs].tolist(), strict=True):
            shared[home] += weight
        # Candidates for one kernel differ in the sum of indices, so no tie depends on the order of the graphs.
        best = sorted(shared, key=lambda k: (-shared[k], abs(size_a[k[0]] - size_b[k[1]]), k[0] + k[1]))
        for x, y in best:
            is_most = y >= 0 and 2 * shared[x, y] >= max(size_a[x], size_b[y])
            if is_most and self.there[x] < 0 and self.back[y] < 0:
                self.take([(x, y)])
        # Parameters match by their source. The rest of matched kernels pairs in order, as shapes may differ.
        sources = _mix(self.back[b.flow.source].astype(np.uint64)), _mix(a.flow.source.astype(np.uint64))
        self.take(self.rest(lambda side: _joined(side.op, sources[side is a])))
        self.take(self.rest(lambda side: _joined(side.op, side.shape)))
        self.take(self.rest(lambda side: side.op))

    def rest(self, label: Callable[[Side], Hashes]) -> list[tuple[int, int]]:
        rows_a = self.free_plumbing(self.a, self.there, label, np.arange(len(self.there), dtype=np.int32))
        rows_b = self.free_plumbing(self.b, self.back, label, self.back)
        return [
            pair
            for kind, nodes in rows_a.items()
            if len(nodes) == len(rows_b.get(kind, ()))
            for pair in zip(nodes, rows_b[kind], strict=True)
        ]

    def free_plumbing(
        self, side: Side, taken: Ints, label: Callable[[Side], Hashes], name_of: Ints
    ) -> dict[tuple[int, int], list[int]]:
        """Return unmatched parameters, tuples and elements in matched kernels, by (kernel in `a`, label)."""
        kernel = side.flow.kernel
        free = np.flatnonzero((taken < 0) & ~side.flow.real & (kernel >= 0))
        home = name_of[kernel[free]]
        rows: dict[tuple[int, int], list[int]] = {}
        for node, at, value in zip(free.tolist(), home.tolist(), label(side)[free].tolist(), strict=True):
            if taken[kernel[node]] >= 0:
                rows.setdefault((at, value), []).append(node)
        return rows


def _weights(side: Side) -> Counter[int]:
    total: Counter[int] = Counter()
    kernel = side.flow.kernel
    inside = np.flatnonzero((kernel >= 0) & side.flow.real)
    for home, weight in zip(kernel[inside].tolist(), side.weight[inside].tolist(), strict=True):
        total[home] += weight
    return total


def _joined(*columns: Hashes) -> Hashes:
    joined = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        joined = _mix(joined * _SPREAD + column)
    return joined


def _refined(side: Side, label: Hashes, rounds: int) -> Hashes:
    """Return labels hashed `rounds` times with those of operands, in order, and of readers, in any order."""
    starts, operand = side.flow.start, side.flow.operand
    reader, place = side.reader_of_edge, side.place_of_edge.astype(np.uint64)
    reader_start, edge = side.readers
    for _ in range(rounds):
        down = _sums(_mix(label[operand] + place * _SPREAD), starts)
        up = _sums(_mix(label[reader] * _SPREAD + place)[edge], reader_start)
        label = _joined(label, down, up)
    return label


def _sums(values: Hashes, start: Ints) -> Hashes:
    total = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
    # The sums wrap around, and the differences wrap back.
    return total[start[1:]] - total[start[:-1]]


def _by_hash(hashes: Hashes, nodes: Ints) -> dict[int, list[int]]:
    rows: dict[int, list[int]] = {}
    for value, node in zip(hashes.tolist(), nodes.tolist(), strict=True):
        rows.setdefault(value, []).append(node)
    return rows
