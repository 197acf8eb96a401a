"""Line tables folded by call stack or by named scope: a line inside its callers, or inside its scopes.

A helper that multiplies matrices in one line has all products of a program on that line. Folded by stack, each line of
the explored function has its part of them, with the helper's line inside. A row has the costs of all rows inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Literal

import numpy as np

from explorer.analysis.attribution import own_frame
from explorer.analysis.graphs import has_entry
from explorer.analysis.line_costs import LineSplit
from explorer.analysis.loops import is_one_iteration
from explorer.analysis.source_paths import named_scopes
from explorer.errors import OptionError
from explorer.model.attribution import CountLimits, LineRow, LineTable
from explorer.model.declared import cached_property
from explorer.model.graph import Frame, Graph, Ints
from explorer.model.stage import is_library_file

FoldedBy = Literal["line", "stack", "scope"]
Place = tuple[str, str, int]  # scope, file, line; a scope has no file, and a line no scope
Path = tuple[Place, ...]  # outermost first; empty where nothing is known
_Amounts = dict[str, float]
_NOWHERE: Path = (("", "", 0),)  # the row of what no line is known for


def folded(split: LineSplit, limits: CountLimits, by: FoldedBy) -> LineTable:
    """Return the table of the lines, folded `by` their call stack or their named scopes; empty without an entry.

    Raises:
        OptionError: `by` is another text.
    """
    if by not in ("stack", "scope"):
        raise OptionError(f"a line table goes by 'line', 'stack' or 'scope', not {by!r}.")
    if not has_entry(split.graph):
        return LineTable([], math.nan, math.nan, None, limits.sentences)
    return _Folding(split, by).table(limits)


class _Folding:
    def __init__(self, split: LineSplit, by: FoldedBy) -> None:
        self.by = by
        self._paths: dict[Path, int] = {}
        self._by_place: dict[tuple[bool, int, int], int] = {}
        graph, jaxpr, nodes = split.graph, split.jaxpr, range(len(split.line))
        line = np.asarray([self._code(split, *split.origin(node)) for node in nodes], np.int32)
        equations = [] if jaxpr is None else self._equation_codes(jaxpr)
        paths = [*self._paths]
        self.split = replace(split, places=[(str(at), at) for at in range(len(paths))], line=line)
        self.rows: dict[Path, _Amounts] = {}
        self.kernels: dict[Path, set[int]] = {}
        self.paths: list[Path] = [*paths, ()]  # the last is for what no line is known for
        self._add_costs()
        for code in equations:
            self._add(self.paths[code], "equations", 1)
        self._add_kernels(graph)
        self._read_source = split.read_source

    def _code(self, split: LineSplit, at: int, row: int) -> int:
        """Return the number of the path of the node `at`, or of its equation if `row` of the jaxpr isn't -1.

        If `at` is -1, its line is unknown, and so is the path: -1.
        """
        if at < 0:
            return -1
        of_equation = row >= 0 and split.jaxpr is not None
        graph, node = (split.jaxpr, row) if of_equation and split.jaxpr is not None else (split.graph, at)
        key = of_equation, int(graph.frame[node]), int(graph.scope[node]) if self.by == "scope" else -1
        if key not in self._by_place:
            self._by_place[key] = self._number(graph, node)
        return self._by_place[key]

    def _equation_codes(self, jaxpr: Graph) -> list[int]:
        owner = jaxpr.attribution.by
        nodes: list[int] = owner[jaxpr.is_equation].tolist()
        return [self._number(jaxpr, node) if node >= 0 else -1 for node in nodes]

    def _number(self, graph: Graph, node: int) -> int:
        stack = graph.stack(int(graph.frame[node]))
        if self.by == "stack":
            path = _calls(stack)
        else:
            scopes = named_scopes(graph.scopes[int(graph.scope[node])])
            own = own_frame(stack)
            path = (*((name, "", 0) for name in scopes), *([("", own.file, own.line)] if own else []))
        return self._paths.setdefault(path, len(self._paths)) if path else -1

    def _add(self, path: Path, name: str, amount: float) -> None:
        for row in _around(path):
            amounts = self.rows.setdefault(row, {})
            amounts[name] = amounts.get(name, 0.0) + amount

    def _add_costs(self) -> None:
        width = len(self.paths)
        for name, of in self.split.costs.items():
            for path, amount in zip(self.paths, np.bincount(of.line, of.amount, width).tolist(), strict=True):
                if amount > 0:
                    self._add(path, name, amount)

    def _add_kernels(self, graph: Graph) -> None:
        kernels: Ints = graph.kernel
        for node in np.flatnonzero((kernels >= 0) & (self.split.line >= 0)).tolist():
            for row in _around(self.paths[int(self.split.line[node])]):
                self.kernels.setdefault(row, set()).add(int(kernels[node]))
        having = {kernel for of_row in self.kernels.values() for kernel in of_row}
        if without := {*np.flatnonzero(kernels == np.arange(len(kernels))).tolist()} - having:
            self.kernels[_NOWHERE] = without
            self.rows.setdefault(_NOWHERE, {})

    @cached_property
    def one_iteration(self) -> set[Path]:
        codes: set[int] = {*self.split.line[is_one_iteration(self.split.graph)].tolist()} - {-1}
        return {row for code in codes for row in _around(self.paths[code])}

    def table(self, limits: CountLimits) -> LineTable:
        whole = {name: math.fsum(of.amount.tolist()) for name, of in self.split.costs.items()}
        texts: dict[str, Sequence[str]] = {}
        rows = [self._row(path, whole, texts) for path in sorted(self.rows, key=_order)]
        return LineTable(rows, whole["flops"], whole["bytes"], whole.get("seconds"), limits.sentences)

    def _row(self, path: Path, whole: Mapping[str, float], texts: dict[str, Sequence[str]]) -> LineRow:
        amounts, (scope, file, line) = self.rows[path], path[-1]
        if file not in texts:
            source = self._read_source(file) if file else None
            texts[file] = source.text.splitlines() if source is not None else ()
        flops, moved = amounts.get("flops", 0.0), amounts.get("bytes", 0.0)
        return LineRow(
            file,
            line,
            text=scope or "".join(texts[file][max(line - 1, 0) : line]).strip(),
            equations=int(amounts.get("equations", 0)),
            kernels=len(self.kernels.get(path, ())),
            flops=flops,
            flops_share=flops / (whole["flops"] or 1.0),
            bytes=moved,
            bytes_share=moved / (whole["bytes"] or 1.0),
            seconds=amounts.get("seconds", 0.0) if "seconds" in whole else None,
            one_iteration=path in self.one_iteration and max(flops, moved) > 0,
            depth=len(path) - 1,
        )


def _calls(stack: Sequence[Frame]) -> Path:
    """Return the lines of user code in a stack, outermost first.

    Without user code, return only the line of the innermost frame.
    """
    own = [frame for frame in stack if not is_library_file(frame.file)] or [*stack[:1]]
    lines = [("", frame.file, frame.line) for frame in reversed(own)]
    return tuple(place for place, _ in groupby(lines))  # nested calls on one line are one place


def _around(path: Path) -> Iterator[Path]:
    """Yield the beginnings of a path, shortest first, up to the whole path.

    For an empty path, yield the path of the row without a line.
    """
    yield from (path[:depth] for depth in range(1, len(path) + 1)) if path else [_NOWHERE]


def _order(path: Path) -> list[tuple[bool, str, str, int]]:
    """Return the sort key of a row: a scope's name, else the place in the source; the row without a line is last."""
    return [(not (scope or file), scope, file, line) for scope, file, line in path]
