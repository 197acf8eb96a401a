"""Everything that a page shows of a capture: its columns, computed in one straight line, and answers to questions.

A typed question is answered by finding the question meant, the objects it names, and the function that answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from explorer.analysis import array_questions as arrays
from explorer.analysis import equation_questions as equations
from explorer.analysis import kernel_questions as kernels
from explorer.analysis import program_questions as programs
from explorer.analysis.analysis import analyze
from explorer.analysis.graphs import NO_ENTRY, graph_of, has_entry
from explorer.analysis.question_catalogue import (
    HARDWARE,
    KINDS_OF_HARDWARE,
    LINE,
    QUESTIONS,
    SILENT,
    Match,
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
from explorer.model.graph import Graph, Node
from explorer.model.text import list_names

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
    "removed": lambda capture, intent: equations.removed(capture, intent.line, intent.operation),
    "printed": lambda capture, _: equations.printed(capture),
    "recompiled": lambda capture, _: equations.recompiled(capture),
    "precision": lambda capture, _: equations.precision(capture),
    "donated": lambda capture, _: arrays.donated(capture),
    "slow": lambda capture, intent: programs.slow(capture, intent.line),
    "remat": lambda capture, _: equations.remat(capture),
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
    """Return what remat of the derivative saves, measured by a compile, or why that trial failed.

    `static` if the function is gone or the program takes derivatives already.
    """
    if equations.takes_derivatives(capture) or not getattr(capture, "can_change", False):
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
    """Return the question that uses all words.

    Raises:
        UnknownNameError: No question does, or two do equally well.
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
    by_line = {"removed": equations.by_line(capture)}
    if has_code:
        by_line["machine"] = kernels.machine_by_line(capture)
    return {
        "questions": [
            [each.key, each.title, *map(" ".join, (each.words, each.hints, each.slots))] for each in QUESTIONS
        ],
        "answers": {key: plain(answer) for key, answer in _for_a_page(capture).items()},
        "operations": dict(names),
        "removed_ops": {
            op: plain(answer) for op, answer in equations.by_operation(capture, ops[:_MAX_OPERATIONS]).items()
        },
        "arguments": sorted(arrays.argument_words(capture)),
        "silent": " ".join(sorted(SILENT)),
        **{
            f"{key}_lines": [[file, line, *plain(answer)] for (file, line), answer in answers_.items()]
            for key, answers_ in by_line.items()
        },
    }


def _for_a_page(capture: Capture) -> dict[str, Answer]:
    """Return each question's answer, in their order, but for those that a running session gives."""
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
