"""What happens when the program runs, and around it: prints, precision, compiling again, recomputing."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from explorer.analysis.facts.lines import lines_of
from explorer.analysis.questions.reply import equations_of, optimised, reply
from explorer.model.answers import Answer
from explorer.model.capture import Capture
from explorer.model.equation_sets import EXACT
from explorer.model.fates import KINDS
from explorer.model.graph import Graph, Node
from explorer.model.types import parse_type

_PRODUCTS = frozenset(("dot_general", "conv_general_dilated"))
_RUN = frozenset(("dot", "convolution"))
_PRINTS = frozenset(("debug_print", "debug_callback"))


def printed(capture: Capture) -> Answer:
    """Which prints ran while the function was traced, and which run with the program."""
    found = [finding for finding in capture.findings if finding.rule == "impure-print"]
    parts = [finding.message + (f" (line {finding.line})." if finding.line else ".") for finding in found]
    nodes: list[int] = []
    certainty = "exact"
    if (graph := equations_of(capture)) is not None:
        nodes = [row for row in range(len(graph)) if graph.ops[int(graph.op[row])] in _PRINTS]
    if nodes and graph is not None:
        where = lines_of(capture, graph, nodes)
        runs = _running(capture, nodes)
        one = len(nodes) == 1
        which = f"jax.debug.{'print' if one else 'prints'}" + (f" on {where}" if where else "")
        if runs is None:
            certainty = "unknown"
            parts.append(f"What became of the {which} is not known.")
        elif runs:
            parts.append(f"The {which} {'runs' if one else 'run'} in every call.")
        else:
            parts.append(f"The {which} {'was' if one else 'were'} removed.")
    if not parts:
        text = "No print was seen while the function was traced, and nothing in the program prints."
        return reply("printed", text, "inferred", hint="explorer.lint(f, x) looks closer.")
    return reply("printed", " ".join(parts), certainty, "jaxpr" if nodes else "", nodes)


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
    texts = [_typed(capture, graph, before, after, rows) for (before, after), rows in pairs.items()]
    is_open = any(not after for _, after in pairs)
    nodes = sorted({node for row in products for node in _instructions(capture, row)})
    hint = "capture.passes (%explore --passes) makes the links exact." if is_open and not capture.has_passes else ""
    stage, shown = ("hlo", nodes) if nodes else ("jaxpr", products)
    return reply("precision", " ".join(texts), "unknown" if is_open else "exact", stage, shown, hint)


def _typed(capture: Capture, graph: Graph, before: str, after: str, rows: list[int]) -> str:
    where = lines_of(capture, graph, rows)
    one = len(rows) == 1
    subject = f"The product{'' if one else 's'}{f' on {where}' if where else ''}"
    takes = f"{'takes' if one else 'take'} {before or 'operands of several types'}"
    if not after:
        return f"{subject} {takes}; in which type {'it runs' if one else 'they run'} is not known."
    if before == after:
        return f"{subject} {takes} and {'runs' if one else 'run'} in {after}."
    return f"{subject} {takes}, but {'runs' if one else 'run'} in {after} here."


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


def remat(capture: Capture) -> Answer:
    """What recomputing would save takes another compilation; what keeps memory full is here."""
    text = "That takes another compilation, which is not in this page."
    graph = equations_of(capture)
    saves = "of what is differentiated"
    if graph is not None and np.asarray(["transpose(" in scope for scope in graph.scopes], bool).any():
        text += " It takes derivatives itself: remat belongs around the function inside that is differentiated."
        saves = "of that function"
    hint = f"ex.what_if(f, x, remat=True, grad=True) compiles and measures both, {saves}."
    return reply("remat", text, "unknown", hint=hint)
