"""The table source line → equations → kernels → share of FLOPs, bytes, and seconds where they were measured.

What a kernel costs is split over the lines of what is inside it:

- FLOPs exactly, instruction by instruction;
- bytes by who moves them: what is read to the instructions that read it, what is written to the one that makes it;
- seconds by both: what the arithmetic takes, a power more than an addition (weights.py), and what the bytes do. So a
  kernel that does little for each byte is split as its bytes are, and one that does much as its arithmetic.

So each column adds up to the program; what no line is known for is a row of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.cost.elementwise import SEARCHES, WEIGHTS
from explorer.analysis.cost.kernels import kernel_of
from explorer.analysis.links.keys import is_equation
from explorer.analysis.links.provenance import placed
from explorer.analysis.links.relocation import lost_places
from explorer.model.graph import Floats, Frame, Graph, Ints
from explorer.model.source import Source, is_library_file
from explorer.model.types import bytes_of, elements

if TYPE_CHECKING:
    from explorer.model.capture import Capture

__all__ = ["LineRow", "LineTable", "line_parts", "splitting"]

_PATH = re.compile(r"[/\\]")
_BYTE = 4.0  # additions in the time of moving a byte: between a cache's and the memory's, for one core of today
_WIDEST = 48
_DEEPEST = 16  # calls in each other: of loops, branches and fusions


@dataclass(frozen=True, slots=True)
class LineRow:
    """What one line of the source costs.

    Args:
        file, line: Its place, the line from 1; empty and 0 for what no line is known for.
        text: The line without its indentation; empty where the source is not known.
        equations: How many equations of the jaxpr it makes.
        kernels: How many kernels something of it runs in.
        flops, bytes: Its part of theirs; `flops_share` and `bytes_share` of the program's, 0 to 1.
        seconds: Its part of the time measured, None where none was.
    """

    file: str
    line: int
    text: str
    equations: int
    kernels: int
    flops: float
    flops_share: float
    bytes: float
    bytes_share: float
    seconds: float | None = None


class LineTable(Sequence[LineRow]):
    """The rows, by file and line; what no line is known for is last.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> table = explorer.explore(lambda x: jnp.sin(x) @ x, jnp.ones((64, 64))).lines()
        >>> sum(row.flops for row in table) == table.flops
        True
    """

    def __init__(self, rows: Sequence[LineRow], flops: float, bytes_: float, seconds: float | None) -> None:
        self._rows = tuple(rows)
        self.flops, self.bytes, self.seconds = flops, bytes_, seconds

    @overload
    def __getitem__(self, index: int) -> LineRow: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[LineRow, ...]: ...
    def __getitem__(self, index: int | slice) -> LineRow | tuple[LineRow, ...]:
        return self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[LineRow]:
        return iter(self._rows)

    def to_frame(self) -> object:
        """The same as a pandas DataFrame; ImportError where there is no pandas."""
        pandas: Any = import_module("pandas")
        return pandas.DataFrame([{name: getattr(row, name) for name in LineRow.__slots__} for row in self._rows])

    def __repr__(self) -> str:
        head = ("line", "source", "equations", "kernels", "FLOPs", "", "bytes", "")
        rows = [head, *(_written(row) for row in self._rows)]
        rows.append(("", "total", "", "", amount(self.flops), "", f"{amount(self.bytes)}B", ""))
        if self.seconds is not None:
            seconds = ["seconds", *(f"{row.seconds or 0:.2e}" for row in self._rows), f"{self.seconds:.2e}"]
            rows = [(*row, text) for row, text in zip(rows, seconds, strict=True)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        aligned = ("  ".join(_aligned(cell, widths[i], i) for i, cell in enumerate(row)).rstrip() for row in rows)
        return "\n".join(aligned)


def _written(row: LineRow) -> tuple[str, ...]:
    text = row.text if len(row.text) <= _WIDEST else row.text[: _WIDEST - 1] + "…"
    name = text or _PATH.split(row.file)[-1] or "(no line)"
    share = (f"{row.flops_share:.1%}", f"{row.bytes_share:.1%}")
    count = (str(row.equations), str(row.kernels))
    return (str(row.line or ""), name, *count, amount(row.flops), share[0], f"{amount(row.bytes)}B", share[1])


def _aligned(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column == 1 else cell.rjust(width)


def amount(value: float) -> str:
    """`1.5 M`: a number with at most four digits."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.0f} "


def line_table(capture: Capture) -> LineTable:
    """Split what the kernels of the `hlo` stage cost over the lines that they come from."""
    return _Splitting(capture).table()


def line_parts(capture: Capture) -> Iterator[tuple[int, str, int, float]]:
    """What each line has of each kernel's measured time: node of the `hlo` stage, file, line, seconds.

    File and line are empty and 0 for what no line is known for; none at all where no time was measured.
    """
    return splitting(capture).parts()


def splitting(capture: Capture) -> _Splitting:
    """The same, for who asks for several: the table, the parts of lines, of instructions."""
    return _Splitting(capture)


class _Splitting:
    def __init__(self, capture: Capture) -> None:
        self.graph = graph = capture.hlo.graph
        self.sources = capture.sources
        self.places: dict[tuple[str, int], int] = {}
        own = own_files(capture.sources)
        self.lost = lost = lost_places(capture)
        self.by = by = placed(graph, [*lost])
        self.line = self.lines_of(graph, own, by)
        self.equations = np.zeros(0, np.int64)
        if any(stage.name == "jaxpr" for stage in capture.stages):
            jaxpr = capture.jaxpr.graph
            line = self.lines_of(jaxpr, own, placed(jaxpr))
            for node, row in lost.items():
                self.line[by == node] = line[row]
            line = line[is_equation(jaxpr)]
            self.equations = np.bincount(line[line >= 0], minlength=len(self.places))
        self.kernel = kernel_of(graph)
        self.count = len(self.places) + 1  # the last is for what no line is known for

    def lines_of(self, graph: Graph, own: set[str], by: Ints) -> Ints:
        """For each node, the number of its line; -1 for none."""
        of_frame = [place_of(graph, frame, own) for frame in range(len(graph.frames))]
        keys = [(place.file, place.line) for place in of_frame]
        codes = [self.places.setdefault(key, len(self.places)) if key[0] else -1 for key in keys]
        table = np.asarray([*codes, -1], np.int32)
        return table[np.where(by >= 0, graph.frame[by], -1)]

    def table(self) -> LineTable:
        flops, bytes_, seconds = self.split()
        kernels = self.kernels()
        totals = (flops.sum(), bytes_.sum())
        rows: list[LineRow] = []
        texts: dict[str, list[str]] = {}
        places = [*self.places, ("", 0)]
        for i in sorted(range(self.count), key=lambda i: (not places[i][0], *places[i])):
            file, line = places[i]
            equations = int(self.equations[i]) if i < len(self.equations) else 0
            time = None if seconds is None else float(seconds[i])
            if not (equations or kernels[i] or flops[i] or bytes_[i] or time):
                continue
            share = [
                float(part / total) if total else 0.0 for part, total in ((flops[i], totals[0]), (bytes_[i], totals[1]))
            ]
            if file not in texts:
                texts[file] = self.sources[file].text.splitlines() if file in self.sources else []
            text = texts[file][line - 1].strip() if 0 < line <= len(texts[file]) else ""
            one = (float(flops[i]), share[0], float(bytes_[i]), share[1], time)
            rows.append(LineRow(file, line, text, equations, int(kernels[i]), *one))
        return LineTable(rows, float(totals[0]), float(totals[1]), None if seconds is None else float(seconds.sum()))

    def kernels(self) -> NDArray[np.int64]:
        """How many kernels each line has something in."""
        runs = self.kernel >= 0
        pairs = np.unique(np.stack([self.kernel[runs], self.line[runs]]), axis=1)
        return np.bincount(pairs[1] % self.count, minlength=self.count)

    def split(self) -> tuple[Floats, Floats, Floats | None]:
        """FLOPs, bytes and seconds of each line."""
        graph, count = self.graph, len(self.graph)
        moved = np.nan_to_num(graph.measures.get("bytes", np.zeros(count)))
        flops = self.inner_flops()
        line = self.line % self.count
        by_flops = _sums(line, flops, self.count)
        node, at, part = self.movers()
        per_kernel = _sums(node, part, count)
        whole = np.where(per_kernel > 0, moved, 0.0)
        by_bytes = _sums(line, np.where(per_kernel > 0, 0.0, moved), self.count)
        share = part / np.where(per_kernel > 0, per_kernel, 1.0)[node]
        by_bytes += _sums(line[at], share * whole[node], self.count)
        times = self.times((node, at, part))
        if times is None:
            return by_flops, by_bytes, None
        return by_flops, by_bytes, _sums(line[times[1]], times[2], self.count)

    def times(self, movers: tuple[Ints, Ints, Floats] | None = None) -> tuple[Ints, Ints, Floats] | None:
        """Of each kernel, the seconds that each of its instructions has of it: kernels, instructions, seconds.

        None where none was measured.
        """
        graph, kernel, count = self.graph, self.kernel, len(self.graph)
        measures = {name: np.nan_to_num(values) for name, values in graph.measures.items()}
        time = measures.get("time")
        if time is None:
            return None
        work, moved = self.work(), measures.get("bytes", np.zeros(count))
        node, at, part = movers or self.movers()
        per_kernel = _sums(node, part, count)
        share = part / np.where(per_kernel > 0, per_kernel, 1.0)[node]
        inside, own, holder = kernel >= 0, np.arange(count, dtype=np.int32), self.holders(time)
        is_alone = (kernel == own) & (per_kernel == 0)
        as_bytes, whole_bytes = np.where(per_kernel > 0, _BYTE * moved, 0.0), np.where(is_alone, _BYTE * moved, 0.0)
        held = holder[kernel[inside]]
        whole = _sums(held, work[inside], count) + _sums(holder, as_bytes + whole_bytes, count)
        per_unit = np.where(whole > 0, time / np.where(whole > 0, whole, 1.0), 0.0)
        rest = np.where(whole > 0, 0.0, time) + whole_bytes * per_unit[holder]
        seconds = (share * as_bytes[node] * per_unit[holder[node]], work[inside] * per_unit[held], rest)
        nodes = (holder[node], held, np.where(is_alone, holder, own))
        return np.concatenate(nodes), np.concatenate((at, own[inside], own)), np.concatenate(seconds)

    def holders(self, time: Floats) -> Ints:
        """For each instruction, the one whose time it is part of: itself, or what calls it.

        A small loop may be compiled as one, and only its call be timed: then what is inside shares that time.
        """
        graph, count = self.graph, len(self.graph)
        caller = np.asarray([group.caller for group in graph.groups] + [-1], np.int32)[graph.group]
        holds_timed = np.zeros(count, bool)
        at = caller[time > 0]
        for _ in range(_DEEPEST):
            at = at[at >= 0]
            holds_timed[at] = True
            at = caller[at]
        holder, at = np.arange(count, dtype=np.int32), caller
        for _ in range(_DEEPEST):
            is_held = (at >= 0) & (time == 0) & (time[at] > 0) & ~holds_timed[at]
            holder = np.where(is_held, at, holder).astype(np.int32)
            at = np.where(at >= 0, caller[at], np.int32(-1))
        return holder

    def parts(self) -> Iterator[tuple[int, str, int, float]]:
        """What `line_parts` gives."""
        times = self.times()
        if times is None:
            return
        line = self.line[times[1]] % self.count
        pairs, at = np.unique(times[0].astype(np.int64) * self.count + line, return_inverse=True)
        seconds = _sums(at.astype(np.int32), times[2], len(pairs))
        places = [*self.places, ("", 0)]
        for pair, part in zip(pairs.tolist(), seconds.tolist(), strict=True):
            if part > 0:
                yield pair // self.count, *places[pair % self.count], part

    def work(self) -> Floats:
        """What each instruction does itself, in additions."""
        graph = self.graph
        weights = np.asarray([WEIGHTS.get(op, 1.0) for op in graph.ops] or [1.0])
        searches = np.asarray([SEARCHES.get(op, 0.0) for op in graph.ops] or [0.0])[graph.op]
        size = np.asarray([elements(type_) for type_ in graph.types] or [0.0])[graph.type]
        runs = np.nan_to_num(graph.measures.get("runs", np.ones(len(graph))), nan=1.0)
        return self.inner_flops() * weights[graph.op] + searches * size * runs

    def inner_flops(self) -> Floats:
        """The FLOPs of each instruction that does them itself."""
        graph = self.graph
        flops = np.nan_to_num(graph.measures.get("flops", np.zeros(len(graph))))
        # What a fusion has is the sum of its inside; what a reducer does is in its reduction.
        applied = np.asarray([group.kind == "apply" for group in graph.groups] + [False])[graph.group]
        fusion = np.asarray([op == "fusion" for op in graph.ops] or [False])[graph.op]
        return np.where(applied | (fusion & (self.called() > 0)), 0.0, flops)

    def called(self) -> Ints:
        """How many groups each node calls."""
        callers = np.asarray([group.caller for group in self.graph.groups], np.int64)
        return np.bincount(callers[callers >= 0], minlength=len(self.graph)).astype(np.int32)

    def movers(self) -> tuple[Ints, Ints, Floats]:
        """Of each fusion, which of its instructions read and write how many bytes: kernels, instructions, bytes."""
        graph = self.graph
        inside = np.asarray([g.kind == "fusion" and g.caller >= 0 for g in graph.groups] + [False])[graph.group]
        size = np.asarray([bytes_of(type_) for type_ in graph.types] or [0], np.float64)[graph.type]
        reader = np.repeat(np.arange(len(graph), dtype=np.int32), np.diff(graph.operand_start))
        is_parameter = np.asarray([op == "parameter" for op in graph.ops] or [False])[graph.op]
        edge = inside[reader] & is_parameter[graph.operand]
        readers = np.bincount(graph.operand[edge], minlength=len(graph))
        read = size[graph.operand[edge]] / readers[graph.operand[edge]]
        used = np.bincount(graph.operand, minlength=len(graph)) > 0
        writes = np.flatnonzero(inside & ~used & ~is_parameter)
        node = np.concatenate([self.kernel[reader[edge]], self.kernel[writes]])
        at = np.concatenate([reader[edge], writes])
        part = np.concatenate([read, size[writes]])
        runs = node >= 0
        return node[runs].astype(np.int32), at[runs].astype(np.int32), part[runs]


def _sums(at: Ints, values: Floats, count: int) -> Floats:
    return np.bincount(at, values, count).astype(np.float64)


def own_files(sources: Mapping[str, Source]) -> set[str]:
    """The files that are the user's; all of them where only libraries are known."""
    return {file for file in sources if not is_library_file(file)} or set(sources)


def place_of(graph: Graph, frame: int, own: set[str]) -> Frame:
    """The innermost frame in the user's own files; in a library only where there is no other."""
    stack = graph.stack(frame)
    return next((one for one in stack if one.file in own), stack[0])
