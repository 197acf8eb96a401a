"""Everything that a page shows of a capture: its columns, computed in one straight line, and answers to questions.

A typed question is answered by finding the question meant, the objects it names, and the function that answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

from explorer.analysis import array_questions as arrays
from explorer.analysis import equation_questions as equations
from explorer.analysis import kernel_questions as kernels
from explorer.analysis.analysis import Analysis, analyze
from explorer.analysis.collectives import collectives
from explorer.analysis.facts import summary
from explorer.analysis.graphs import graph_of, placed
from explorer.analysis.hierarchy import nest
from explorer.analysis.pass_changes import pass_links
from explorer.analysis.question_catalogue import QUESTIONS, operation_in, operation_names, rank, words_of
from explorer.errors import ForeignNodeError, UnknownNameError
from explorer.model.answers import LIVE_ANSWERS, Answer, Question
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.results.estimates import Estimates

_LINE = re.compile(r"\blines?\s*(\d+)")


class Intent(NamedTuple):
    """Objects that a question names: an instruction, a line (0: none), an operation of the jaxpr."""

    text: str = ""
    node: int | None = None
    line: int = 0
    operation: str = ""


_ANSWERS: Mapping[str, Callable[[Capture, Intent], Answer]] = {
    "made": lambda capture, intent: kernels.made(capture, intent.node),
    "copies": lambda capture, _: kernels.copies(capture),
    "largest": lambda capture, _: arrays.largest(capture),
    "removed": lambda capture, intent: equations.removed(capture, intent.line, intent.operation),
    "printed": lambda capture, _: equations.printed(capture),
    "recompiled": lambda capture, _: equations.recompiled(capture),
    "precision": lambda capture, _: equations.precision(capture),
    "donated": lambda capture, _: arrays.donated(capture),
    "slow": lambda capture, _: kernels.slow(capture),
    "remat": lambda capture, _: equations.remat(capture),
    "unfused": lambda capture, _: kernels.unfused(capture),
    "materialised": lambda capture, _: arrays.materialised(capture),
    "gathered": lambda capture, _: arrays.gathered(capture),
    "sharded": lambda capture, intent: arrays.sharded(capture, intent.text, intent.node),
    "collectives": lambda capture, _: arrays.collectives(capture),
    "machine": lambda capture, intent: kernels.machine(capture, intent.line),
}


def answer_question(capture: Capture, question: str, node: Node | None = None) -> Answer:
    """Return the answer to a question in the user's own words; see `Capture.ask`."""
    graph, words = graph_of(capture, "hlo"), words_of(question)
    names, named = _operations(capture), _node_in(graph, question, node)
    own_names = [word for word in words if operation_in([word], names) or (graph is not None and word in graph)]
    own_names += [word for word in words if word in arrays.argument_words(capture)]
    key = _meant(question, rank(question, own_names)).key
    match = _LINE.search(question.lower())
    intent = Intent(question, named, int(match[1]) if match else 0, operation_in(words, names))
    answer = _ANSWERS[key](capture, intent)
    if key == "remat":
        return _tried(capture, answer)
    return (LIVE_ANSWERS[key](capture) if key in LIVE_ANSWERS else None) or answer


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


def _meant(text: str, ranked: Sequence[tuple[float, Question]]) -> Question:
    """Return the likeliest question.

    Raises:
        UnknownNameError: No question matches, or two match equally well.
    """
    __tracebackhide__ = True
    if ranked and (len(ranked) == 1 or ranked[0][0] > ranked[1][0]):
        return ranked[0][1]
    near = [question.title for _, question in ranked] or [question.title for question in QUESTIONS]
    raise UnknownNameError(
        f"{text!r} doesn't match a known question.\n  Hint: ask one of these:\n    " + "\n    ".join(near)
    )


def answers(capture: Capture) -> dict[str, Any]:
    """Return all that a page answers without a kernel, as plain data: questions, and answers by key."""
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
        "questions": [[each.key, each.title, list(each.words), list(each.hints)] for each in QUESTIONS],
        "answers": {key: plain(answer(capture, Intent())) for key, answer in _ANSWERS.items()},
        "operations": dict(names),
        "removed_ops": {
            op: plain(answer) for op, answer in equations.by_operation(capture, ops[:_MAX_OPERATIONS]).items()
        },
        "arguments": sorted(arrays.argument_words(capture)),
        **{
            f"{key}_lines": [[file, line, *plain(answer)] for (file, line), answer in answers_.items()]
            for key, answers_ in by_line.items()
        },
    }


_MAX_OPERATIONS = 64
_MAX_SELECTED = 500  # a selection of more nodes highlights nothing useful


def plain(answer: Answer) -> list[Any]:
    """Return an answer as the viewer reads it: text, certainty, stage, nodes, hint."""
    nodes = list(answer.nodes) if len(answer.nodes) <= _MAX_SELECTED else []
    return [answer.text, answer.certainty, answer.stage, nodes, answer.hint]


# Properties of a graph, each after those that it reads.
_OF_GRAPH = {"placed": placed, "hierarchy": nest}


def prepare(capture: Capture) -> Analysis:
    """Compute the columns that a page reads, and store them where the values' own properties would.

    Later, each property is a field: a view doesn't compute between two lines of a page.
    """
    analysis = analyze(capture)
    graphs = analysis.graphs
    analysis.settle(graphs)
    for graph in graphs.values():
        of_graph = vars(graph)
        for column, compute in _OF_GRAPH.items():
            if column not in of_graph:
                of_graph[column] = compute(graph)
    _ = analysis.of_coverage, analysis.of_single_iteration, analysis.limits
    if "hlo" not in graphs:
        return analysis
    _ = analysis.kernels, analysis.of_fates, analysis.lines, analysis.kernel_lines
    with suppress(Exception):  # the schedule of a damaged text can't be read
        _ = analysis.live_memory.buffers, analysis.live_memory.peak
    of_capture = vars(capture)
    if analysis.passes is not None and "links" not in vars(analysis.passes):
        vars(analysis.passes)["links"] = pass_links(analysis.passes)
    if "target" not in capture.environment:  # there are no figures of other hardware
        of_capture.setdefault("collectives", collectives(capture))
        of_capture.setdefault("estimates", Estimates())
    if "summary" not in of_capture:
        of_capture["summary"] = summary(capture)
    return analysis
