"""Which kernel costs most, what a kernel was made of, and which kernels stayed apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.facts.cost import INTENSE
from explorer.analysis.facts.lines import line_text, lines_of
from explorer.analysis.questions.reply import joined, optimised, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints
from explorer.model.links import EXACT
from explorer.model.text import list_names
from explorer.model.units import amount_text, bytes_text, count_text, duration_text, share_text

# What XLA runs as it is, whatever stands around it.
_ALONE = {
    "custom-call": "a call of a library or of Python",
    **{"sort": "a sort", "fft": "a Fourier transform", "cholesky": "a factorisation"},
    **{"triangular-solve": "a solve", "while": "a loop", "conditional": "a branch"},
    **{"all-reduce": "a collective", "all-gather": "a collective", "all-to-all": "a collective"},
    **{"reduce-scatter": "a collective", "collective-permute": "a collective"},
    **{"infeed": "a transfer", "outfeed": "a transfer", "send": "a transfer", "recv": "a transfer"},
}
_PASSES_ON = ("bitcast", "get-tuple-element", "tuple", "opt-barrier")


def slow(capture: Capture) -> Answer:
    """The kernel that takes most of the measured time; where there is none, the one that leads in what takes time."""
    if (graph := optimised(capture)) is None:
        return reply("slow", "There is no optimised program in this capture.", "unknown")
    kernels = running_nodes(graph)
    if not len(kernels):
        return reply("slow", "No kernel runs.")
    sums = {name: float(np.nansum(values[kernels])) for name, values in graph.measures.items()}
    is_intense = sums.get("flops", 0) > INTENSE * sums.get("bytes", 0)
    measure = "time" if sums.get("time") else "flops" if is_intense else "bytes"
    if not sums.get(measure):
        return reply("slow", "Nothing is known of what its kernels cost.", "unknown", hint=_PROFILE)
    values = np.nan_to_num(graph.measures[measure][kernels])
    at = int(np.argmax(values))
    node, value, share = int(kernels[at]), float(values[at]), share_text(float(values[at]) / sums[measure])
    line = lines_of(capture, graph, [node])
    name = graph.names[node] + (f", on {line}," if line else "")
    if measure == "time":
        text = f"{name} takes {share} of the measured time ({duration_text(value)})."
        return reply("slow", text, "exact", "hlo", (node,))
    text = {
        "flops": f"does most: {share} of the FLOPs ({amount_text(value)})",
        "bytes": f"moves most: {share} of the bytes ({bytes_text(value)})",
    }[measure]
    return reply("slow", f"No time was measured. {name} {text}.", "inferred", "hlo", (node,), _PROFILE)


_PROFILE = "ex.profile(f, x) measures each kernel."


def made(capture: Capture, node: int | None = None) -> Answer:
    """The lines that the instructions of one kernel belong to, with their equations.

    Args:
        capture: Any.
        node: An instruction; its kernel is meant.
    """
    graph = optimised(capture)
    if graph is None or node is None:
        text = "Choose a kernel, or write its name: which line made dot_add_fusion?"
        return reply("made", text, "unknown")
    kernel = int(graph.kernel[node]) if graph.kernel[node] >= 0 else node
    inside: list[int] = sorted({kernel, *np.flatnonzero(graph.kernel == kernel).tolist()})
    grades = capture.links.grades("hlo")
    lines: dict[tuple[str, int], list[str]] = {}
    sure: set[tuple[str, int]] = set()
    for row in inside:
        place = graph.attribution.place(row)
        if place is None:
            continue
        lines.setdefault((place.file, place.line), []).extend(_operations(capture, row))
        if grades[row] == EXACT:
            sure.add((place.file, place.line))
    if not lines:
        return reply("made", f"The compiler names no line for {graph.names[kernel]}.", "unknown", "hlo", (kernel,))
    texts = [f"{line_text(capture, *place)}{_listed(ops)}" for place, ops in sorted(lines.items())]
    text = f"{graph.names[kernel]} is made of {list_names(texts)}."
    return reply("made", text, "exact" if len(sure) == len(lines) else "inferred", "hlo", (kernel,))


def _listed(ops: Sequence[str]) -> str:
    return f" ({', '.join(dict.fromkeys(ops))})" if ops else ""


def _operations(capture: Capture, row: int) -> list[str]:
    links = capture.links
    if links.first != "jaxpr":
        return []
    jaxpr = links.graphs["jaxpr"]
    return [jaxpr.ops[int(jaxpr.op[at])] for at in links.rows("hlo", [row], "jaxpr") if jaxpr.is_equation[at]]


def unfused(capture: Capture) -> Answer:
    """The pairs of kernels of which one reads the other: known is why where a rule decides by what they are."""
    if (graph := optimised(capture)) is None:
        return reply("unfused", "There is no optimised program in this capture.", "unknown")
    kernels = running_nodes(graph)
    if len(kernels) < 2:
        text = "Nothing stayed apart: all runs in one kernel." if len(kernels) else "No kernel runs."
        return reply("unfused", text, "exact", "hlo", kernels.tolist())
    makers, readers = _pairs(graph, kernels)
    if not len(makers):
        text = f"None of the {len(kernels):,} kernels reads another's result: there is nothing to fuse them along."
        return reply("unfused", text, "exact", "hlo", kernels.tolist())
    reasons = _reasons(graph, makers, readers)
    counts = Counter(filter(None, reasons))
    why = "; ".join(f"in {count:,} {reason}" for reason, count in counts.most_common(4))
    where = f"In {count_text(len(makers), 'place')} a kernel reads what another wrote"
    is_rest = np.asarray([not reason for reason in reasons])
    text = joined(f"{where}{': ' * bool(why)}{why}.", _unexplained(graph, makers[is_rest], readers[is_rest], bool(why)))
    is_lit = is_rest if is_rest.any() else ~is_rest
    nodes: list[int] = np.union1d(makers[is_lit], readers[is_lit]).tolist()
    return reply("unfused", text, "inferred" if counts else "unknown", "hlo", nodes)


def _unexplained(graph: Graph, makers: Ints, readers: Ints, is_part: bool) -> str:
    if not len(makers):
        return ""
    maker, reader = graph.names[makers[0]], graph.names[readers[0]]
    return f"The compiler doesn't say {f'of {len(makers):,} ' * is_part}why, as of {maker} → {reader}."


def _pairs(graph: Graph, kernels: Ints) -> tuple[Ints, Ints]:
    """Makers and the kernels of their computation that read them, also through what only passes it on."""
    is_maker = np.asarray([op in ("while", "conditional") for op in graph.ops], bool)[graph.op]
    is_maker[kernels] = True
    passes_on = np.asarray([op in _PASSES_ON for op in graph.ops], bool)[graph.op] & ~is_maker
    count = np.int64(len(graph.names))
    at = readers = kernels
    pairs, through = kernels[:0].astype(np.int64), kernels[:0].astype(np.int64)  # reader × count + what it reads
    while len(at):
        counts = graph.operand_start[at + 1] - graph.operand_start[at]
        begin = np.repeat(graph.operand_start[at] - np.cumsum(counts) + counts, counts)
        operands = graph.operand[begin + np.arange(len(begin))]
        keys = np.repeat(readers, counts) * count + operands
        pairs = np.append(pairs, keys[is_maker[operands]])
        new = np.setdiff1d(keys[passes_on[operands]], through)  # damaged text may go in circles: this ends
        through = np.append(through, new)
        readers, at = np.divmod(new, count)
    readers, makers = np.divmod(np.unique(pairs), count)
    return makers, readers


def _reasons(graph: Graph, makers: Ints, readers: Ints) -> list[str]:
    """Why the two kernels of each pair stay apart, where a rule decides that by what they are; else empty."""
    alone = [f"{what} runs alone" if (what := _ALONE.get(op)) else "" for op in graph.ops]
    is_tuple = np.asarray([op == "tuple" for op in graph.ops], bool)[graph.op]
    is_result = np.zeros(len(graph.names), bool)
    is_result[graph.operand[np.repeat(graph.is_root & is_tuple, np.diff(graph.operand_start))]] = True
    is_shared = np.diff(graph.user_columns[0]) > 1
    ways = ("", "several read it", "it is a result of the program too")
    way = np.where(is_result, 2, is_shared)[makers].tolist()
    pairs = zip(graph.op[makers].tolist(), graph.op[readers].tolist(), way, strict=True)
    return [alone[maker] or alone[reader] or ways[at] for maker, reader, at in pairs]
