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
from explorer.model.equation_sets import EXACT
from explorer.model.graph import Graph
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
    kernels: list[int] = running_nodes(graph).tolist()
    if len(kernels) < 2:
        text = "Nothing stayed apart: all runs in one kernel." if kernels else "No kernel runs."
        return reply("unfused", text, "exact", "hlo", kernels)
    pairs = _pairs(graph, kernels)
    if not pairs:
        text = f"None of the {len(kernels):,} kernels reads another's result: there is nothing to fuse them along."
        return reply("unfused", text, "exact", "hlo", kernels)
    reasons = {pair: _reason(graph, pair) for pair in pairs}
    counts = Counter(filter(None, reasons.values()))
    rest = [pair for pair, reason in reasons.items() if not reason]
    why = "; ".join(f"in {count:,} {reason}" for reason, count in counts.most_common(4))
    where = f"In {count_text(len(pairs), 'place')} a kernel reads what another wrote"
    text = joined(f"{where}{': ' * bool(why)}{why}.", _unexplained(graph, rest, bool(why)))
    nodes = sorted({at for pair in (rest or pairs) for at in pair})
    return reply("unfused", text, "inferred" if counts else "unknown", "hlo", nodes)


def _unexplained(graph: Graph, pairs: Sequence[tuple[int, int]], is_part: bool) -> str:
    if not pairs:
        return ""
    maker, reader = (graph.names[at] for at in pairs[0])
    return f"The compiler doesn't say {f'of {len(pairs):,} ' * is_part}why, as of {maker} → {reader}."


def _pairs(graph: Graph, kernels: Sequence[int]) -> list[tuple[int, int]]:
    """Kernels of one computation and those whose result they read, also through what only passes it on."""
    is_kernel = np.zeros(len(graph.names), bool)
    is_kernel[kernels] = True
    passes_on = np.asarray([op in ("bitcast", "get-tuple-element", "tuple", "opt-barrier") for op in graph.ops], bool)
    operands, start = graph.operand.tolist(), graph.operand_start.tolist()
    codes: list[int] = graph.op.tolist()

    def makers(node: int) -> list[int]:
        nodes: list[int] = []
        todo, seen = operands[start[node] : start[node + 1]], set[int]()
        while todo:
            at = todo.pop()
            if at in seen:
                continue
            seen.add(at)
            if is_kernel[at] or graph.ops[codes[at]] in ("while", "conditional"):
                nodes.append(at)
            elif passes_on[codes[at]]:
                todo.extend(operands[start[at] : start[at + 1]])
        return sorted(nodes)

    return [(maker, kernel) for kernel in kernels for maker in makers(kernel)]


def _reason(graph: Graph, pair: tuple[int, int]) -> str:
    """Why two kernels stay apart, where a rule decides that by what they are; empty where nobody says it."""
    for node in pair:
        if alone := _ALONE.get(graph.ops[int(graph.op[node])]):
            return f"{alone} runs alone"
    start, users = graph.user_columns
    readers: list[int] = sorted(set(users[start[pair[0]] : start[pair[0] + 1]].tolist()))
    if any(graph.is_root[at] and graph.ops[int(graph.op[at])] == "tuple" for at in readers):
        return "it is a result of the program too"
    return "several read it" if len(readers) > 1 else ""
