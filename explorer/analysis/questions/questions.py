"""From what a person types to an answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from explorer.analysis.questions.arrays import donated, largest, materialised
from explorer.analysis.questions.catalogue import QUESTIONS, operation_in, operation_names, rank, words_of
from explorer.analysis.questions.devices import argument_words, collectives, gathered, sharded
from explorer.analysis.questions.kernels import made, slow, unfused
from explorer.analysis.questions.machine import machine, machine_by_line
from explorer.analysis.questions.moved import copies
from explorer.analysis.questions.removed import by_line, by_operation, removed
from explorer.analysis.questions.reply import equations_of, optimised
from explorer.analysis.questions.run import precision, printed, recompiled, remat, takes_derivatives
from explorer.errors import ForeignNodeError, UnknownNameError
from explorer.model.answers import LIVE_ANSWERS, Answer, Question
from explorer.model.capture import Capture
from explorer.model.graph import Node

_LINE = re.compile(r"\blines?\s*(\d+)")
_ANSWERS: Mapping[str, Callable[[Capture], Answer]] = {
    "made": made,
    "copies": copies,
    "largest": largest,
    "removed": removed,
    "printed": printed,
    "recompiled": recompiled,
    "precision": precision,
    "donated": donated,
    "slow": slow,
    "remat": remat,
    "unfused": unfused,
    "materialised": materialised,
    "gathered": gathered,
    "sharded": sharded,
    "collectives": collectives,
    "machine": machine,
}
_BY_LINE = {"removed": by_line, "machine": machine_by_line}  # what a question says of a line, for each of them


def answer_question(capture: Capture, question: str, node: Node | None = None) -> Answer:
    """The answer to a question in a person's own words; see `Capture.ask`."""
    graph, equations = optimised(capture), equations_of(capture)
    names = operation_names(equations.ops if equations is not None else ())
    kernel = _node_in(capture, question, node)
    words = words_of(question)
    operation = operation_in(words, names)
    spoken = [word for word in words if operation_in([word], names) or (graph is not None and word in graph)]
    spoken += [word for word in words if word in argument_words(capture)]
    key = _meant(question, rank(question, spoken)).key
    if key == "made":
        return made(capture, kernel)
    match = _LINE.search(question.lower())
    line = int(match[1]) if match else 0
    if key == "removed":
        return removed(capture, line, operation)
    if key == "machine":
        return machine(capture, line)
    if key == "sharded":
        return sharded(capture, question, kernel)
    if key in ("recompiled", "remat"):
        return live(capture, key)
    return _ANSWERS[key](capture)


def live(capture: Capture, key: str) -> Answer:
    """The answer to what a capture alone doesn't know: with what runs beside it where something does."""
    static = _ANSWERS[key](capture)
    if key == "remat":
        return _tried(capture, static)
    return (LIVE_ANSWERS[key](capture) if key in LIVE_ANSWERS else None) or static


def _tried(capture: Capture, static: Answer) -> Answer:
    """What `remat` brings, from a real compilation of the derivative, where the function can be compiled once more."""
    if takes_derivatives(capture) or not getattr(capture, "can_change", False):
        return static
    try:
        tried = capture.what_if(remat=True, grad=True, time=False)
    except Exception as error:  # no scalar result, or a function that is gone
        return replace(static, text=f"It could not be tried: {str(error).strip().splitlines()[0]}")
    row = tried.variants[0]
    if row.error:
        return replace(static, text=f"It could not be tried: {row.error}")
    return replace(static, text=f"In its derivative, remat {row.verdict(tried.plain)}.", certainty="exact")


def _node_in(capture: Capture, question: str, node: Node | None) -> int | None:
    """The instruction that is given or named."""
    graph = optimised(capture)
    if node is not None:
        if graph is None or node.graph is not graph:
            raise ForeignNodeError(f"{node.name} is no node of this capture's hlo stage.")
        return node.index
    named = [word.strip("?,;:()'\"`") for word in question.split()]
    return next((graph[name].index for name in named if graph is not None and name in graph), None)


def _meant(text: str, ranked: Sequence[tuple[float, Question]]) -> Question:
    """The likeliest question.

    Raises:
        UnknownNameError: None is like it, or two are as likely.
    """
    __tracebackhide__ = True
    if ranked and (len(ranked) == 1 or ranked[0][0] > ranked[1][0]):
        return ranked[0][1]
    near = [question.title for _, question in ranked] or [question.title for question in QUESTIONS]
    raise UnknownNameError(
        f"{text!r} is none of the questions that are answered.\n  Hint: ask one of these:\n    " + "\n    ".join(near)
    )


def answers(capture: Capture) -> dict[str, Any]:
    """Everything that a page answers without a kernel, as plain data: the questions, and the answers by key."""
    if capture.failure or not capture.stages:
        return {}
    equations = equations_of(capture)
    names = operation_names(equations.ops if equations is not None else ())
    ops = sorted(set(names.values()))
    return {
        "questions": [[each.key, each.title, list(each.words), list(each.hints)] for each in QUESTIONS],
        "answers": {key: plain(answer(capture)) for key, answer in _ANSWERS.items()},
        "operations": dict(names),
        "removed_ops": {op: plain(answer) for op, answer in by_operation(capture, ops[:_MOST]).items()},
        "arguments": sorted(argument_words(capture)),
        **{
            f"{key}_lines": [[file, line, *plain(answer)] for (file, line), answer in answers_of(capture).items()]
            for key, answers_of in _BY_LINE.items()
            if key != "machine" or capture.has_machine_code
        },
    }


_MOST = 64  # operations
_MOST_SELECTED = 500  # nodes: more are lit by nobody


def plain(answer: Answer) -> list[Any]:
    """As the viewer reads it: text, certainty, stage, nodes, hint."""
    nodes = list(answer.nodes) if len(answer.nodes) <= _MOST_SELECTED else []
    return [answer.text, answer.certainty, answer.stage, nodes, answer.hint]
