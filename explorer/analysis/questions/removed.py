"""What became of the equations of a line, or of one operation: which pass took them away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from explorer.analysis.facts.lines import line_text, lines_of
from explorer.analysis.questions.reply import UNRECORDED, equations_of, joined, optimised, reply
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


def removed(capture: Capture, line: int = 0, op: str = "", file: str = "") -> Answer:
    """What became of the equations of a line, of an operation, or of all.

    Args:
        capture: Any.
        line: A line of the source, from 1; 0 for all.
        op: An operation of the jaxpr, `mul`; empty for all.
        file: The file of `line`; the function's own if not given.
    """
    graph = equations_of(capture)
    if graph is None or optimised(capture) is None:
        return reply("removed", "What became of the equations is not known: a stage is missing.", "unknown")
    file = file or capture.file
    chosen = graph.is_equation.copy()
    if line:
        chosen[np.setdiff1d(np.arange(len(graph)), graph.attribution.nodes(file, line))] = False
    if op:
        chosen &= np.asarray([name == op for name in graph.ops], bool)[graph.op]
    where = line_text(capture, file, line) if line else ""
    rows: list[int] = np.flatnonzero(chosen).tolist()
    return _answer(capture, graph, rows, " of ".join(filter(None, (op, where))))


def by_line(capture: Capture) -> Mapping[tuple[str, int], Answer]:
    """The answers for the lines that equations belong to."""
    graph = equations_of(capture)
    if graph is None or optimised(capture) is None:
        return {}
    places = [place for place in graph.attribution.places if len(graph.attribution.nodes(place.file, place.line))]
    chosen = sorted(places, key=lambda place: (place.file != capture.file, place.file, place.line))[:_LINES]
    return {(place.file, place.line): removed(capture, place.line, file=place.file) for place in chosen}


def _answer(capture: Capture, graph: Graph, rows: Sequence[int], what: str) -> Answer:
    if not rows:
        return reply("removed", f"There is no equation {f'of {what}' if what else 'at all'}.")
    fates = capture.all_fates["jaxpr"]
    gone, lost, kept = _by_fate(fates, rows)
    text = joined(
        _gone(capture, graph, fates, gone, len(rows), what),
        f"What became of {len(lost):,} is not known." * bool(lost),
        _kept(capture, graph, fates, kept) * bool(what),
    )
    certainty = "inferred" if fates.inferred[gone].any() else "exact"
    if lost and not gone:
        certainty = "unknown"
    hint = UNRECORDED if lost and not capture.has_passes else ""
    return reply("removed", text, certainty, "jaxpr", gone or rows, hint)


def _by_fate(fates: Fates, rows: Sequence[int]) -> tuple[list[int], list[int], list[int]]:
    """The rows that left no instruction of their own, those of unknown fate, and the others."""
    codes: list[int] = fates.kind[list(rows)].tolist()
    split: dict[str, list[int]] = {"gone": [], "unknown": [], "kept": []}
    for row, kind in zip(rows, (KINDS[code] for code in codes), strict=True):
        split["gone" if kind in _GONE else "unknown" if kind == "unknown" else "kept"].append(row)
    return split["gone"], split["unknown"], split["kept"]


def _kept(capture: Capture, graph: Graph, fates: Fates, rows: Sequence[int]) -> str:
    return joined(*(f"{_named(capture, graph, row)} is {fates[row]}." for row in rows if len(rows) <= _MOST))


def _gone(capture: Capture, graph: Graph, fates: Fates, gone: Sequence[int], count: int, what: str) -> str:
    if not gone:
        return f"Nothing {f'of {what} ' * bool(what)}was removed."
    if len(gone) <= _MOST:
        return joined(*(f"{_named(capture, graph, row)} was {_ending(fates[row])}." for row in gone))
    steps = Counter(_step(fates[row]) for row in gone)
    by = list_names([f"{step} {number:,}" for step, number in steps.most_common()])
    whole = f"{len(gone):,} of {count_text(count, 'equation')}{f' of {what}' * bool(what)}"
    return f"{whole} left no instruction as they were: {by}."


def _named(capture: Capture, graph: Graph, row: int) -> str:
    line = lines_of(capture, graph, [row])
    return graph.ops[int(graph.op[row])] + (f" on {line}" if line else "")


def _ending(fate: Fate) -> str:
    by = f" by {_step(fate)}" if fate.pass_name else ""
    return f"{fate.kind}{by}" + (f": {fate.why}" if fate.why else "")


def _step(fate: Fate) -> str:
    return _STEPS.get(fate.pass_name) or fate.step or "no pass that is known"
