"""What several devices have and send each other: how values are split, what is gathered, what costs most."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from explorer.analysis.collectives.collectives import group_text
from explorer.analysis.questions.reply import agree, joined, optimised, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.results.estimates import Collective
from explorer.model.text import list_names
from explorer.model.units import bytes_text, count_text, share_text

_SHOWN = 3
_NO_PROGRAM = "There is no optimised program in this capture."
_RULES = ("EX033", "EX034", "EX035", "EX036", "EX037")


def gathered(capture: Capture) -> Answer:
    """What an all-gather makes whole, for which lines, and which of it is a mistake."""
    if optimised(capture) is None:
        return reply("gathered", _NO_PROGRAM, "unknown")
    rows = [row for row in capture.collectives if row.kind == "all-gather"]
    mistakes = _mistakes(capture)
    if not rows:
        return reply("gathered", joined("Nothing is gathered: there is no all-gather in the program.", mistakes))
    whole = list_names([f"{_named(row)} (each device sends {bytes_text(row.wire)})" for row in rows[:_SHOWN]])
    more = f" and {len(rows) - _SHOWN} more" if len(rows) > _SHOWN else ""
    text = f"{count_text(len(rows), 'array')} {agree(rows, 'is', 'are')} gathered: {whole}{more}."
    hint = "explorer.lint(f, x) tries what would cure it." if mistakes else ""
    return reply("gathered", joined(text, mistakes), "exact", "hlo", sorted(row.node.index for row in rows), hint)


def _mistakes(capture: Capture) -> str:
    """What the rules of sharded programs say of its lines."""
    findings = [finding for finding in capture.findings if finding.code in _RULES and finding.line]
    return joined(*(f"Line {finding.line}: {finding.message}." for finding in findings[:_SHOWN]))


def collectives(capture: Capture) -> Answer:
    """Those that send most; nobody measured what they take."""
    if optimised(capture) is None:
        return reply("collectives", _NO_PROGRAM, "unknown")
    rows = sorted(capture.collectives, key=lambda row: -row.wire * row.runs)
    if not rows:
        return reply("collectives", "There are none: its devices send each other nothing.")
    whole = sum(row.wire * row.runs for row in rows) or 1.0
    parts = [
        f"{_named(row)} sends {bytes_text(row.wire * row.runs)} ({share_text(row.wire * row.runs / whole)})"
        for row in rows[:_SHOWN]
    ]
    more = f", and {len(rows) - _SHOWN} more the rest" if len(rows) > _SHOWN else ""
    waits = sum(not row.overlaps for row in rows)
    text = f"By what each device sends: {'; '.join(parts)}{more}. {waits:,} of {len(rows):,} run beside no kernel."
    return reply("collectives", text, "inferred", "hlo", [row.node.index for row in rows], "No time was measured.")


def _named(row: Collective) -> str:
    """`all-reduce along model for line 14`."""
    along = ", ".join(row.axes) or group_text(row.groups)
    return f"{row.kind} along {along}{f' for line {row.line}' if row.line else ''}"


def sharded(capture: Capture, question: str = "", node: int | None = None) -> Answer:
    """How a value lies on the devices; of the arguments where none is named.

    Args:
        capture: Any.
        question: That names an argument or an instruction, or neither.
        node: The instruction that is meant, where the question names none.
    """
    if (graph := optimised(capture)) is None:
        return reply("sharded", _NO_PROGRAM, "unknown")
    shardings = capture.shardings
    if shardings.mesh.count == 1:
        return reply("sharded", "It is a program of one device, which has all of it.")
    arguments = entry_parameters(graph)
    chosen = _meant(question, arguments, graph)
    if chosen is None and node is not None:
        chosen = Node(graph, node)
    meant = arguments[:_SHOWN] if chosen is None else [chosen]
    texts = [
        f"{_value_name(each)} is {', '.join(shardings.of(each)[:_SHOWN])}: {shardings.way_of(each.index)}"
        for each in meant
    ]
    sizes = zip(shardings.mesh.names, shardings.mesh.sizes, strict=True)
    mesh = " × ".join(f"{name} {size}" for name, size in sizes)
    left = len(arguments) - _SHOWN if chosen is None else 0
    more = f" and {count_text(left, 'argument')} more" if left > 0 else ""
    text = f"On {shardings.mesh.count} devices ({mesh}) {'; '.join(texts)}{more}."
    return reply("sharded", text, "exact", "hlo", sorted(each.index for each in meant))


def _value_name(node: Node) -> str:
    return node.scope if node.op == "parameter" and node.scope else node.name


def entry_parameters(graph: Graph) -> Sequence[Node]:
    """The arguments of the program, in their order."""
    is_parameter = np.asarray([op == "parameter" for op in graph.ops], bool)[graph.op]
    is_entry = np.asarray([*(group.kind == "entry" for group in graph.groups), False])[graph.group]  # -1: the last one
    rows = np.flatnonzero(is_parameter & is_entry)
    in_order = rows[np.argsort(graph.parameter_number[rows], kind="stable")]
    return [Node(graph, row) for row in in_order.tolist()]


def argument_words(capture: Capture) -> set[str]:
    """The words of its arguments' names, which a question may have."""
    graph = optimised(capture)
    scopes = [node.scope for node in entry_parameters(graph)] if graph is not None else []
    return {word.lower() for scope in scopes for word in re.findall(r"\w+", scope)}


def _meant(question: str, arguments: Sequence[Node], graph: Graph) -> Node | None:
    """The argument whose name or last key a question has, or the instruction that it names."""
    words = re.findall(r"[\w.-]+", question.lower())
    for node in sorted(arguments, key=lambda node: -len(node.scope)):
        keys = re.findall(r"\w+", node.scope.lower())
        if node.scope and (node.scope.lower() in question.lower().split() or (keys and keys[-1] in words)):
            return node
    return next((graph[word.strip(".")] for word in words if word.strip(".") in graph), None)
