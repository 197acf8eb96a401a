"""What happens when the program runs, and around it: prints, precision, compiling again, recomputing."""

from __future__ import annotations

from collections.abc import Iterable

from explorer.analysis.facts.lines import lines_of
from explorer.analysis.questions.reply import agree, equations_of, joined, optimised, passes_hint, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.fates import KINDS
from explorer.model.graph import Graph, Node
from explorer.model.links import EXACT
from explorer.model.types import parse_type

_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))
_RUN = frozenset(("dot", "convolution"))
_PRINTS = frozenset(("debug_print", "debug_callback"))


def printed(capture: Capture) -> Answer:
    """Which prints ran while the function was traced, and which run with the program."""
    findings = [finding for finding in capture.findings if finding.rule == "impure-print"]
    traced = [f"{finding.message}{f' (line {finding.line})' * bool(finding.line)}." for finding in findings]
    graph = equations_of(capture)
    rows = [] if graph is None else [row for row in range(len(graph)) if graph.ops[int(graph.op[row])] in _PRINTS]
    if not rows or graph is None:
        if traced:
            return reply("printed", joined(*traced))
        text = "No print was seen while the function was traced, and nothing in the program prints."
        return reply("printed", text, "inferred", hint="explorer.lint(f, x) looks closer.")
    where = lines_of(capture, graph, rows)
    which = f"The jax.debug.{agree(rows, 'print', 'prints')}{f' on {where}' * bool(where)}"
    runs = _running(capture, rows)
    text = {
        True: f"{which} {agree(rows, 'runs', 'run')} in every call.",
        False: f"{which} {agree(rows, 'was', 'were')} removed.",
        None: f"Whether {which[0].lower()}{which[1:]} {agree(rows, 'runs', 'run')} is not known.",
    }[runs]
    return reply("printed", joined(*traced, text), "unknown" if runs is None else "exact", "jaxpr", rows)


def _running(capture: Capture, rows: Iterable[int]) -> bool | None:
    """Whether equations run; None where that is not known."""
    if optimised(capture) is None:
        return None
    kinds = {KINDS[int(capture.all_fates["jaxpr"].kind[row])] for row in rows}
    return None if "unknown" in kinds else not kinds <= {"eliminated"}


def precision(capture: Capture) -> Answer:
    """In which dtype each matrix product is written, and in which it runs."""
    graph = equations_of(capture)
    if graph is None:
        return reply("precision", "There is no jaxpr in this capture.", "unknown")
    products = [row for row in range(len(graph)) if graph.ops[int(graph.op[row])] in _PRODUCTS]
    if not products:
        return reply("precision", "There is no matrix product and no convolution in it.")
    pairs: dict[tuple[str, str], list[int]] = {}
    for row in products:
        pairs.setdefault((_operand_type(graph, row), _run_type(capture, row)), []).append(row)
    text = joined(*(_typed(capture, graph, *types, rows) for types, rows in pairs.items()))
    nodes = sorted({node for row in products for node in _instructions(capture, row)})
    stage, shown = ("hlo", nodes) if nodes else ("jaxpr", products)
    if all(after for _, after in pairs):
        return reply("precision", text, "exact", stage, shown)
    return reply("precision", text, "unknown", stage, shown, passes_hint(capture))


def _typed(capture: Capture, graph: Graph, before: str, after: str, rows: list[int]) -> str:
    where = lines_of(capture, graph, rows)
    subject = f"The {agree(rows, 'product', 'products')}{f' on {where}' * bool(where)}"
    takes = f"{subject} {agree(rows, 'takes', 'take')} {before or 'operands of several types'}"
    runs = agree(rows, "runs", "run")
    if not after:
        return f"{takes}; in which type {agree(rows, 'it runs', 'they run')} is not known."
    return f"{takes} and {runs} in {after}." if before == after else f"{takes}, but {runs} in {after} here."


def _instructions(capture: Capture, row: int) -> list[int]:
    if (hlo := optimised(capture)) is None:
        return []
    return [at for at in capture.links.rows("jaxpr", [row], "hlo") if hlo.ops[int(hlo.op[at])] in _RUN]


def _run_type(capture: Capture, row: int) -> str:
    """The dtype that an equation's own product has in the optimised program; empty where links don't say it."""
    run = _instructions(capture, row)
    if not run or (capture.links.grades("hlo")[run] != EXACT).any():
        return ""
    types = {_operand_type(capture.hlo.graph, at) for at in run}
    return types.pop() if len(types) == 1 else ""


def _operand_type(graph: Graph, row: int) -> str:
    types = {parse_type(operand.type).dtype for operand in Node(graph, row).operands[:2]}
    return types.pop() if len(types) == 1 else ""


def recompiled(capture: Capture) -> Answer:
    """A capture is one compilation: that there were others only a ledger knows."""
    text = "This is one compilation; whether there were others, and why, is not in it."
    return reply("recompiled", text, "unknown", hint="with ex.watch() as ledger: …  records every one and its reason.")


def takes_derivatives(capture: Capture) -> bool:
    """Whether the function itself computes a gradient."""
    graph = equations_of(capture)
    return graph is not None and any("transpose(" in scope for scope in graph.scopes)


def remat(capture: Capture) -> Answer:
    """What recomputing would save takes another compilation; what keeps memory full is here."""
    text = "That takes another compilation, which is not in this page."
    saves = "of what is differentiated"
    if takes_derivatives(capture):
        text += " It takes derivatives itself: remat belongs around the function inside that is differentiated."
        saves = "of that function"
    hint = f"ex.what_if(f, x, remat=True, grad=True) compiles and measures both, {saves}."
    return reply("remat", text, "unknown", hint=hint)
