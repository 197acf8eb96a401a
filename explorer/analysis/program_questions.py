"""Answers about the program as a whole: cost, times, counts, loops, passes, hardware, prints, precision, remat."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from explorer.analysis.analysis import analyze
from explorer.analysis.facts import INTENSE, line_text, lines_of, operand_type, product_rows, run_type
from explorer.analysis.flops import call_target
from explorer.analysis.graphs import entry_rows, graph_of, is_op
from explorer.analysis.kernel_costs import kernel_kinds
from explorer.analysis.loops import trip_counts
from explorer.analysis.question_catalogue import (
    HARDWARE,
    KINDS_OF_HARDWARE,
    agree,
    joined,
    no_program,
    passes_hint,
    reply,
)
from explorer.model.answers import Answer
from explorer.model.attribution import LineRow, LineTable
from explorer.model.capture import Capture
from explorer.model.fates import KINDS
from explorer.model.graph import Graph, Ints
from explorer.model.text import list_names
from explorer.model.units import amount_text, bytes_text, count_text, duration_text, share_text

_PROFILE = "ex.profile(f, x) measures each kernel and line."
_LAYOUT = re.compile(r"(?<=\])\{[^}]*\}")
_MAX_SHOWN = 3


def slow(capture: Capture, line: int = 0) -> Answer:
    """Return an answer: the most expensive line and kernel, or one line's part.

    By time if it was measured, else by FLOPs or bytes.
    """
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("slow")
    kernels, table = analyze(capture).kernels, analyze(capture).lines
    if not len(kernels):
        return reply("slow", "No kernel runs.")
    measure, total = _measure(table)
    if not total:
        return reply("slow", "The cost of its kernels is unknown.", "unknown", hint=_PROFILE)
    note, hint, certainty = (
        ("", "", "exact") if measure == "time" else (_unmeasured(graph, kernels), _PROFILE, "inferred")
    )
    text, nodes = _of_line(capture, graph, line) if line else _of_all(capture, graph, kernels)
    return reply("slow", joined(text, note), certainty, "hlo", nodes, hint)


def _of_line(capture: Capture, graph: Graph, line: int) -> tuple[str, list[int]]:
    """Return a sentence on the cost of a line, and its kernels."""
    table = analyze(capture).lines
    row = next((row for row in table if (row.file, row.line) == (capture.file, line)), None)
    if row is None:
        return f"No kernel runs for line {line}.", []
    nodes = graph.kernel[graph.attribution.nodes(capture.file, line)]
    return f"Line {line} {_share(_value(row, table), table)}.", sorted({*nodes[nodes >= 0].tolist()})


def _of_all(capture: Capture, graph: Graph, kernels: Ints) -> tuple[str, list[int]]:
    """Return sentences on the most expensive line and kernel, and that kernel."""
    table = analyze(capture).lines
    # An unknown cost is never the largest.
    values = np.nan_to_num(graph.measures[_measure(table)[0]][kernels])
    top = int(kernels[int(np.argmax(values))])
    kernel = f"largest kernel, {graph.names[top]}{_on(capture, graph, top)}, {_share(float(values.max()), table)}."
    rows = sorted([row for row in [*table] if row.line], key=lambda row: -_value(row, table))
    if not rows:
        return f"The {kernel}", [top]
    where = line_text(capture, rows[0].file, rows[0].line)
    return f"{where[:1].upper()}{where[1:]} {_share(_value(rows[0], table), table)}. Its {kernel}", [top]


def _measure(table: LineTable) -> tuple[str, float]:
    if table.seconds:
        return "time", table.seconds
    return ("flops", table.flops) if table.flops > INTENSE * table.bytes else ("bytes", table.bytes)


def _value(row: LineRow, table: LineTable) -> float:
    measure = _measure(table)[0]
    return (row.seconds or 0.0) if measure == "time" else row.flops if measure == "flops" else row.bytes


def _share(value: float, table: LineTable) -> str:
    """Return the end of a sentence about a part of the program: `takes 40% of the measured time (2 ms)`."""
    measure, total = _measure(table)
    verb, of, amount = {
        "time": ("takes", "the measured time", duration_text),
        "flops": ("does", "the FLOPs", amount_text),
        "bytes": ("moves", "the bytes", bytes_text),
    }[measure]
    return f"{verb} {share_text(value / total)} of {of} ({amount(value)})"


def _unmeasured(graph: Graph, kernels: Ints) -> str:
    """Return a note that counts don't give times, naming the kernels that they say least about."""
    special = kernel_kinds(graph).special
    is_unlike = is_op(graph, ("custom-call", "scatter", "gather"))
    unlike = [
        str(graph.names[node]) for node in kernels.tolist() if is_unlike[node] or "sort" in (special.get(node) or ())
    ]
    if not unlike:
        return "No time was measured."
    return f"No time was measured, and these counts say little of the time of {list_names(unlike)}."


def hardware(capture: Capture, name: str = "") -> Answer:
    """Return an answer: the estimated time on the hardware named, if the capture was compiled for it; else unknown."""
    target = capture.environment.get("target", "")
    device = KINDS_OF_HARDWARE.get(name, name)
    if not target or (name in HARDWARE and name not in target):
        text = f"This program was not compiled for {name.upper() or 'other hardware'}, so its time there is unknown."
        hint = f"ex.explore(f, x, target={device or 'h100'!r}) compiles for it."
        return reply("hardware", text, "unknown", hint=hint)
    if not (estimates := capture.estimates):
        return reply("hardware", f"There is no estimate for {target}.", "unknown")
    without = f", without {count_text(estimates.unknown, 'kernel')}" if estimates.unknown else ""
    slowest = max(estimates, key=lambda row: row.seconds)
    text = (
        f"On {target} {estimates.total} by {estimates.by}{without}; most is {slowest.node.name}. Nothing is measured."
    )
    return reply("hardware", text, "inferred", "hlo", (slowest.node.index,))


def duration(capture: Capture) -> Answer:
    """Return an answer: the measured time of a call; unknown if none was measured in this session."""
    if (steady := capture.steady) is None:
        return reply(
            "duration", "No call was measured in this session.", "unknown", hint="ex.time(f, x) measures a call."
        )
    return reply("duration", f"One call takes {steady}.")


def compiling(capture: Capture) -> Answer:
    """Return an answer: the seconds of the steps that ran, of trace, lowering and compile; unknown if none did."""
    done = capture.durations.done
    if not done:
        text = "JAX had it in a cache, or it was opened from a file: how long it took to compile is unknown."
        return reply("compiling", text, "unknown")
    longest = max(done, key=lambda step: done[step])
    steps = list_names([f"{step} {duration_text(seconds)}" for step, seconds in done.items()])
    text = f"It took {duration_text(sum(done.values()))}: {steps}. Most is {longest}."
    return reply("compiling", text, hint=passes_hint(capture))


def totals(capture: Capture, line: int = 0) -> Answer:
    """Return an answer: the FLOPs and bytes of the program, or of one line of the function's file."""
    if graph_of(capture, "hlo") is None:
        return no_program("totals")
    table = analyze(capture).lines
    row = next((row for row in table if (row.file, row.line) == (capture.file, line)), None) if line else table
    if row is None:
        return reply("totals", f"No kernel runs for line {line}.")
    text = (
        f"{f'Line {line}' if line else 'A call'} does {amount_text(row.flops)} FLOPs and moves {bytes_text(row.bytes)}"
    )
    intensity = f", {row.flops / row.bytes:.3g} FLOPs per byte" if row.bytes else ""
    limits = joined(*(f"{note[:1].upper()}{note[1:].rstrip('.')}." for note in table.notes))
    return reply("totals", joined(f"{text}{intensity}.", limits), "inferred" if limits else "exact", hint=_PROFILE)


def counts(capture: Capture) -> Answer:
    """Return an answer: the number of equations and of kernels, with the most frequent operations of the kernels."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("counts")
    kernels = analyze(capture).kernels
    ops = Counter(graph.ops[code] for code in graph.op[kernels].tolist())
    jaxpr = graph_of(capture, "jaxpr")
    before = f"{count_text(int(jaxpr.is_equation.sum()), 'equation')} became " if jaxpr is not None else ""
    named = ", ".join(f"{count:,} {op}" for op, count in ops.most_common(4))
    text = f"{before}{count_text(len(kernels), 'kernel')}{f' ({named})' * bool(named)}."
    return reply("counts", text, "exact", "hlo", kernels.tolist())


def constants(capture: Capture) -> Answer:
    """Return an answer: the arrays that the trace baked into the program, the largest first."""
    if graph_of(capture, "jaxpr") is None:
        return reply("constants", "Which arrays were constants of the trace is unknown: there is no jaxpr.", "unknown")
    rows = sorted(capture.constants, key=lambda row: -row.bytes)
    if not rows:
        return reply("constants", "No array is baked into the program as a constant.")
    named = list_names([f"{row.name} ({row.type}, {bytes_text(row.bytes)})" for row in rows])
    text = f"{count_text(len(rows), 'array')} {agree(rows, 'is', 'are')} baked in as constants: {named}."
    return reply("constants", text, hint="Pass an array as an argument to keep it out of the program.")


def passes(capture: Capture, name: str = "") -> Answer:
    """Return an answer: the effect of a pass, or the three passes that changed most; unknown if not recorded."""
    if not capture.has_passes:
        return reply("passes", "The passes of this compile were not recorded.", "unknown", hint=passes_hint(capture))
    steps = [step for step in capture.passes if step.is_consequential]
    if name:
        steps = [step for step in steps if step.name == name]
        if not steps:
            return reply("passes", f"{name} changed nothing.")
    steps.sort(key=lambda step: -(step.born + step.died + step.changed))
    shown = "; ".join(
        f"{step.name} (pass {step.index + 1}) added {step.born:,}, removed {step.died:,} and rewrote {step.changed:,}"
        for step in steps[:_MAX_SHOWN]
    )
    return reply("passes", f"{shown} instructions." if steps else "No pass changed anything.")


def loops(capture: Capture) -> Answer:
    """Return an answer: the loops of the optimized program with their known iterations."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("loops")
    rows: list[int] = np.flatnonzero(is_op(graph, ("while",))).tolist()
    if not rows:
        return reply(
            "loops", "There is no loop in the optimized program: loops of the source are unrolled, or there are none."
        )
    turns = trip_counts(graph)
    parts = [f"{graph.names[row]}{_on(capture, graph, row)} {_runs(turns.get(row))}" for row in rows[:_MAX_SHOWN]]
    more = f"; {len(rows) - _MAX_SHOWN} more" if len(rows) > _MAX_SHOWN else ""
    text = f"{count_text(len(rows), 'loop')} {agree(rows, 'remains', 'remain')}: {'; '.join(parts)}{more}."
    return reply("loops", text, "exact", "hlo", rows)


def _on(capture: Capture, graph: Graph, node: int) -> str:
    """Return ` on line 3` for a node, or an empty text if its line is unknown."""
    where = lines_of(capture, graph, [node])
    return f" on {where}" if where else ""


def _runs(count: int | None) -> str:
    return "runs a number of times that the text doesn't give" if count is None else f"runs {count_text(count, 'time')}"


def outside(capture: Capture) -> Answer:
    """Return an answer: the library functions and Python callbacks that the program calls."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("outside")
    rows: list[int] = np.flatnonzero(is_op(graph, ("custom-call",))).tolist()
    if not rows:
        return reply("outside", "It calls no library function and nothing in Python: there is no custom call.")
    targets = Counter(call_target(graph, row) for row in rows)
    named = list_names([f"{target} ({count:,})" if count > 1 else target for target, count in targets.most_common()])
    back = sum(count for target, count in targets.items() if "callback" in target)
    python = f"{back:,} of them {agree(back, 'runs', 'run')} Python." if back else "None of them runs Python."
    on = lines_of(capture, graph, rows)
    return reply("outside", joined(f"It calls {named}{f', for {on}' * bool(on)}.", python), "exact", "hlo", rows)


def bound(of_totals: Answer) -> Answer:
    """Return an answer: the text of `of_totals`, and that the limit, arithmetic or memory, depends on the machine."""
    hint = "ex.roofline(f, x) measures each kernel against this machine's peaks."
    text = f"{of_totals.text} Whether arithmetic or memory limits it depends on the machine."
    return reply("bound", text, "unknown", hint=hint)


def shapes(capture: Capture) -> Answer:
    """Return an answer: the types of the arguments and of the results."""
    if (graph := graph_of(capture, "hlo")) is None:
        return no_program("shapes")
    names, scopes = graph.names, graph.scopes
    given = [
        f"{scopes[int(graph.scope[row])] or names[row]} {_LAYOUT.sub('', graph.types[int(graph.type[row])])}"
        for row in entry_rows(graph)
    ]
    entry = next((at for at, group in enumerate(graph.groups) if group.kind == "entry"), -1)
    roots: Sequence[int] = np.flatnonzero(graph.is_root & (graph.group == entry)).tolist()
    results = list_names([_LAYOUT.sub("", graph.types[int(graph.type[row])]) for row in roots])
    text = f"It takes {list_names(given) or 'no array'} and returns {results or 'nothing'}."
    return reply("shapes", text, "exact", "hlo", roots)


def casts(capture: Capture) -> Answer:
    """Return an answer: the equations that convert dtypes, and how many instructions of the program still do."""
    graph, hlo = graph_of(capture, "jaxpr"), graph_of(capture, "hlo")
    if graph is None or hlo is None:
        return no_program("casts")
    rows: list[int] = np.flatnonzero(is_op(graph, ("convert_element_type",))).tolist()
    left = int((is_op(hlo, ("convert",)) & (hlo.kernel >= 0)).sum())
    if not rows:
        return reply("casts", f"No equation converts a dtype; {count_text(left, 'convert')} in the optimized program.")
    on = lines_of(capture, graph, rows)
    text = f"{count_text(len(rows), 'equation')} {agree(rows, 'converts', 'convert')} a dtype{f', on {on}' * bool(on)}"
    return reply("casts", f"{text}; {count_text(left, 'convert')} in the optimized program.", "exact", "jaxpr", rows)


def pitfalls(capture: Capture) -> Answer:
    """Return an answer: the first three findings of the trace, with their lines."""
    findings = analyze(capture).findings
    hint = "ex.lint(f, x) looks closer, at these values too."
    if graph_of(capture, "jaxpr") is None:
        return reply("pitfalls", "Its trace is not in this capture, so its pitfalls are unknown.", "unknown", hint=hint)
    if not findings:
        return reply("pitfalls", "Tracing it showed no pitfall.", "inferred", hint=hint)
    shown = [
        f"Line {each.line}: {each.message}." if each.line else f"{each.message}." for each in findings[:_MAX_SHOWN]
    ]
    more = f"{len(findings) - _MAX_SHOWN} more." if len(findings) > _MAX_SHOWN else ""
    return reply("pitfalls", joined(*shown, more), "inferred", hint=hint)


def faster(of_slow: Answer) -> Answer:
    """Return the answer of `of_slow`, the most expensive part, with a command that tries changes as its hint."""
    hint = "ex.what_if(f, x) compiles and measures changes."
    return reply("faster", of_slow.text, of_slow.certainty, of_slow.stage, of_slow.nodes, hint)


_PRINTS = frozenset(("debug_print", "debug_callback"))
_CONDITIONAL = frozenset(("cond", "while", "scan"))


def printed(capture: Capture) -> Answer:
    """Return an answer: which prints ran during tracing, and which run in each call."""
    findings = [finding for finding in analyze(capture).findings if finding.rule == "impure-print"]
    traced = [f"{finding.message}{f' (line {finding.line})' * bool(finding.line)}." for finding in findings]
    graph = graph_of(capture, "jaxpr")
    rows = [] if graph is None else [row for row in range(len(graph.names)) if graph.ops[int(graph.op[row])] in _PRINTS]
    if not rows or graph is None:
        if traced:
            return reply("printed", joined(*traced))
        text = "No print was seen while the function was traced, and nothing in the program prints."
        return reply("printed", text, "inferred", hint="explorer.lint(f, x) looks closer.")
    where = lines_of(capture, graph, rows)
    which = f"The jax.debug.{agree(rows, 'print', 'prints')}{f' on {where}' * bool(where)}"
    runs = _running(capture, rows)
    text = {
        True: f"{which} {agree(rows, 'runs', 'run')} {_often(graph, rows)}.",
        False: f"{which} {agree(rows, 'was', 'were')} removed.",
        None: f"Whether {which[0].lower()}{which[1:]} {agree(rows, 'runs', 'run')} is not known.",
    }[runs]
    return reply("printed", joined(*traced, text), "unknown" if runs is None else "exact", "jaxpr", rows)


def _often(graph: Graph, rows: Iterable[int]) -> str:
    """Return how often kept equations run, as text: in every call, or as often as the branch or loop around them."""
    groups = {int(graph.group[row]) for row in rows}
    around: set[str] = set()
    while groups:
        callers = [graph.groups[group].caller for group in groups if group >= 0]
        around |= {graph.ops[int(graph.op[caller])] for caller in callers if caller >= 0}
        groups = {int(graph.group[caller]) for caller in callers if caller >= 0}
    return "as often as the branch or loop around it" if around & _CONDITIONAL else "in every call"


def _running(capture: Capture, rows: Iterable[int]) -> bool | None:
    if graph_of(capture, "hlo") is None:
        return None
    kinds = {KINDS[int(analyze(capture).of_fates["jaxpr"].kind[row])] for row in rows}
    return None if "unknown" in kinds else not kinds <= {"eliminated"}


def precision(capture: Capture) -> Answer:
    """Return an answer: the dtype in which each matrix product is written, and the dtype in which it runs."""
    graph = graph_of(capture, "jaxpr")
    if graph is None:
        return reply("precision", "There is no jaxpr in this capture.", "unknown")
    products = product_rows(graph)
    if not products:
        return reply("precision", "There is no matrix product and no convolution in it.")
    pairs: dict[tuple[str, str], list[int]] = {}
    instructions: set[int] = set()
    for row in products:
        after, run = run_type(capture, row)
        pairs.setdefault((operand_type(graph, row), after), []).append(row)
        instructions.update(run)
    text = joined(*(_typed(capture, graph, *types, rows) for types, rows in pairs.items()))
    stage, shown = ("hlo", sorted(instructions)) if instructions else ("jaxpr", products)
    if all(after for _, after in pairs):
        # What an accelerator rounds operands to is a rule of its backend: the text has only the precision's name.
        is_cpu = capture.environment.get("backend") == "cpu"
        is_stated = all(after == before or (is_cpu and after in _PLAIN) for before, after in pairs)
        return reply("precision", text, "exact" if is_stated else "inferred", stage, shown)
    return reply("precision", text, "unknown", stage, shown, passes_hint(capture))


_PLAIN = frozenset(("f16", "bf16", "f32", "f64"))


def _typed(capture: Capture, graph: Graph, before: str, after: str, rows: list[int]) -> str:
    where = lines_of(capture, graph, rows)
    subject = f"The {agree(rows, 'product', 'products')}{f' on {where}' * bool(where)}"
    takes = f"{subject} {agree(rows, 'takes', 'take')} {before or 'operands of several types'}"
    runs = agree(rows, "runs", "run")
    if not after:
        return f"{takes}; in which type {agree(rows, 'it runs', 'they run')} is not known."
    return f"{takes} and {runs} in {after}." if before == after else f"{takes}, but {runs} in {after} here."


def recompiled(capture: Capture) -> Answer:
    """Return an answer of unknown certainty: a capture is one compilation; its hint records others."""
    text = "A capture holds one compilation, so it can't show recompiles or their reasons."
    return reply("recompiled", text, "unknown", hint="with ex.watch() as ledger: …  records every one and its reason.")


def takes_derivatives(capture: Capture) -> bool:
    graph = graph_of(capture, "jaxpr")
    return graph is not None and any("transpose(" in scope for scope in graph.scopes)


def remat(capture: Capture) -> Answer:
    """Return an answer that names the measurement of rematerialization, which takes another compilation."""
    text = "This needs one more compilation, which a page can't run."
    saves = "for the function that is differentiated"
    if takes_derivatives(capture):
        text += " It takes derivatives itself, so put remat around the function that it differentiates."
        saves = "of that function"
    hint = f"ex.what_if(f, x, remat=True, grad=True) compiles and measures both, {saves}."
    return reply("remat", text, "unknown", hint=hint)
