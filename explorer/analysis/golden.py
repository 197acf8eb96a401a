"""Comparison of a golden record with a new one: which measures changed, on which line, and why.

The line with most of a measure's growth is named. The cause is the first edited line with other equations. If the
equations are equal, the cause is in the results, the donation or the version of JAX, or it is unknown.

Lines are aligned in the order of tracing: first those with equal text, between these those with equal equations, and
between these the others by similarity. So a line that only moved, was renamed or got a comment matches itself.

A record has operations, types and lines, but no names that XLA numbers: each run of one program gives the same record.
Sums are those of the line table, rounded to whole FLOPs and bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from explorer.analysis.graphs import is_op
from explorer.analysis.kernel_costs import running_nodes
from explorer.model.capture import Capture
from explorer.model.findings import Finding
from explorer.model.golden import MEASURES, Change, CheckResult, Golden, LineRecord, ProgramRecord
from explorer.model.graph import Graph, Ints
from explorer.model.live_memory import needed_bytes
from explorer.model.stage import is_library_file, library_of
from explorer.model.text import cut_end, cut_middle, list_names
from explorer.model.types import bytes_of, parse_type
from explorer.model.units import bytes_text, count_text

_WORDS = {
    "kernels": "kernels", "flops": "FLOPs", "bytes": "bytes moved", "peak_memory": "memory at the peak",
    "constants": "constants baked in", "wire": "bytes sent to other devices",
}  # fmt: skip
_IN_BYTES = frozenset(("bytes", "peak_memory", "constants", "wire"))
_MAX_WIDTH = 60  # characters of code, or of a kernel's name
_MOVES = frozenset(("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "iota", "pjit", "jit", "stop_gradient"))
_COMPILES = "see explorer.watch() for the reason of each"
_MAX_NAMED = 2  # equations or kernels that a sentence names


def compared(before: Golden, now: Golden, name: str) -> CheckResult:
    """Return the measures that grew and shrank from one record to another.

    The result's record is `now` with the function, arguments and tolerances of `before`.

    UnknownNameError if `now` lacks a target of `before`.
    """
    now = replace(now, function=before.function, arguments=before.arguments, tolerance=before.tolerance)
    changes = [
        change for old in before.programs for change in _Comparison(before, now, old, now.program(old.target)).changes()
    ]
    changes += _compiles(before, now)
    regressions = [change for change in changes if change.after > change.before]
    gains = [change for change in changes if change.after <= change.before]
    notes = [f"recorded with JAX {before.jax}; this is {now.jax}"] if before.jax != now.jax else []
    return CheckResult(name, regressions, gains, notes, now)


class _Cause(NamedTuple):
    text: str
    file: str = ""
    line: int = 0


class _Comparison:
    def __init__(self, before: Golden, after: Golden, old: ProgramRecord, new: ProgramRecord) -> None:
        self._before, self._after, self._old, self._new = before, after, old, new
        self._pairs = matched_lines(old.lines, new.lines)
        self._edited = [pair for pair in self._pairs if _equations(pair[0]) != _equations(pair[1])]

    def changes(self) -> Iterator[Change]:
        for measure in MEASURES:
            yield from self._of_measure(measure)
        yield from self._donation()
        yield from self._counted("collectives", self._old.collectives, self._new.collectives)
        yield from self._counted("findings", self._old.findings, self._new.findings)

    def _of_measure(self, measure: str) -> Iterator[Change]:
        old, new = getattr(self._old, measure), getattr(self._new, measure)
        if abs(new - old) <= self._before.tolerance[measure] * old:
            return
        amounts: Callable[[LineRecord], float] | None = _AMOUNTS.get(measure)
        line = self._costliest(amounts, new - old) if amounts is not None else None
        where, row = ("", None) if line is None else (_where(*line, measure == "kernels"), line[1])
        was, now = (bytes_text(each) if measure in _IN_BYTES else f"{round(each):,}" for each in (old, new))
        grown = f", {(new - old) / old:+.0%}" if old and measure != "kernels" else ""
        yield self._change(measure, old, new, f"{_WORDS[measure]}: {now}, {was} before{grown}", where, row)

    def _donation(self) -> Iterator[Change]:
        old, new = self._old.donated, self._new.donated
        if old != new:
            # Less donation is worse, so the signs are swapped.
            text = f"donated arguments: {bytes_text(new)}, {bytes_text(old)} before"
            yield self._change("donated", -old, -new, text)

    def _counted(self, measure: str, old: Mapping[str, int], new: Mapping[str, int]) -> Iterator[Change]:
        for name in dict.fromkeys((*old, *new)):
            if old.get(name, 0) != new.get(name, 0):
                text = f"{name}: {new.get(name, 0)}, {old.get(name, 0)} before"
                yield self._change(measure, old.get(name, 0), new.get(name, 0), text)

    def _change(
        self, measure: str, old: float, new: float, text: str, where: str = "", line: LineRecord | None = None
    ) -> Change:
        why, file, number = self._cause(measure)
        if not file:
            file, number = (line.file, line.line) if line is not None and line.file else _place_of(self._after)
        return Change(self._new.target, measure, old, new, text, where, why, file, number)

    def _costliest(self, amount: Callable[[LineRecord], float], by: float) -> tuple[Pair, LineRecord] | None:
        grown = [((old, new), (amount(new) if new else 0) - (amount(old) if old else 0)) for old, new in self._pairs]
        pair, most = max(grown, key=lambda each: each[1] if by > 0 else -each[1], default=((None, None), 0))
        line = pair[1] or pair[0]
        return (pair, line) if line is not None and most * by > 0 else None

    def _cause(self, measure: str) -> _Cause:
        if self._edited:
            return _edit(self._edited)
        place = _place_of(self._after)
        if measure == "findings":
            return _Cause("the equations are the same; explorer.lint() explains the findings")
        if self._old.results != self._new.results:
            was, now = bytes_text(self._old.results), bytes_text(self._new.results)
            return _Cause(f"it returns {now}, {was} before; the equations are the same", *place)
        if self._old.donated != self._new.donated:
            return _Cause("other arguments are donated; the equations are the same", *place)
        if self._before.jax != self._after.jax:
            return _Cause(f"JAX {self._before.jax} became {self._after.jax}; the equations are the same")
        return _Cause("not known: the equations are the same, and so is JAX")


_AMOUNTS: Mapping[str, Callable[[LineRecord], float]] = {
    "kernels": lambda row: sum(row.kernels.values()),
    "flops": lambda row: row.flops,
    "bytes": lambda row: row.bytes,
}


def _compiles(before: Golden, after: Golden) -> Iterator[Change]:
    for name in dict.fromkeys((*before.compiles, *after.compiles)):
        old, new = before.compiles.get(name, 0), after.compiles.get(name, 0)
        if old != new:
            text = f"{name} compiles {count_text(new, 'time')}, {old} before"
            file, line = _place_of(after)
            yield Change("", "compiles", old, new, text, "", _COMPILES, file, line, name)


def _place_of(golden: Golden) -> tuple[str, int]:
    file, _, line = golden.place.rpartition(":")
    return (file, int(line)) if file else ("", 0)


def _where(pair: Pair, row: LineRecord, with_kernels: bool) -> str:
    place = f"line {row.line} of {row.file}, `{cut_end(row.code, _MAX_WIDTH)}`" if row.file else "an unknown line"
    kernels = _kernel_text(*pair) if with_kernels else ""
    return f"most of it on {place}" + (f": {kernels}" if kernels else "")


def _kernel_text(before: LineRecord | None, after: LineRecord | None) -> str:
    """Return the kernels that changed on a line as text; empty if none changed.

    For example: `the kernels exp → f32[8] and add → f32[8] instead of add, exp → f32[8]`.
    """
    old, new = (Counter(row.kernels) if row else Counter[str]() for row in (before, after))
    come, gone = _named(new - old), _named(old - new)
    if come and gone:
        return f"the kernels {come} instead of {gone}"
    return f"new kernels {come}" if come else f"without {gone}" if gone else ""


def _edit(pairs: Sequence[Pair]) -> _Cause:
    """Return the edited line as a cause: the equations it has and had, and its place.

    Args:
        pairs: Records before and after of each line whose equations changed.
    """
    # Changes of other lines follow from the line with edited text: derivatives before it, types after it. Without such
    # a line a library changed, so the first pair counts.
    before, after = next((pair for pair in pairs if _is_edited(*pair)), pairs[0])
    old, new = Counter(_equations(before)), Counter(_equations(after))
    come, gone = _named(new - old), _named(old - new)
    if before is None:
        what = f"is new: {come}"
    elif after is None:
        what = f"is gone: {gone}"
    elif come:
        what = f"has {come}" + (f" instead of {gone}" if gone else " more")
    else:
        what = f"has no {gone} any more"
    line = after or before
    if line is None or not line.file:
        return _Cause(f"code without a known source line {what}")
    more = f"; so have {count_text(len(pairs) - 1, 'other line')}" if len(pairs) > 1 else ""
    return _Cause(f"`{cut_end(line.code, _MAX_WIDTH)}` {what}{more}", line.file, line.line)


def _is_edited(before: LineRecord | None, after: LineRecord | None) -> bool:
    line = after or before
    return line is not None and bool(line.file) and (before is None or after is None or before.code != after.code)


def _equations(row: LineRecord | None) -> Mapping[str, int]:
    return row.equations if row is not None else {}


def _named(counts: Counter[str]) -> str:
    """Return counted operations as text: two by name, largest results first and movers last, and how many others."""

    def rank(name: str) -> tuple[bool, int]:
        what, _, type_ = name.rpartition(" ")
        return what in _MOVES, -bytes_of(type_)

    ranked = sorted(counts, key=rank)
    names = [
        cut_middle(name, _MAX_WIDTH) + (f" ×{counts[name]}" if counts[name] > 1 else "") for name in ranked[:_MAX_NAMED]
    ]
    others = len(ranked) - _MAX_NAMED
    return list_names([*names, *([count_text(others, "other")] if others > 0 else [])])


Pair = tuple[LineRecord | None, LineRecord | None]
_KEYS: Sequence[Callable[[LineRecord], Hashable]] = (
    lambda row: (row.code, tuple(row.equations.items())),
    lambda row: row.code,
    lambda row: tuple(row.equations.items()),
)
_MAX_COMPARED = 2_500  # pairs of lines, at about 20 µs each


def matched_lines(before: Sequence[LineRecord], after: Sequence[LineRecord]) -> list[Pair]:
    """Return pairs of the same line in both records, None where one lacks it, in the order of `after`."""
    return list(_aligned(before, after, 0))


def _aligned(before: Sequence[LineRecord], after: Sequence[LineRecord], level: int) -> Iterator[Pair]:
    if level == len(_KEYS):
        yield from _by_likeness(before, after)
        return
    key = _KEYS[level]
    # From 200 lines on, `autojunk` would ignore those that are frequent.
    matcher = SequenceMatcher(None, [key(row) for row in before], [key(row) for row in after], autojunk=False)
    from_before = from_after = 0
    for start, other, length in matcher.get_matching_blocks():  # the last block is empty, at the end of both
        yield from _aligned(before[from_before:start], after[from_after:other], level + 1)
        yield from zip(before[start : start + length], after[other : other + length], strict=True)
        from_before, from_after = start + length, other + length


def _by_likeness(before: Sequence[LineRecord], after: Sequence[LineRecord]) -> Iterator[Pair]:
    """Yield the pairs of the most similar alignment; by position if equally many, or too many to compare."""
    # Equally many lines were usually edited one by one.
    if len(before) == len(after) or len(before) * len(after) > _MAX_COMPARED:
        yield from zip_longest(before, after)
        return
    best = [[0.0] * (len(after) + 1) for _ in range(len(before) + 1)]
    # At least 1, so that any pair is better than two lines without one.
    alike = [[1 + SequenceMatcher(None, old.code, new.code, autojunk=False).ratio() for new in after] for old in before]
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


_MOVES_NOTHING = frozenset(
    ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion", "broadcast", "reshape", "call")
)
# The equations in their bodies count instead.
_CALLS = frozenset(
    ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat2", "checkpoint")
)
Place = tuple[str, int]


def program_record(capture: Capture, findings: Iterable[Finding], folder: str, target: str) -> ProgramRecord:
    """Return a program's golden record with its lint findings. Paths are relative to `folder`.

    Raises:
        UnknownNameError: The capture has no jaxpr or no HLO.
    """
    graph, memory, collectives = capture.hlo.graph, capture.memory, capture.collectives
    kernels = running_nodes(graph)
    table = {(row.file, row.line): row for row in capture.lines()}
    jaxpr = capture.jaxpr.graph
    rows = np.flatnonzero(jaxpr.is_equation & ~is_op(jaxpr, _CALLS)).astype(np.int32)
    types = _types(jaxpr)
    codes = zip(jaxpr.op[rows].tolist(), jaxpr.type[rows].tolist(), strict=True)
    equations = _counts_by_line(jaxpr, rows, [f"{jaxpr.ops[op]} {types[type_]}" for op, type_ in codes])
    made = _counts_by_line(graph, kernels, _kernel_texts(graph, kernels))
    lines = tuple(
        LineRecord(
            file_label(place[0], folder),
            place[1],
            table[place].text if place in table else "",
            _sorted(equations.get(place)),
            _sorted(made.get(place)),
            round(table[place].flops) if place in table else 0,
            round(table[place].bytes) if place in table else 0,
        )
        for place in dict.fromkeys((*equations, *made, *table))
    )
    return ProgramRecord(
        target=target,
        kernels=len(kernels),
        flops=round(sum(row.flops for row in table.values())),
        bytes=round(sum(row.bytes for row in table.values())),
        peak_memory=int(needed_bytes(memory)) if memory else 0,
        results=memory.get("output", 0),
        constants=sum(constant.bytes for constant in capture.constants),
        wire=round(collectives.wire),
        donated=memory.get("alias", 0),
        collectives=_sorted(Counter(f"{row.kind} over {', '.join(row.axes) or 'devices'}" for row in collectives)),
        findings=_sorted(Counter(finding.rule for finding in findings)),
        lines=lines,
    )


def _sorted(counts: Counter[str] | None) -> dict[str, int]:
    # Sorted, so that a golden file changes only where the program does.
    return dict(sorted((counts or Counter[str]()).items()))


def _counts_by_line(graph: Graph, nodes: Ints, texts: Sequence[str]) -> Mapping[Place, Counter[str]]:
    attribution = graph.attribution
    places: list[Place] = [*((place.file, place.line) for place in attribution.places), ("", 0)]
    counts: dict[Place, Counter[str]] = {}
    codes: list[int] = attribution.line[nodes].tolist()
    for text, code in zip(texts, codes, strict=True):
        counts.setdefault(places[code], Counter())[text] += 1
    return counts


def _kernel_texts(graph: Graph, kernels: Ints) -> list[str]:
    inside = np.flatnonzero((graph.kernel >= 0) & ~is_op(graph, _MOVES_NOTHING)).astype(np.int32)
    # One number for each pair of kernel and operation, so that one sort drops repeats.
    pairs: list[int] = np.unique(graph.kernel[inside].astype(np.int64) * len(graph.ops) + graph.op[inside]).tolist()
    ops: dict[int, list[str]] = {}
    for pair in pairs:
        ops.setdefault(pair // len(graph.ops), []).append(graph.ops[pair % len(graph.ops)])
    types = _types(graph)
    texts: list[str] = []
    for kernel in kernels.tolist():
        computes = sorted(ops.get(kernel, [graph.ops[int(graph.op[kernel])]]))
        texts.append(f"{', '.join(computes)} → {types[int(graph.type[kernel])]}")
    return texts


def _types(graph: Graph) -> list[str]:
    """Return the graph's types without layouts, which the compiler may change whenever code nearby changes."""
    return [str(parse_type(text)) for text in graph.types]


def file_label(file: str, folder: str) -> str:
    """Return a path that is equal on other machines: relative to `folder`, or `flax/linen/linear.py` for a library.

    Names that are no absolute path, such as those of cells, stay as they are.
    """
    if not file:
        return ""
    if is_library_file(file):
        package = library_of(file)
        _, folder_of_it, rest = file.replace(os.sep, "/").rpartition(f"/{package}/")
        return f"{package}/{rest}" if folder_of_it else package
    # Golden files are shared between systems.
    return os.path.relpath(file, folder).replace(os.sep, "/") if os.path.isabs(file) else file
