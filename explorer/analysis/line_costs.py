"""Table of source lines: equations, kernels, shares of FLOPs and bytes, and measured seconds.

A kernel's cost is split over the lines of the instructions inside it:

- FLOPs exactly, by instruction;
- bytes by who moves them: reads to the reading instructions, writes to the instruction that makes the result;
- seconds by both: the time of arithmetic, weighted by operation (`WEIGHTS`), and the time of moving bytes. So a kernel
  with few FLOPs per byte is split like its bytes, and one with many like its FLOPs.

Each column sums to the program; a row of its own has what no line is known for. `analysis/attribution.py` decides which
line an instruction belongs to.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.graphs import graph_of, has_entry, is_op
from explorer.analysis.loops import count_limits, is_one_iteration
from explorer.model.attribution import Attribution, CountLimits, LineRow, LineTable
from explorer.model.capture import Capture
from explorer.model.declared import cached_property
from explorer.model.graph import Floats, Frame, Graph, Ints
from explorer.model.stage import Source

# Additions in the time of an operation, by tests/benchmarks/op_weights.py: float32, x86-64 with AVX-512, rounded. Those
# that the compiler doesn't vectorize stand out. On a GPU the ratios are smaller, in much the same order.
WEIGHTS: Mapping[str, float] = {
    "divide": 13,
    "sqrt": 17,
    "rsqrt": 20,
    "erf": 27,
    "exponential": 30,
    "tanh": 31,
    "logistic": 33,
    "log": 35,
    "exponential-minus-one": 49,
    "log-plus-one": 51,
    "cosh": 56,
    "asinh": 89,
    "atanh": 93,
    "sinh": 97,
    "acosh": 100,
    "sine": 220,
    "cosine": 220,
    "power": 300,
    "tan": 430,
    "asin": 570,
    "remainder": 730,
    "cbrt": 770,
    "atan2": 860,
    "acos": 870,
}

# Operations without arithmetic that search for an element: additions in that time.
SEARCHES: Mapping[str, float] = {"concatenate": 18, "gather": 45, "pad": 18}


LineShares = Sequence[tuple[str, int, float]]  # (file, line, share from 0 to 1), largest first

_ADDITIONS_PER_BYTE = 4.0  # in the time of moving a byte on one current core: between cache and memory
_MAX_DEPTH = 16  # of nested loops, branches and fusions


@dataclass(frozen=True, eq=False)
class LineSplit:
    """The nodes of a capture's `hlo` stage by source line.

    Args:
        graph: Of the `hlo` stage.
        jaxpr: Graph of the jaxpr, or None.
        read_source: Of the capture.
        places: (file, line) of each line with nodes.
        line: Index in `places` of each node's line, or -1, shape `[n]`.
        equations, kernels: Number on each line, shape `[len(places) + 1]`; the last element is for no line.
    """

    graph: Graph
    jaxpr: Graph | None
    read_source: Callable[[str], Source | None]
    places: Sequence[tuple[str, int]]
    line: Ints
    equations: NDArray[np.int64]
    kernels: NDArray[np.int64]

    def stack(self, node: int) -> tuple[Frame, ...]:
        graph, frame = self.frame_of(node)
        return graph.stack(frame)

    def frame_of(self, node: int) -> tuple[Graph, int]:
        """Return the innermost frame that places a node, as a graph and an index into its `frames`, -1 for none.

        It is the node's own frame, that of the node it serves, or that of its equation.
        """
        at, row = self.origin(node)
        if row >= 0 and self.jaxpr is not None:
            return self.jaxpr, int(self.jaxpr.frame[row])
        return self.graph, int(self.graph.frame[at]) if at >= 0 else -1

    def origin(self, node: int) -> tuple[int, int]:
        """Return the node whose source line a node has, or -1, and the jaxpr's row if an equation gives it, or -1."""
        attribution = self.graph.attribution
        return int(attribution.by[node]), int(attribution.equation[node])

    def times(self) -> InstructionTimes | None:
        return _times(self.graph, _moved_bytes(self.graph))

    @cached_property
    def costs(self) -> Mapping[str, CostRows]:
        return _cost_rows(self)

    def table(self, loops: Ints | None = None, limits: CountLimits | None = None) -> LineTable:
        """Return the rows of the lines; `loops` and `limits` are those of the graph, computed if not given.

        Without an entry computation there are no rows, and the sums are NaN.
        """
        if not has_entry(self.graph):
            return LineTable([], math.nan, math.nan, None, (limits or count_limits(self.graph)).sentences)
        places = [*self.places, ("", 0)]  # the last is for what no line is known for
        sums = {name: _sums(of.line, of.amount, len(places)) for name, of in self.costs.items()}
        flops, bytes_, seconds = sums["flops"], sums["bytes"], sums.get("seconds")
        totals = float(flops.sum()), float(bytes_.sum())
        texts = self._texts()
        # The modulo turns line -1, unknown, into the last place.
        open_ended = set((self.line[is_one_iteration(self.graph, loops)] % len(places)).tolist())
        rows: list[LineRow] = []
        # The place without a file comes last.
        for i in sorted(range(len(places)), key=lambda i: (not places[i][0], *places[i])):
            file, line = places[i]
            time = None if seconds is None else float(seconds[i])
            if not any((self.equations[i], self.kernels[i], flops[i], bytes_[i], time)):
                continue
            rows.append(
                LineRow(
                    file,
                    line,
                    text="".join(texts.get(file, [])[max(line - 1, 0) : line]).strip(),
                    equations=int(self.equations[i]),
                    kernels=int(self.kernels[i]),
                    flops=float(flops[i]),
                    flops_share=float(flops[i]) / (totals[0] or 1.0),
                    bytes=float(bytes_[i]),
                    bytes_share=float(bytes_[i]) / (totals[1] or 1.0),
                    seconds=time,
                    one_iteration=i in open_ended and bool(max(flops[i], bytes_[i]) > 0),
                )
            )
        whole = None if seconds is None else float(seconds.sum())
        return LineTable(rows, *totals, whole, (limits or count_limits(self.graph)).sentences)

    def _texts(self) -> Mapping[str, Sequence[str]]:
        files = {file for file, _ in self.places if file}
        return {file: source.text.splitlines() for file in files if (source := self.read_source(file)) is not None}

    def parts(self) -> Iterator[tuple[int, str, int, float]]:
        """Yield each line's part of each kernel's measured time; see `line_parts`."""
        times = self.times()
        if times is None:
            return
        places = [*self.places, ("", 0)]
        line = self.line[times.instruction] % len(places)
        # One number for each pair of kernel and line, so that one sum adds up all pairs.
        pairs, at = np.unique(times.kernel.astype(np.int64) * len(places) + line, return_inverse=True)
        seconds = _sums(at.astype(np.int32), times.seconds, len(pairs))
        for pair, part in zip(pairs.tolist(), seconds.tolist(), strict=True):
            if part > 0:
                yield pair // len(places), *places[pair % len(places)], part


def split_by_line(capture: Capture) -> LineSplit:
    graph = capture.hlo.graph
    jaxpr = graph_of(capture, "jaxpr")
    number: dict[tuple[str, int], int] = {}
    of_hlo = _numbers(graph.attribution, number)
    of_jaxpr = _numbers(jaxpr.attribution, number) if jaxpr is not None else of_hlo
    runs = graph.kernel == np.arange(len(graph.names), dtype=np.int32)
    return LineSplit(
        graph,
        jaxpr,
        capture.read_source,
        [*number],
        of_hlo[graph.attribution.line],
        np.zeros(len(number) + 1, np.int64)
        if jaxpr is None
        else _count(jaxpr.attribution, jaxpr.is_equation, of_jaxpr, len(number)),
        _count(graph.attribution, runs, of_hlo, len(number)),
    )


def _numbers(attribution: Attribution, number: dict[tuple[str, int], int]) -> Ints:
    """Return the number of each place and a final -1; new places join `number` with the next numbers."""
    codes = [number.setdefault((place.file, place.line), len(number)) for place in attribution.places]
    return np.asarray([*codes, -1], np.int32)


def _count(attribution: Attribution, counts: NDArray[np.bool_], number: Ints, size: int) -> NDArray[np.int64]:
    of_place = np.repeat(number[:-1], np.diff(attribution.start))
    of_lines = np.bincount(of_place[counts[attribution.node]], minlength=size)
    has_line = np.zeros(len(counts), bool)
    has_line[attribution.node] = True
    return np.append(of_lines, (counts & ~has_line).sum())


def line_parts(capture: Capture) -> Iterator[tuple[int, str, int, float]]:
    """Yield (node, file, line, seconds): each line's part of each kernel's measured time.

    File and line are empty and 0 for time without a known line. Yields nothing without measured time.
    """
    return split_by_line(capture).parts()


def line_shares(capture: Capture) -> dict[int, LineShares]:
    """Return by kernel's node the (file, line, share) of its lines, by share of its measured time, largest first."""
    seconds: dict[int, dict[tuple[str, int], float]] = {}
    for node, file, line, part in line_parts(capture):
        seconds.setdefault(node, {})[file, line] = part
    return {node: shares_by_line(of_node) for node, of_node in seconds.items()}


def shares_by_line(seconds: Mapping[tuple[str, int], float]) -> LineShares:
    """Return (file, line, share) of each line, for its share of a kernel's seconds; largest first, then by place."""
    total = math.fsum(seconds.values())
    rows = [(file, line, part / total) for (file, line), part in seconds.items()]
    return sorted(rows, key=lambda row: (-row[2], row[0], row[1]))


class CostRows(NamedTuple):
    """Rows of one measure: kernel, line and amount. The last line number is for unknown lines."""

    kernel: Ints
    line: Ints
    amount: Floats


def _cost_rows(split: LineSplit) -> dict[str, CostRows]:
    graph, lines, size = split.graph, len(split.places) + 1, len(split.graph.names)
    line, own = split.line % lines, np.arange(size, dtype=np.int32)
    moved = _moved_bytes(graph)
    whole = np.nan_to_num(graph.measures.get("bytes", np.zeros(size)))
    # A kernel's own line has bytes that no instruction inside is known to move.
    bytes_ = CostRows(
        np.concatenate((own, moved.kernel)),
        np.concatenate((line, line[moved.instruction])),
        np.concatenate((np.where(moved.total > 0, 0.0, whole), moved.share * whole[moved.kernel])),
    )
    flops = CostRows(np.where(graph.kernel >= 0, graph.kernel, own).astype(np.int32), line, _own_flops(graph))
    times = _times(graph, moved)
    if times is None:
        return {"flops": flops, "bytes": bytes_}
    return {"flops": flops, "bytes": bytes_, "seconds": CostRows(times.kernel, line[times.instruction], times.seconds)}


class KernelLines(NamedTuple):
    """Costs of each kernel on each line, in the order of kernels, with the sums of the table.

    Args:
        places: (file, line) of each line.
        kernel: Node of each row.
        line: Index in `places` of each row; its length for no line.
        amounts: Amounts of each measure.
    """

    places: Sequence[tuple[str, int]]
    kernel: Ints
    line: Ints
    amounts: Mapping[str, Floats]


def kernel_lines(split: LineSplit) -> KernelLines:
    """Return the cost of each `hlo` kernel on each source line, split as in the line table.

    Kernels without a cost on a line have no row for it.
    """
    rows, width = split.costs, len(split.places) + 1
    keys = {name: of.kernel.astype(np.int64) * width + of.line for name, of in rows.items()}
    pairs = np.unique(np.concatenate([keys[name][of.amount > 0] for name, of in rows.items()]))
    amounts: dict[str, Floats] = {}
    for name, of in rows.items():
        costs = of.amount > 0
        amounts[name] = _sums(np.searchsorted(pairs, keys[name][costs]).astype(np.int32), of.amount[costs], len(pairs))
    return KernelLines(split.places, (pairs // width).astype(np.int32), (pairs % width).astype(np.int32), amounts)


class InstructionTimes(NamedTuple):
    """Parts of a kernel's seconds: kernel, instruction, seconds of each row."""

    kernel: Ints
    instruction: Ints
    seconds: Floats


def _times(graph: Graph, moved: _MovedBytes) -> InstructionTimes | None:
    """Return each measured time split over the instructions inside, by work and bytes; None without measured times."""
    # Unknown counts have no weight in a split.
    measures = {name: np.nan_to_num(values) for name, values in graph.measures.items()}
    kernel, time, size = graph.kernel, measures.get("time"), len(graph.names)
    if time is None:
        return None
    work, whole_bytes = _work(graph), measures.get("bytes", np.zeros(size))
    inside, own, holder = kernel >= 0, np.arange(size, dtype=np.int32), _time_holders(graph, time)
    is_split = moved.total > 0
    is_alone = (kernel == own) & ~is_split
    split_bytes, alone_bytes = (np.where(rows, _ADDITIONS_PER_BYTE * whole_bytes, 0.0) for rows in (is_split, is_alone))
    held = holder[kernel[inside]]
    whole = _sums(held, work[inside], size) + _sums(holder, split_bytes + alone_bytes, size)
    per_unit = np.where(whole > 0, time / np.where(whole > 0, whole, 1.0), 0.0)
    rest = np.where(whole > 0, 0.0, time) + alone_bytes * per_unit[holder]
    by_bytes = moved.share * split_bytes[moved.kernel] * per_unit[holder[moved.kernel]]
    return InstructionTimes(
        np.concatenate((holder[moved.kernel], held, np.where(is_alone, holder, own))),
        np.concatenate((moved.instruction, own[inside], own)),
        np.concatenate((by_bytes, work[inside] * per_unit[held], rest)),
    )


def _time_holders(graph: Graph, time: Floats) -> Ints:
    """Return for each instruction the one whose time includes it: itself, or its caller.

    A small loop may be compiled as one kernel, so that only its call is timed; the instructions inside share that time.
    """
    size = len(time)
    caller = graph.caller[graph.group]
    holds_timed = np.zeros(size, bool)
    at = caller[time > 0]
    for _ in range(_MAX_DEPTH):
        at = at[at >= 0]
        holds_timed[at] = True
        at = caller[at]
    holder, at = np.arange(size, dtype=np.int32), caller
    for _ in range(_MAX_DEPTH):
        is_held = (at >= 0) & (time == 0) & (time[at] > 0) & ~holds_timed[at]
        holder = np.where(is_held, at, holder).astype(np.int32)
        at = np.where(at >= 0, caller[at], np.int32(-1))
    return holder


def _work(graph: Graph) -> Floats:
    weights = np.asarray([WEIGHTS.get(op, 1.0) for op in graph.ops] or [1.0])
    searches = np.asarray([SEARCHES.get(op, 0.0) for op in graph.ops] or [0.0])[graph.op]
    size = graph.sizes.elements[graph.type]
    runs = np.nan_to_num(graph.measures.get("runs", np.ones(len(size))), nan=1.0)
    return _own_flops(graph) * weights[graph.op] + searches * size * runs


def _own_flops(graph: Graph) -> Floats:
    """Return the FLOPs that each instruction does itself, shape `[n]`; 0 for fusions and inside reducers."""
    size = len(graph.names)
    flops = np.nan_to_num(graph.measures.get("flops", np.zeros(size)))
    applied = np.asarray([group.kind == "apply" for group in graph.groups] + [False])[graph.group]
    caller = graph.caller
    calls = np.bincount(caller[caller >= 0], minlength=size) > 0
    # A fusion has the sum of its instructions, and a caller that of what it applies: count neither twice.
    return np.where(applied | (is_op(graph, ("fusion",)) & calls), 0.0, flops)


class _MovedBytes(NamedTuple):
    """Shares of a fusion's bytes that instructions read and write: kernel, instruction, share of each row.

    `total` is each kernel's sum in bytes, 0 if it isn't a fusion, shape `[n]`.
    """

    kernel: Ints
    instruction: Ints
    share: Floats
    total: Floats


def _moved_bytes(graph: Graph) -> _MovedBytes:
    kernel, count = graph.kernel, len(graph.names)
    inside = np.asarray([g.kind == "fusion" and g.caller >= 0 for g in graph.groups] + [False])[graph.group]
    size = graph.sizes.bytes[graph.type]
    reader = np.repeat(np.arange(count, dtype=np.int32), np.diff(graph.operand_start))
    is_parameter = is_op(graph, ("parameter",))
    edge = inside[reader] & is_parameter[graph.operand]
    readers = np.bincount(graph.operand[edge], minlength=count)
    # A kernel reads a parameter once, for all its readers.
    read = size[graph.operand[edge]] / readers[graph.operand[edge]]
    used = np.bincount(graph.operand, minlength=count) > 0
    writes = np.flatnonzero(inside & ~used & ~is_parameter)
    home = np.concatenate([kernel[reader[edge]], kernel[writes]])
    at = np.concatenate([reader[edge], writes])
    part = np.concatenate([read, size[writes]])
    runs = home >= 0
    home, at, part = home[runs].astype(np.int32), at[runs].astype(np.int32), part[runs]
    total = _sums(home, part, count)
    return _MovedBytes(home, at, part / np.where(total > 0, total, 1.0)[home], total)


def _sums(at: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(at, values, count).astype(np.float64)
