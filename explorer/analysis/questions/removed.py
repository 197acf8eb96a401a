"""What became of the equations of a line, or of one operation: which pass took them away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from explorer.analysis.facts import line_text, lines_of
from explorer.analysis.questions.reply import equations_of, joined, optimised, passes_hint, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.fates import KINDS, Fate, Fates
from explorer.model.graph import Graph
from explorer.model.text import list_names
from explorer.model.units import count_text

_GONE = ("eliminated", "merged", "folded", "rewritten")
_MOST = 4  # equations that an answer speaks of one by one
_LINES = 400  # of a file: more answers make a page too large
_STEPS = {"import": "XLA's import", "lowering": "JAX's lowering"}


@dataclass(frozen=True)
class _Equations:
    """The equations of a capture whose optimised program is there. A page asks of each line and each operation, so what
    is said of a single equation is kept."""

    capture: Capture
    graph: Graph
    fates: Fates
    sentences: dict[int, str]

    @classmethod
    def of(cls, capture: Capture) -> _Equations | None:
        graph = equations_of(capture)
        if graph is None or optimised(capture) is None:
            return None
        return cls(capture, graph, capture.all_fates["jaxpr"], {})

    def sentence(self, row: int) -> str:
        """`mul on line 3 was folded by algsimp (pass 4).`"""
        if row not in self.sentences:
            fate = self.fates[row]
            became = f"was {_ending(fate)}" if fate.kind in _GONE else f"is {fate}"
            line = lines_of(self.capture, self.graph, [row])
            name = self.graph.ops[int(self.graph.op[row])]
            self.sentences[row] = f"{name}{' on ' * bool(line)}{line} {became}."
        return self.sentences[row]


def removed(capture: Capture, line: int = 0, op: str = "", file: str = "") -> Answer:
    """What became of the equations of a line, of an operation, or of all.

    Args:
        capture: Any.
        line: A line of the source, from 1; 0 for all.
        op: An operation of the jaxpr, `mul`; empty for all.
        file: The file of `line`; the function's own if not given.
    """
    equations = _Equations.of(capture)
    if equations is None:
        return reply("removed", "What became of the equations is not known: a stage is missing.", "unknown")
    return _removed(equations, line, op, file or capture.file)


def by_operation(capture: Capture, ops: Sequence[str]) -> Mapping[str, Answer]:
    """The answers for some operations."""
    equations = _Equations.of(capture)
    return {op: removed(capture) if equations is None else _removed(equations, op=op) for op in ops}


def by_line(capture: Capture) -> Mapping[tuple[str, int], Answer]:
    """The answers for the lines that equations belong to."""
    equations = _Equations.of(capture)
    if equations is None:
        return {}
    attribution = equations.graph.attribution
    places = [place for place, count in zip(attribution.places, np.diff(attribution.start), strict=True) if count]
    chosen = sorted(places, key=lambda place: (place.file != capture.file, place.file, place.line))[:_LINES]
    return {(place.file, place.line): _removed(equations, place.line, file=place.file) for place in chosen}


def _removed(equations: _Equations, line: int = 0, op: str = "", file: str = "") -> Answer:
    graph = equations.graph
    chosen = graph.attribution.nodes(file, line) if line else np.arange(len(graph.names))
    chosen = chosen[graph.is_equation[chosen]]
    if op:
        chosen = chosen[np.asarray([name == op for name in graph.ops], bool)[graph.op[chosen]]]
    where = line_text(equations.capture, file, line) if line else ""
    rows: list[int] = chosen.tolist()
    return _answer(equations, rows, " of ".join(filter(None, (op, where))))


def _answer(equations: _Equations, rows: Sequence[int], what: str) -> Answer:
    if not rows:
        return reply("removed", f"There is no equation {f'of {what}' if what else 'at all'}.")
    fates = equations.fates
    gone, lost, kept = _by_fate(fates, rows)
    is_short = what and len(kept) <= _MOST
    text = joined(
        _gone(equations, gone, len(rows), what),
        f"What became of {len(lost):,} is not known." * bool(lost),
        *(equations.sentence(row) for row in kept if is_short),
    )
    certainty = "inferred" if fates.inferred[gone].any() else "exact"
    if lost and not gone:
        certainty = "unknown"
    hint = passes_hint(equations.capture) if lost else ""
    return reply("removed", text, certainty, "jaxpr", gone or rows, hint)


def _by_fate(fates: Fates, rows: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """The rows that left no instruction of their own, those of unknown fate, and the others."""
    codes: list[int] = fates.kind[list(rows)].tolist()
    split: dict[str, list[int]] = {"gone": [], "unknown": [], "kept": []}
    for row, kind in zip(rows, (KINDS[code] for code in codes), strict=True):
        split["gone" if kind in _GONE else "unknown" if kind == "unknown" else "kept"].append(row)
    return split["gone"], split["unknown"], split["kept"]


def _gone(equations: _Equations, gone: Sequence[int], count: int, what: str) -> str:
    if not gone:
        return f"Nothing {f'of {what} ' * bool(what)}was removed."
    if len(gone) <= _MOST:
        return joined(*map(equations.sentence, gone))
    steps = Counter(_step(equations.fates[row]) for row in gone)
    by = list_names([f"{step} {number:,}" for step, number in steps.most_common()])
    whole = f"{len(gone):,} of {count_text(count, 'equation')}{f' of {what}' * bool(what)}"
    return f"{whole} left no instruction as they were: {by}."


def _ending(fate: Fate) -> str:
    by = f" by {_step(fate)}" if fate.pass_name else ""
    return f"{fate.kind}{by}" + (f": {fate.why}" if fate.why else "")


def _step(fate: Fate) -> str:
    return _STEPS.get(fate.pass_name) or fate.step or "no pass that is known"
