"""Answers about kernels: cost, origin, fusion, copies and transposes, and machine code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from explorer.analysis.analysis import analyze
from explorer.analysis.facts import copying_kernels, kernel_facts, line_text, lines_of
from explorer.analysis.graphs import graph_of, is_op
from explorer.analysis.question_catalogue import agree, joined, no_program, passes_hint, reply
from explorer.model.answers import Answer
from explorer.model.attribution import SERVES
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints
from explorer.model.links import EXACT
from explorer.model.machine_code import MachineCode
from explorer.model.passes import Passes
from explorer.model.text import list_names
from explorer.model.units import count_text, share_text

# Operations that XLA never fuses with others.
_ALONE = {
    "custom-call": "a call of a library or of Python",
    **{"sort": "a sort", "fft": "a Fourier transform", "cholesky": "a factorisation"},
    **{"triangular-solve": "a solve", "while": "a loop", "conditional": "a branch"},
    **{"all-reduce": "a collective", "all-gather": "a collective", "all-to-all": "a collective"},
    **{"reduce-scatter": "a collective", "collective-permute": "a collective"},
    **{"infeed": "a transfer", "outfeed": "a transfer", "send": "a transfer", "recv": "a transfer"},
}
# Operations that run no kernel and pass a value on.
_PASSES_ON = ("bitcast", "get-tuple-element", "tuple", "opt-barrier")


def made(capture: Capture, node: int | None = None) -> Answer:
    """Return an answer: the source lines of the instructions in a node's kernel, with their equations."""
    graph = graph_of(capture, "hlo")
    if graph is None or node is None:
        text = "Choose a kernel, or write its name: which line made dot_add_fusion?"
        return reply("made", text, "unknown")
    kernel = int(graph.kernel[node]) if graph.kernel[node] >= 0 else node
    inside: list[int] = sorted({kernel, *np.flatnonzero(graph.kernel == kernel).tolist()})
    grades = analyze(capture).links.grades("hlo")
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
    texts = [
        line_text(capture, *place) + f" ({', '.join(dict.fromkeys(ops))})" * bool(ops)
        for place, ops in sorted(lines.items())
    ]
    text = f"{graph.names[kernel]} is made of {list_names(texts)}."
    return reply("made", text, "exact" if len(sure) == len(lines) else "inferred", "hlo", (kernel,))


def _operations(capture: Capture, row: int) -> list[str]:
    """Return the distinct primitives of the equations that an instruction comes from; empty without a jaxpr."""
    links = analyze(capture).links
    if links.first != "jaxpr":
        return []
    jaxpr = links.graphs["jaxpr"]
    rows = links.rows("hlo", [row], "jaxpr")
    return list(dict.fromkeys(jaxpr.ops[int(jaxpr.op[at])] for at in rows if jaxpr.is_equation[at]))


def unfused(capture: Capture) -> Answer:
    """Return an answer: how many pairs of kernels have one read the other's result, and why they aren't fused."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("unfused")
    kernels = analyze(capture).kernels
    if len(kernels) < 2:
        text = "Everything is fused: one kernel runs." if len(kernels) else "No kernel runs."
        return reply("unfused", text, "exact", "hlo", kernels.tolist())
    makers, readers = _pairs(graph, kernels)
    if not len(makers):
        text = f"None of the {len(kernels):,} kernels reads another's result: there is no data flow to fuse along."
        return reply("unfused", text, "exact", "hlo", kernels.tolist())
    reasons = _reasons(graph, makers, readers)
    counts = Counter(filter(None, reasons))
    why = "; ".join(f"in {count:,} {reason}" for reason, count in counts.most_common(4))
    is_rest = np.asarray([not reason for reason in reasons])
    where = f"In {count_text(len(makers), 'place')} a kernel reads what another wrote"
    unexplained = ""
    if is_rest.any():
        maker, reader = graph.names[makers[is_rest][0]], graph.names[readers[is_rest][0]]
        of = f" for {int(is_rest.sum()):,} of them" * bool(why)
        unexplained = f"The compiler gives no reason{of}, for example {maker} → {reader}."
    text = joined(f"{where}{': ' * bool(why)}{why}.", unexplained)
    is_lit = is_rest if is_rest.any() else ~is_rest
    nodes: list[int] = np.union1d(makers[is_lit], readers[is_lit]).tolist()
    return reply("unfused", text, "inferred" if counts else "unknown", "hlo", nodes)


def _pairs(graph: Graph, kernels: Ints) -> tuple[Ints, Ints]:
    """Return (makers, readers), one element a pair: the reader reads the maker's result.

    Reads through tuples and bitcasts count. A maker is a kernel, loop or conditional; a reader is a kernel.
    """
    is_maker = is_op(graph, ("while", "conditional"))
    is_maker[kernels] = True
    passes_on = is_op(graph, _PASSES_ON) & ~is_maker
    count = np.int64(len(graph.names))
    at = readers = kernels
    pairs, through = kernels[:0].astype(np.int64), kernels[:0].astype(np.int64)  # reader × count + operand
    while len(at):
        counts = graph.operand_start[at + 1] - graph.operand_start[at]
        begin = np.repeat(graph.operand_start[at] - np.cumsum(counts) + counts, counts)
        operands = graph.operand[begin + np.arange(len(begin))]
        keys = np.repeat(readers, counts) * count + operands
        pairs = np.append(pairs, keys[is_maker[operands]])
        new = np.setdiff1d(keys[passes_on[operands]], through)  # ends even if a damaged text has cycles
        through = np.append(through, new)
        readers, at = np.divmod(new, count)
    readers, makers = np.divmod(np.unique(pairs), count)
    return makers, readers


def _reasons(graph: Graph, makers: Ints, readers: Ints) -> list[str]:
    """Return for each pair the reason why the kernels aren't fused; empty if no rule decides."""
    alone = [f"{what} runs alone" if (what := _ALONE.get(op)) else "" for op in graph.ops]
    is_returned = graph.is_root & is_op(graph, ("tuple",))
    is_result = np.zeros(len(graph.names), bool)
    is_result[graph.operand[np.repeat(is_returned, np.diff(graph.operand_start))]] = True
    is_shared = np.diff(graph.user_columns[0]) > 1
    uses = ("", "several read it", "it is a result of the program too")
    use = np.where(is_result, 2, is_shared)[makers].tolist()
    pairs = zip(graph.op[makers].tolist(), graph.op[readers].tolist(), use, strict=True)
    return [alone[maker] or alone[reader] or uses[at] for maker, reader, at in pairs]


_MOVES = ("transpose", "copy", "copy-start")
_OWN = frozenset(("transpose", "copy", "copy_p", "rev", "swapaxes"))  # equations that only move data


def copies(capture: Capture) -> Answer:
    """Return an answer: which kernels only copy or transpose, for which equations, and the passes that added them."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("copies")
    rows: list[int] = np.flatnonzero(is_op(graph, _MOVES) & (graph.kernel >= 0)).tolist()
    if not rows:
        return reply("copies", "No instruction of the optimized program transposes or copies.")
    kernels = analyze(capture).kernels
    only = copying_kernels(graph, kernels).tolist()
    origins = [_origin(capture, graph, row) for row in rows]
    is_exact = all(is_sure for _, is_sure in origins)
    makers = _makers(capture.passes, graph, rows) if capture.has_passes else ""
    way = "" if makers or is_exact else passes_hint(capture)
    hint = f"To see the pass that added them, {way}" if way else ""
    names = [text for text, _ in Counter(text for text, _ in origins).most_common()]
    sake = f"{agree(origins, 'It is', 'They are')} there for {list_names(names)}."
    text = joined(_head(graph, only, kernels, rows), sake, makers)
    nodes = sorted({int(graph.kernel[row]) for row in rows})
    return reply("copies", text, "exact" if is_exact else "inferred", "hlo", nodes, hint)


def _head(graph: Graph, only: Sequence[int], kernels: Ints, rows: Sequence[int]) -> str:
    ops = Counter(graph.ops[int(graph.op[row])] for row in rows)
    counts = list_names(
        [
            count_text(count, op) if op == "transpose" else f"{count:,} {agree(count, 'copy', 'copies')}"
            for op, count in ops.items()
        ]
    )
    there = f"There {agree(ops.most_common(1)[0][1], 'is', 'are')} {counts}"
    if not only:
        return f"{there}, in kernels that also compute."
    moved = graph.measures.get("bytes", np.full(len(graph.names), np.nan))
    whole = float(np.nansum(moved[kernels]))
    share = f" ({share_text(float(np.nansum(moved[only])) / whole)} of the bytes)" if whole else ""
    does = agree(only, "does", "do")
    return f"{there}; {len(only):,} of {count_text(len(kernels), 'kernel')} {does} nothing else{share}."


def _origin(capture: Capture, graph: Graph, row: int) -> tuple[str, bool]:
    """Return the equation and line that a copy serves, as text, and True if the compiler's own links give them."""
    attribution, links = capture.hlo.graph.attribution, analyze(capture).links
    line = lines_of(capture, graph, [row])
    equations = _operations(capture, row)
    exact = bool(equations) and int(links.grades("hlo")[row]) == EXACT
    if exact and equations[0] in _OWN:
        return f"{equations[0]} on {line}, which is yours" if line else f"your {equations[0]}", True
    if not equations and attribution.mark[row] == SERVES:
        served = int(attribution.by[row])
        equations = _operations(capture, int(graph.kernel[served]) if graph.kernel[served] >= 0 else served)
    what = equations[0] if len(equations) == 1 else ""
    return " on ".join(filter(None, (what, line))) or "code without a known line", exact


def _makers(passes: Passes, graph: Graph, rows: Sequence[int]) -> str:
    made: dict[str, list[str]] = {}
    births = birth_passes(passes, {graph.names[row]: graph.ops[int(graph.op[row])] for row in rows})
    for row in rows:
        op = graph.ops[int(graph.op[row])]
        made.setdefault(births.get(graph.names[row], ""), []).append(op)
    texts = [
        (f"{pass_name} put in " if pass_name else f"before all passes there {agree(ops, 'was', 'were')} ") + _kinds(ops)
        for pass_name, ops in made.items()
    ]
    return f"{list_names(texts)}."


def _kinds(ops: Sequence[str]) -> str:
    plural = {"copy": "copies", "transpose": "transposes", "copy-start": "copies"}
    return " and ".join(
        f"{f'{count:,}' if count > 1 else 'a'} {plural[op] if count > 1 else op}" for op, count in Counter(ops).items()
    )


def birth_passes(passes: Passes, ops: Mapping[str, str]) -> dict[str, str]:
    """Return by instruction the pass that made its first ancestor of the same operation: `layout-assignment (pass 12)`.

    Instructions that existed before all passes are left out. `ops` has the last snapshot's operations by name.
    """
    versions = passes.versions
    keyed = np.flatnonzero(versions.key >= 0)
    op_of = np.full(len(versions.names), -1, np.int64)
    op_of[versions.key[keyed]] = versions.op[keyed]
    # Reversed, so that the first birth of a name overwrites later ones.
    born = {int(versions.key[row]): at for at, effect in reversed([*enumerate(passes.effects)]) for row in effect.born}
    sources: dict[int, list[int]] = {}
    for link in passes.links:
        if link.new >= 0 and link.kind != "with":
            sources.setdefault(link.new, []).append(link.old)
    last = versions.ends[1]
    keys = {versions.names[key]: key for key in versions.key[last].tolist() if key >= 0}
    firsts = {name: _first(keys[name], sources, op_of.tolist()) for name in ops if name in keys}
    return {name: f"{passes[born[key]].name} (pass {born[key] + 1})" for name, key in firsts.items() if key in born}


def _first(key: int, sources: Mapping[int, Iterable[int]], op_of: Sequence[int]) -> int:
    seen = {key}  # ends even if a pass swapped two names
    while (older := next((old for old in sources.get(key, ()) if op_of[old] == op_of[key]), key)) not in seen:
        seen.add(older)
        key = older
    return key


_MAX_CODES = 2  # kernels of a line with their code in an answer
_MAX_LINES = 200
_COMPILE = "look at capture.machine_code, which compiles once more; then it is a stage of the view."


def machine(capture: Capture, line: int = 0, file: str = "") -> Answer:
    """Return an answer: the kernels that run for a line (0: all), and the known facts of their machine code."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("machine")
    kernel = graph.kernel[graph.attribution.nodes(file or capture.file, line)] if line else graph.kernel
    kernels: list[int] = list(dict.fromkeys(kernel[kernel >= 0].tolist()))
    where = f" for {line_text(capture, file or capture.file, line)}" if line else ""
    if not kernels:
        return reply("machine", f"No kernel runs{where}.")
    names = [graph.names[kernel] for kernel in kernels]
    has_code, listed = capture.has_machine_code, list_names(names)
    if has_code:
        return reply("machine", _written(capture.machine_code, names, where), "exact", "hlo", kernels)
    runs = f"{listed} {agree(kernels, 'runs', 'run')}{where}"
    return reply("machine", f"{runs}; its machine code is not compiled yet.", "unknown", "hlo", kernels, _COMPILE)


def _written(code: MachineCode, names: Sequence[str], where: str) -> str:
    written = [(name, row) for name in names if (row := code.get(name)) is not None]
    if not written:
        return f"{list_names(names)} {agree(names, 'has no code of its', 'have no code of their')} own."
    texts = [
        f"{name}: {', '.join(f'{fact} {value}' for fact, value in kernel_facts(row, code.platform))}"
        for name, row in written[:_MAX_CODES]
    ]
    left = len(names) - len(texts)
    more = f", and {count_text(left, 'kernel')} more" if left else ""
    return f"On the {code.platform}{where} {'; '.join(texts)}{more}."


def machine_by_line(capture: Capture) -> Mapping[tuple[str, int], Answer]:
    graph = graph_of(capture, "hlo")
    if graph is None:
        return {}
    places = sorted(graph.attribution.places, key=lambda place: (place.file != capture.file, place.file, place.line))
    return {(place.file, place.line): machine(capture, place.line, place.file) for place in places[:_MAX_LINES]}
