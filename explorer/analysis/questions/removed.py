"""What became of the equations of a line, or of one operation: which pass took them away."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from explorer.analysis.facts.lines import line_text, lines_of
from explorer.analysis.questions.reply import UNRECORDED, equations_of, optimised, reply
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
    rows: list[int] = np.flatnonzero(graph.is_equation).tolist()
    if line:
        own = set(graph.attribution.nodes(file or capture.file, line).tolist())
        rows = [row for row in rows if row in own]
    if op:
        rows = [row for row in rows if graph.ops[int(graph.op[row])] == op]
    where = line_text(capture, file or capture.file, line) if line else ""
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
    gone = [row for row in rows if KINDS[int(fates.kind[row])] in _GONE]
    open_ = [row for row in rows if KINDS[int(fates.kind[row])] == "unknown"]
    is_inferred = any(bool(fates.inferred[row]) for row in gone)
    certainty = "unknown" if open_ and not gone else "inferred" if is_inferred else "exact"
    hint = "" if capture.has_passes or not open_ else UNRECORDED
    parts = [_gone(capture, graph, fates, gone, len(rows), what)]
    if open_:
        parts.append(f"What became of {len(open_):,} is not known.")
    kept = [row for row in rows if row not in {*gone, *open_}]
    if what and kept and len(kept) <= _MOST:
        parts.append(" ".join(f"{_named(capture, graph, row)} is {fates[row]}." for row in kept))
    return reply("removed", " ".join(filter(None, parts)), certainty, "jaxpr", gone or rows, hint)


def _gone(capture: Capture, graph: Graph, fates: Fates, gone: Sequence[int], count: int, what: str) -> str:
    of = f" {what}" if what else ""
    if not gone:
        return f"Nothing{f' of{of}' if of else ''} was removed."
    whole = f"{len(gone):,} of {count_text(count, 'equation')}"
    if len(gone) > _MOST:
        steps = Counter(_step(fates[row]) for row in gone)
        by = list_names([f"{step} {number:,}" for step, number in steps.most_common()])
        return f"{whole}{f' of{of}' if of else ''} left no instruction as they were: {by}."
    return " ".join(f"{_named(capture, graph, row)} was {_ending(fates[row])}." for row in gone)


def _named(capture: Capture, graph: Graph, row: int) -> str:
    line = lines_of(capture, graph, [row])
    return graph.ops[int(graph.op[row])] + (f" on {line}" if line else "")


def _ending(fate: Fate) -> str:
    by = f" by {_step(fate)}" if fate.pass_name else ""
    return f"{fate.kind}{by}" + (f": {fate.why}" if fate.why else "")


def _step(fate: Fate) -> str:
    return _STEPS.get(fate.pass_name) or fate.step or "no pass that is known"
