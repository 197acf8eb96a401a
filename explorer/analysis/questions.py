"""Everything that a page shows of a capture: its columns, computed in one straight line, and answers to questions.

A typed question is answered by finding the question meant, the objects it names, and the function that answers. The
answers to what happened to each equation are here too: a page has those of all lines and operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from explorer.analysis import array_questions as arrays
from explorer.analysis import kernel_questions as kernels
from explorer.analysis import program_questions as programs
from explorer.analysis.analysis import analyze
from explorer.analysis.facts import line_text, lines_of
from explorer.analysis.graphs import NO_ENTRY, graph_of, has_entry
from explorer.analysis.question_catalogue import (
    HARDWARE,
    KINDS_OF_HARDWARE,
    LINE,
    QUESTIONS,
    SILENT,
    Match,
    joined,
    meant,
    operation_in,
    operation_names,
    passes_hint,
    rank,
    reply,
    words_of,
)
from explorer.errors import ForeignNodeError, UnknownNameError
from explorer.model.answers import LIVE_ANSWERS, Answer, Question
from explorer.model.capture import Capture
from explorer.model.fates import KINDS, Fate, Fates
from explorer.model.graph import Graph, Node
from explorer.model.text import list_names
from explorer.model.units import count_text

_HARDWARE_WORDS = HARDWARE | KINDS_OF_HARDWARE.keys()


class Intent(NamedTuple):
    """Objects that a question names: an instruction, a line (0: none), an operation of the jaxpr, another name."""

    text: str = ""
    node: int | None = None
    line: int = 0
    operation: str = ""
    name: str = ""


_ANSWERS: Mapping[str, Callable[[Capture, Intent], Answer]] = {
    "made": lambda capture, intent: kernels.made(capture, intent.node),
    "copies": lambda capture, _: kernels.copies(capture),
    "largest": lambda capture, _: arrays.largest(capture),
    "removed": lambda capture, intent: removed(capture, intent.line, intent.operation),
    "printed": lambda capture, _: programs.printed(capture),
    "recompiled": lambda capture, _: programs.recompiled(capture),
    "precision": lambda capture, _: programs.precision(capture),
    "donated": lambda capture, _: arrays.donated(capture),
    "slow": lambda capture, intent: programs.slow(capture, intent.line),
    "remat": lambda capture, _: programs.remat(capture),
    "unfused": lambda capture, _: kernels.unfused(capture),
    "materialised": lambda capture, _: arrays.materialised(capture),
    "gathered": lambda capture, _: arrays.gathered(capture),
    "sharded": lambda capture, intent: arrays.sharded(capture, intent.text, intent.node),
    "collectives": lambda capture, _: arrays.collectives(capture),
    "machine": lambda capture, intent: kernels.machine(capture, intent.line),
    "hardware": lambda capture, intent: programs.hardware(capture, intent.name),
    "duration": lambda capture, _: programs.duration(capture),
    "compiling": lambda capture, _: programs.compiling(capture),
    "totals": lambda capture, intent: programs.totals(capture, intent.line),
    "counts": lambda capture, _: programs.counts(capture),
    "constants": lambda capture, _: programs.constants(capture),
    "passes": lambda capture, intent: programs.passes(capture, intent.name),
    "loops": lambda capture, _: programs.loops(capture),
    "outside": lambda capture, _: programs.outside(capture),
    "bound": lambda capture, _: programs.bound(programs.totals(capture)),
    "shapes": lambda capture, _: programs.shapes(capture),
    "casts": lambda capture, _: programs.casts(capture),
    "pitfalls": lambda capture, _: programs.pitfalls(capture),
    "faster": lambda capture, _: programs.faster(programs.slow(capture)),
}


# Answers about what runs, which a text without an entry computation doesn't tell.
_OF_WHAT_RUNS = frozenset(
    [
        *("made", "copies", "largest", "donated", "slow", "unfused", "materialised", "gathered", "sharded"),
        *("collectives", "hardware", "totals", "counts", "loops", "outside", "bound", "shapes", "faster"),
    ]
)


def _answer(capture: Capture, key: str, intent: Intent) -> Answer:
    graph = graph_of(capture, "hlo")
    if key in _OF_WHAT_RUNS and graph is not None and not has_entry(graph):
        return reply(key, f"{NO_ENTRY[:1].upper()}{NO_ENTRY[1:]}.", "unknown")
    return _ANSWERS[key](capture, intent)


def answer_question(capture: Capture, question: str, node: Node | None = None) -> Answer:
    """Return the answer to a question in the user's own words; see `Capture.ask`."""
    question = question.partition(" (say")[0]  # as titles end
    graph, words = graph_of(capture, "hlo"), words_of(question)
    operations, names = _operations(capture), _names(capture)
    key = _meant(question, rank(question, lambda word: word in names or bool(operation_in([word], operations)))).key
    match = LINE.search(question.lower())
    name = next((word for word in words if word in names or word in _HARDWARE_WORDS), "")
    line = int(match[1]) if match else 0
    intent = Intent(question, _node_in(graph, question, node), line, operation_in(words, operations), name)
    answer = _answer(capture, key, intent)
    if capture.read_passes is not None and (hint := passes_hint(capture)) and hint in answer.hint:
        _ = capture.passes
        answer = _answer(capture, key, intent)
    if key == "remat":
        answer = _tried(capture, answer)
    answer = (LIVE_ANSWERS[key](capture) if key in LIVE_ANSWERS else None) or answer
    return replace(answer, question=f"{answer.question.split(' (say')[0]} ({match[0]})") if match else answer


def _names(capture: Capture) -> set[str]:
    """Return the names, in lower case, of instructions, arguments and passes."""
    graph = graph_of(capture, "hlo")
    names = {name.lower() for name in graph.names} if graph is not None else set[str]()
    steps = {step.name for step in capture.passes} if capture.has_passes else set[str]()
    return names | steps | arrays.argument_words(capture)


def _operations(capture: Capture) -> Mapping[str, str]:
    graph = graph_of(capture, "jaxpr")
    return operation_names(graph.ops if graph is not None else ())


def _tried(capture: Capture, static: Answer) -> Answer:
    """Return an answer: what remat of the derivative saves, measured by a compile, or why that trial failed.

    `static` if the function is gone or the program takes derivatives already.
    """
    if programs.takes_derivatives(capture) or not getattr(capture, "can_change", False):
        return static
    try:
        tried = capture.what_if(remat=True, grad=True, time=False)
    except Exception as error:  # the result is no scalar, or the function no longer exists
        return replace(static, text=f"It could not be tried: {str(error).strip().splitlines()[0]}")
    row = tried.variants[0]
    if row.error:
        return replace(static, text=f"It could not be tried: {row.error}")
    return replace(static, text=f"In its derivative, remat {row.verdict(tried.plain)}.", certainty="exact")


def _node_in(graph: Graph | None, question: str, node: Node | None) -> int | None:
    if node is not None:
        if graph is None or node.graph is not graph:
            raise ForeignNodeError(f"{node.name} is no node of this capture's hlo stage.")
        return node.index
    named = [word.strip("?,;:()'\"`") for word in question.split()]
    return next((graph[name].index for name in named if graph is not None and name in graph), None)


def _meant(text: str, matches: Sequence[Match]) -> Question:
    """Return the question that uses all words of `text`; of several, the one with the best score.

    Raises:
        UnknownNameError: No question uses all words, or two share the best score.
    """
    __tracebackhide__ = True
    if (question := meant(matches)) is not None:
        return question
    unused = (
        f": no question uses {list_names([*map(repr, matches[0].unused)])}" if matches and matches[0].unused else ""
    )
    near = [match.question.title for match in matches[:_MAX_OFFERED]] or [question.title for question in QUESTIONS]
    raise UnknownNameError(
        f"{text!r} doesn't match a known question{unused}.\n  Hint: ask one of these:\n    " + "\n    ".join(near)
    )


_MAX_OFFERED = 4


def answers(capture: Capture) -> dict[str, Any]:
    """Return all that a page answers without a kernel, as plain data: questions, and answers by key.

    Empty after a failed compile, or without stages.
    """
    if capture.failure or not capture.stages:
        return {}
    names = _operations(capture)
    ops = sorted(set(names.values()))
    # Both are of the model, which the answers enter seldom.
    _, has_code = analyze(capture).findings, capture.has_machine_code
    of_lines = {"removed": by_line(capture)}
    if has_code:
        of_lines["machine"] = kernels.machine_by_line(capture)
    return {
        "questions": [
            [each.key, each.title, *map(" ".join, (each.words, each.hints, each.slots))] for each in QUESTIONS
        ],
        "answers": {key: plain(answer) for key, answer in _for_a_page(capture).items()},
        "operations": dict(names),
        "removed_ops": {op: plain(answer) for op, answer in by_operation(capture, ops[:_MAX_OPERATIONS]).items()},
        "arguments": sorted(arrays.argument_words(capture)),
        "silent": " ".join(sorted(SILENT)),
        **{
            f"{key}_lines": [[file, line, *plain(answer)] for (file, line), answer in answers_.items()]
            for key, answers_ in of_lines.items()
        },
    }


def _for_a_page(capture: Capture) -> dict[str, Answer]:
    """Return the answer to each question by key, in order; a placeholder where only a running session can answer."""
    others = {*_OF_A_SESSION, "bound", "faster"}
    given = {key: _answer(capture, key, Intent()) for key in _ANSWERS if key not in others}
    given |= {key: reply(key, "Only a running notebook answers that.", "unknown") for key in _OF_A_SESSION}
    given["bound"], given["faster"] = programs.bound(given["totals"]), programs.faster(given["slow"])
    return {key: given[key] for key in _ANSWERS}


_OF_A_SESSION = ("hardware", "duration", "compiling", "passes")
_MAX_OPERATIONS = 64
_MAX_SELECTED = 500  # a selection of more nodes highlights nothing useful


def plain(answer: Answer) -> list[Any]:
    """Return an answer as the viewer reads it: text, certainty, stage, nodes (none if over 500), hint."""
    nodes = list(answer.nodes) if len(answer.nodes) <= _MAX_SELECTED else []
    return [answer.text, answer.certainty, answer.stage, nodes, answer.hint]


_GONE = ("eliminated", "merged", "folded", "rewritten")
_MAX_NAMED = 4  # equations with a sentence each in an answer
_MAX_LINES = 400  # lines with an answer in a page
_STEPS = {"import": "XLA's import", "lowering": "JAX's lowering"}


@dataclass(frozen=True)
class _Equations:
    """The equations of a capture with an optimized program. Sentences are cached: a page reads many answers."""

    capture: Capture
    graph: Graph
    fates: Fates
    sentences: dict[int, str]

    @classmethod
    def of(cls, capture: Capture) -> _Equations | None:
        graph = graph_of(capture, "jaxpr")
        if graph is None or graph_of(capture, "hlo") is None:
            return None
        analysis = analyze(capture)
        return cls(capture, graph, analysis.of_fates["jaxpr"], analysis.sentences)

    def choose(self, line: int = 0, op: str = "", file: str = "") -> _Chosen:
        """Return the equations of a line (0: all) and an operation (empty: all), by what happened to them."""
        graph, attribution = self.graph, self.graph.attribution
        chosen = np.arange(len(graph.names))
        if line:
            code = attribution.codes.get((file, line), -1)
            start, end = attribution.start[code : code + 2].tolist() if code >= 0 else (0, 0)
            chosen = attribution.node[start:end]
        chosen = chosen[graph.is_equation[chosen]]
        if op:
            chosen = chosen[np.asarray([name == op for name in graph.ops], bool)[graph.op[chosen]]]
        where = line_text(self.capture, file, line) if line else ""
        what = " of ".join(filter(None, (op, where)))
        gone, lost, kept = list[int](), list[int](), list[int]()
        codes: list[int] = self.fates.kind[chosen].tolist()
        for row, code in zip(chosen.tolist(), codes, strict=True):
            kind = KINDS[code]
            (gone if kind in _GONE else lost if kind == "unknown" else kept).append(row)
        named = gone if len(gone) <= _MAX_NAMED else []
        return _Chosen(what, chosen.tolist(), gone, lost, named, kept if what and len(kept) <= _MAX_NAMED else [])

    def describe(self, several: Sequence[_Chosen]) -> None:
        """Add to `sentences`, by row, those that some answers need and that are missing."""
        named = dict.fromkeys(row for chosen in several for row in (*chosen.named, *chosen.kept))
        rows = [row for row in named if row not in self.sentences]
        fates = [*map(self.fates.__getitem__, rows)]
        for row, fate, shown in zip(rows, fates, [*map(repr, fates)], strict=True):
            became = f"was {_ending(fate)}" if fate.kind in _GONE else f"is {shown}"
            line = lines_of(self.capture, self.graph, [row])
            name = self.graph.ops[int(self.graph.op[row])]
            self.sentences[row] = f"{name}{' on ' * bool(line)}{line} {became}."


class _Chosen(NamedTuple):
    """Equations that a question is about."""

    what: str  # the operation and the line, in words; empty for all equations
    rows: list[int]
    gone: list[int]  # no instruction any more
    lost: list[int]  # of unknown fate
    named: list[int]  # of `gone`, those with a sentence each
    kept: list[int]  # those that remain and have a sentence each


def removed(capture: Capture, line: int = 0, op: str = "", file: str = "") -> Answer:
    """Return an answer: what happened to the equations of a line (0: all) and an operation (empty: all).

    The line is of `file`, by default the function's own.
    """
    equations = _Equations.of(capture)
    if equations is None:
        return reply("removed", "It is unknown what happened to the equations: a stage is missing.", "unknown")
    chosen = equations.choose(line, op, file or capture.file)
    equations.describe([chosen])
    return _removed(equations, chosen)


def by_operation(capture: Capture, ops: Sequence[str]) -> Mapping[str, Answer]:
    equations = _Equations.of(capture)
    if equations is None:
        return {op: removed(capture) for op in ops}
    chosen = {op: equations.choose(op=op) for op in ops}
    equations.describe([*chosen.values()])
    return {op: _removed(equations, of_op) for op, of_op in chosen.items()}


def by_line(capture: Capture) -> Mapping[tuple[str, int], Answer]:
    equations = _Equations.of(capture)
    if equations is None:
        return {}
    attribution = equations.graph.attribution
    places = [place for place, count in zip(attribution.places, np.diff(attribution.start), strict=True) if count]
    places.sort(key=lambda place: (place.file != capture.file, place.file, place.line))
    chosen = {(at.file, at.line): equations.choose(at.line, file=at.file) for at in places[:_MAX_LINES]}
    equations.describe([*chosen.values()])
    return {place: _removed(equations, of_place) for place, of_place in chosen.items()}


def _removed(equations: _Equations, chosen: _Chosen) -> Answer:
    what, rows, gone, lost, _, kept = chosen
    if not rows:
        return reply("removed", f"There is no equation {f'of {what}' if what else 'at all'}.")
    text = joined(
        _gone(equations, chosen),
        f"What happened to {len(lost):,} is unknown." * bool(lost),
        *[equations.sentences[row] for row in kept],
    )
    certainty = "inferred" if equations.fates.inferred[gone].any() else "exact"
    if lost and not gone:
        certainty = "unknown"
    hint = passes_hint(equations.capture) if lost else ""
    return reply("removed", text, certainty, "jaxpr", gone or rows, hint)


def _gone(equations: _Equations, chosen: _Chosen) -> str:
    what, gone, count = chosen.what, chosen.gone, len(chosen.rows)
    if not gone:
        return f"Nothing {f'of {what} ' * bool(what)}was removed."
    if chosen.named:
        return joined(*map(equations.sentences.__getitem__, chosen.named))
    steps = Counter(_step(equations.fates[row]) for row in gone)
    by = list_names([f"{step} {number:,}" for step, number in steps.most_common()])
    whole = f"{len(gone):,} of {count_text(count, 'equation')}{f' of {what}' * bool(what)}"
    return f"{whole} were changed or removed: {by}."


def _ending(fate: Fate) -> str:
    by = f" by {_step(fate)}" if fate.pass_name else ""
    return f"{fate.kind}{by}" + (f": {fate.why}" if fate.why else "")


def _step(fate: Fate) -> str:
    return _STEPS.get(fate.pass_name) or fate.step or "an unknown pass"
