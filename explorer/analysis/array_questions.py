"""Answers about arrays: largest buffers, masks, donation, shardings, and collectives."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from explorer.analysis.analysis import analyze
from explorer.analysis.collectives import group_text
from explorer.analysis.facts import lines_of
from explorer.analysis.graphs import device_count, entry_parameters, entry_rows, graph_of, slice_count
from explorer.analysis.question_catalogue import agree, joined, no_program, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.live_memory import Buffer, LiveMemory
from explorer.model.results.estimates import Collective
from explorer.model.text import list_names, root_of
from explorer.model.types import parse_type
from explorer.model.units import bytes_text, count_text, share_text

_MIN_SIZE = 8  # dimensions of a mask or an N×N array are at least this large
_WHOSE = {"argument": "an argument", "donated": "a donated argument", "constant": "a constant of the program"}
_NO_DONATION = "No argument is donated."
_UNREADABLE = "The order of its instructions is unknown, and so are its buffers."


def _memory(capture: Capture) -> LiveMemory | None:
    try:
        return analyze(capture).live_memory if graph_of(capture, "hlo") is not None else None
    except Exception:  # the schedule of a damaged text can't be read
        return None


def largest(capture: Capture) -> Answer:
    """Return an answer: the largest buffer, the largest that the program computes, and the peak of a scheduled program.

    Its certainty is `unknown` if the buffers can't be read.
    """
    live = _memory(capture)
    if live is None or not live.buffers:
        return reply("largest", _UNREADABLE if live is None else "There are no buffers.", "unknown")
    buffers = _by_size(live)
    own = next((buffer for buffer in buffers if buffer.kind not in _WHOSE), buffers[0])
    top, of_top, of_own, peak = buffers[0], bytes_text(buffers[0].bytes), bytes_text(own.bytes), bytes_text(live.peak)
    text = f"{_described(capture, top, of_top)}."
    nodes = {top.node.index, own.node.index}
    if own is not top:
        text += f" Largest computed buffer: {_described(capture, own, of_own)}."
    if live.is_scheduled:
        text += f" Memory peaks at {peak}."
    return reply("largest", text, "exact", "hlo", sorted(nodes))


def _by_size(live: LiveMemory) -> list[Buffer]:
    buffers = live.buffers
    return [buffers[row] for row in sorted(range(len(buffers)), key=lambda row: (-int(live.size[row]), row))]


def _described(capture: Capture, buffer: Buffer, size: str) -> str:
    what, graph, node = f"{buffer.type} of {size}", buffer.node.graph, buffer.node.index
    if buffer.kind in _WHOSE:
        name = _label(graph, node)
        return f"{what} is {_WHOSE[buffer.kind]}, {name}" if buffer.kind != "constant" else f"{what} is a constant"
    line = lines_of(capture, graph, [node])
    return f"{what} is made by {graph.names[node]}" + (f" on {line}" if line else ", without a known line")


def materialised(capture: Capture) -> Answer:
    """Return an answer: the first mask and the first N×N array in memory, or that the program makes none in memory."""
    live = _memory(capture)
    if live is None:
        return reply("materialised", _UNREADABLE, "unknown")
    made = [buffer for buffer in _by_size(live) if buffer.kind not in _WHOSE]
    masks = [buffer for buffer in made if _is_mask(buffer.type)]
    squares = [buffer for buffer in made if _is_square(buffer.type) and buffer not in masks]
    about_squares = "" if masks else "The program makes no N×N array in memory."
    if squares:
        size, counted = bytes_text(squares[0].bytes), count_text(len(squares), "N×N array")
        is_are = agree(squares, "is", "are")
        about_squares = f"{counted} {is_are} in memory: {_described(capture, squares[0], size)}."
    text = joined(_masks(capture, masks, live), about_squares)
    # Without such a buffer, highlight the kernels that have one inside.
    nodes = sorted({buffer.node.index for buffer in (*masks, *squares)} or _inside(capture.hlo.graph))
    return reply("materialised", text, "exact", "hlo", nodes)


def _masks(capture: Capture, masks: Sequence[Buffer], live: LiveMemory) -> str:
    if masks:
        more = f", and {len(masks) - 1:,} more" if masks[1:] else ""
        return f"Yes: the mask {_described(capture, masks[0], bytes_text(masks[0].bytes))}{more}."
    arguments = [buffer for buffer in live.buffers if buffer.kind in _WHOSE and _is_mask(buffer.type)]
    if arguments:
        whose = f"The mask is {_WHOSE[arguments[0].kind]}: {arguments[0].type}"
        return f"{whose}; the program makes no other mask in memory."
    equations = graph_of(capture, "jaxpr")
    has_masks = equations is not None and any(map(_is_mask, equations.types))
    if not has_masks:
        return ""
    inside = any(map(_is_mask, capture.hlo.graph.types))
    # An additive mask is an array of floats, which nothing tells from others.
    if inside:
        return "No boolean mask is in memory: it exists inside kernels only."
    return "No boolean mask is left in the program."


def _inside(graph: Graph) -> set[int]:
    codes = {code for code, type_ in enumerate(graph.types) if _is_mask(type_) or _is_square(type_)}
    rows = [row for row, code in enumerate(graph.type.tolist()) if code in codes]
    return {int(graph.kernel[row]) for row in rows if graph.kernel[row] >= 0}


def _is_mask(type_: str) -> bool:
    return any(
        array.dtype in ("pred", "bool", "i1") and len(_large(array.dims)) >= 2 for array in parse_type(type_).arrays
    )


def _is_square(type_: str) -> bool:
    """Return True if an array of the type has equal neighbors among its large dimensions, small ones skipped."""
    arrays = (_large(array.dims) for array in parse_type(type_).arrays)
    return any(one == next_ for dims in arrays for one, next_ in pairwise(dims))


def _large(dims: Sequence[str]) -> list[str]:
    return [dim for dim in dims if not dim.isdigit() or int(dim) >= _MIN_SIZE]


def donated(capture: Capture) -> Answer:
    """Return an answer: the donated arguments, the bytes of them that results reuse, and arguments that could be."""
    live = _memory(capture)
    if live is None:
        return reply("donated", _UNREADABLE, "unknown")
    given = [buffer for buffer in live.buffers if buffer.kind == "donated"]
    refused = [f"{finding.message}." for finding in analyze(capture).findings if finding.rule == "unusable-donation"]
    could = [donation.argument for donation in live.donations]
    over = sum([buffer.bytes for buffer in live.buffers if buffer.kind == "aliased"])
    sentences = [_given(given, over), *refused]
    if not any(sentences):
        none = _NO_DONATION if graph_of(capture, "jaxpr") is not None else "No result is written over an argument."
        sentences = [none, *["None could be: no result is a new value of one."] * (not could)]
    if could:
        sentences.append(_could(live))
    nodes = [buffer.node for buffer in given] or could
    first = root_of(_scope(could[0].graph, could[0].index)) if could else ""
    hint = f"jax.jit(f, donate_argnames={first!r})" if could else ""
    return reply("donated", joined(*sentences), "exact", "hlo", sorted(node.index for node in nodes), hint)


def _could(live: LiveMemory) -> str:
    could = [_label(donation.argument.graph, donation.argument.index) for donation in live.donations]
    size, names = bytes_text(sum([donation.bytes for donation in live.donations])), list_names(could)
    of = agree(could, "a result has its shape and dtype", "results have the same shapes and dtypes")
    return f"{names} of {size} could be: {of}."


def _given(given: Sequence[Buffer], over: int) -> str:
    """Return a sentence on donated arguments, `given`, and the bytes `over` that results reuse; empty without any."""
    if not given:
        return ""
    labels = [_label(buffer.node.graph, buffer.node.index) for buffer in given]
    size, names = bytes_text(sum([buffer.bytes for buffer in given])), list_names(labels)
    are = agree(given, "is", "are")
    if not over:  # XLA may use a donor's memory in between, which isn't reuse by a result
        return f"Yes: {names} of {size} {are} donated, but no result is written over {agree(given, 'it', 'them')}."
    return f"Yes: {names} {are} donated, and results are written over {bytes_text(over)} of it."


def _scope(graph: Graph, node: int) -> str:
    return graph.scopes[int(graph.scope[node])]


def _label(graph: Graph, node: int) -> str:
    """Return the user's name of an argument, else the name of the node."""
    return _scope(graph, node) or graph.names[node]


_MAX_SHOWN = 3
_RULES = ("EX033", "EX034", "EX035", "EX036", "EX037")


def gathered(capture: Capture) -> Answer:
    """Return an answer: which arrays all-gathers make whole, for which lines, and what the lint rules found."""
    if graph_of(capture, "hlo") is None:
        return no_program("gathered")
    rows = [row for row in capture.collectives.rows if row.kind == "all-gather"]
    findings = [finding for finding in analyze(capture).findings if finding.code in _RULES and finding.line]
    mistakes = joined(*(f"Line {finding.line}: {finding.message}." for finding in findings[:_MAX_SHOWN]))
    if not rows:
        return reply("gathered", joined("Nothing is gathered: there is no all-gather in the program.", mistakes))
    whole = list_names(
        [f"{_named(row)} (each device sends {bytes_text(row.wire * row.runs)})" for row in rows[:_MAX_SHOWN]]
    )
    more = f" and {len(rows) - _MAX_SHOWN} more" if len(rows) > _MAX_SHOWN else ""
    text = f"{count_text(len(rows), 'array')} {agree(rows, 'is', 'are')} gathered: {whole}{more}."
    hint = "explorer.lint(f, x) tries fixes." if mistakes else ""
    return reply("gathered", joined(text, mistakes), "exact", "hlo", sorted(row.node.index for row in rows), hint)


def collectives(capture: Capture) -> Answer:
    if graph_of(capture, "hlo") is None:
        return no_program("collectives")
    rows = sorted(capture.collectives.rows, key=lambda row: -row.wire * row.runs)
    if not rows:
        return reply("collectives", "There is no collective: the devices send each other nothing.")
    # If nothing is sent, each share is 0.
    whole = sum(row.wire * row.runs for row in rows) or 1.0
    parts = [
        f"{_named(row)} sends {bytes_text(row.wire * row.runs)} ({share_text(row.wire * row.runs / whole)})"
        for row in rows[:_MAX_SHOWN]
    ]
    more = f", and {len(rows) - _MAX_SHOWN} more the rest" if len(rows) > _MAX_SHOWN else ""
    waits = sum(not row.overlaps for row in rows)
    text = f"By the bytes that each device sends: {'; '.join(parts)}{more}."
    text += f" {waits:,} of {len(rows):,} run while no kernel runs."
    return reply("collectives", text, "inferred", "hlo", [row.node.index for row in rows], "No time was measured.")


def _named(row: Collective) -> str:
    """Return a collective with its axes and line as text, such as `all-reduce along model for line 14`."""
    along = ", ".join(row.axes) or group_text(row.groups)
    return f"{row.kind} along {along}{f' for line {row.line}' if row.line else ''}"


def sharded(capture: Capture, question: str = "", node: int | None = None) -> Answer:
    """Return an answer: the sharding of the value that the question or `node` names, else of the first arguments.

    Unknown for a program of several TPU slices.
    """
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("sharded")
    if device_count(graph) == 1:
        return reply("sharded", "The program runs on one device, which has every array whole.")
    if slice_count(graph) > 1:
        return reply(
            "sharded", "The program is that of one slice: what slices split between them is unknown.", "unknown"
        )
    shardings = capture.shardings
    arguments = entry_parameters(graph)
    chosen = _meant(question, arguments, graph)
    if chosen is None and node is not None:
        chosen = Node(graph, node)
    meant = arguments[:_MAX_SHOWN] if chosen is None else [chosen]
    texts = [
        f"{each.scope if each.op == 'parameter' and each.scope else each.name} is "
        f"{', '.join(shardings.of(each)[:_MAX_SHOWN])}: {shardings.way_of(each.index)}"
        for each in meant
    ]
    sizes = zip(shardings.mesh.names, shardings.mesh.sizes, strict=True)
    mesh = " × ".join(f"{name} {size}" for name, size in sizes)
    left = len(arguments) - _MAX_SHOWN if chosen is None else 0
    more = f" and {count_text(left, 'argument')} more" if left > 0 else ""
    text = f"On {shardings.mesh.count} devices ({mesh}) {'; '.join(texts)}{more}."
    return reply("sharded", text, "exact", "hlo", sorted(each.index for each in meant))


def argument_words(capture: Capture) -> set[str]:
    graph = graph_of(capture, "hlo")
    scopes = [_scope(graph, node) for node in entry_rows(graph)] if graph is not None else []
    return {word.lower() for scope in scopes for word in re.findall(r"\w+", scope)}


def _meant(question: str, arguments: Sequence[Node], graph: Graph) -> Node | None:
    """Return the argument whose name or last key the question contains, else the instruction it names, else None."""
    words = re.findall(r"[\w.-]+", question.lower())
    # Longest first, so that `params['w']['b']` wins over `params['w']`.
    for node in sorted(arguments, key=lambda node: -len(node.scope)):
        keys = re.findall(r"\w+", node.scope.lower())
        if node.scope and (node.scope.lower() in question.lower().split() or (keys and keys[-1] in words)):
            return node
    return next((graph[word.strip(".")] for word in words if word.strip(".") in graph), None)
