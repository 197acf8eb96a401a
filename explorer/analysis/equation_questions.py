"""Answers about equations: removal, prints, precision, recompiles, rematerialization."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from explorer.analysis.analysis import analyze
from explorer.analysis.facts import line_text, lines_of, operand_type, product_rows, run_type
from explorer.analysis.graphs import graph_of
from explorer.analysis.question_catalogue import agree, joined, passes_hint, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.fates import KINDS, Fate, Fates
from explorer.model.graph import Graph
from explorer.model.text import list_names
from explorer.model.units import count_text

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
        """Return the equations of a line (0: all) or of an operation (empty: all), by what happened to them."""
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
        """Write the sentences that some answers need, all together."""
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
    """Return the answer to what happened to the equations of a line (0: all) or of an operation (empty: all)."""
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
