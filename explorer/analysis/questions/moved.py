"""Why a program copies and transposes: for whose sake, and which pass put it in."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.facts.copies import copying_kernels
from explorer.analysis.facts.lines import lines_of
from explorer.analysis.questions.reply import agree, joined, optimised, passes_hint, reply
from explorer.model.answers import Answer
from explorer.model.attribution import SERVES
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.links import EXACT
from explorer.model.passes import Passes
from explorer.model.text import list_names
from explorer.model.units import count_text, share_text

_MOVES = ("transpose", "copy", "copy-start")
_OWN = frozenset(("transpose", "copy", "copy_p", "rev", "swapaxes"))  # equations that are just that


def copies(capture: Capture) -> Answer:
    """Which kernels only copy or transpose, for which equations, and which passes made these instructions."""
    if (graph := optimised(capture)) is None:
        return reply("copies", "There is no optimised program in this capture.", "unknown")
    codes = [code for code, op in enumerate(graph.ops) if op in _MOVES]
    rows: list[int] = np.flatnonzero(np.isin(graph.op, codes) & (graph.kernel >= 0)).tolist()
    if not rows:
        return reply("copies", "There are none: no instruction of the optimised program transposes or copies.")
    kernels = running_nodes(graph)
    only = copying_kernels(graph, kernels).tolist()
    origins = [_origin(capture, graph, row) for row in rows]
    is_exact = all(is_sure for _, is_sure in origins)
    makers = _makers(capture.passes, graph, rows) if capture.has_passes else ""
    way = "" if makers or is_exact else passes_hint(capture)
    hint = f"Which pass put them in: {way}" if way else ""
    text = joined(_head(graph, only, len(kernels), rows), _sake(origins), makers)
    nodes = sorted({int(graph.kernel[row]) for row in rows})
    return reply("copies", text, "exact" if is_exact else "inferred", "hlo", nodes, hint)


def _head(graph: Graph, only: Sequence[int], kernels: int, rows: Sequence[int]) -> str:
    ops = Counter(graph.ops[int(graph.op[row])] for row in rows)
    counts = list_names([count_text(count, op) if op == "transpose" else _copies(count) for op, count in ops.items()])
    there = f"There {agree(ops.most_common(1)[0][1], 'is', 'are')} {counts}"
    if not only:
        return f"{there}, in kernels that also compute."
    moved = graph.measures.get("bytes", np.full(len(graph.names), np.nan))
    whole = float(np.nansum(moved[running_nodes(graph)]))
    share = f" ({share_text(float(np.nansum(moved[only])) / whole)} of the bytes)" if whole else ""
    does = agree(only, "does", "do")
    return f"{there}; {len(only):,} of {count_text(kernels, 'kernel')} {does} nothing else{share}."


def _copies(count: int) -> str:
    return f"{count:,} {agree(count, 'copy', 'copies')}"


def _origin(capture: Capture, graph: Graph, row: int) -> tuple[str, bool]:
    """What an instruction is there for, and whether the compiler's own links say so."""
    attribution, links = capture.hlo.graph.attribution, capture.links
    line = lines_of(capture, graph, [row])
    equations = _equations(capture, row)
    exact = bool(equations) and int(links.grades("hlo")[row]) == EXACT
    if exact and equations[0] in _OWN:
        return f"{equations[0]} on {line}, which is yours" if line else f"your {equations[0]}", True
    if not equations and attribution.mark[row] == SERVES:
        served = int(attribution.by[row])
        equations = _equations(capture, int(graph.kernel[served]) if graph.kernel[served] >= 0 else served)
    what = equations[0] if len(equations) == 1 else ""
    return " on ".join(filter(None, (what, line))) or "what the compiler names no line of", exact


def _equations(capture: Capture, row: int) -> list[str]:
    """The operations of the equations that an instruction comes from."""
    links = capture.links
    if links.first != "jaxpr":
        return []
    jaxpr = links.graphs["jaxpr"]
    return list(dict.fromkeys(jaxpr.ops[int(jaxpr.op[at])] for at in links.rows("hlo", [row], "jaxpr")))


def _sake(origins: Sequence[tuple[str, bool]]) -> str:
    names = [text for text, _ in Counter(text for text, _ in origins).most_common()]
    return f"{agree(origins, 'It is', 'They are')} there for {list_names(names)}."


def _makers(passes: Passes, graph: Graph, rows: Sequence[int]) -> str:
    """Which pass made the first instruction of the kind that each came from."""
    made: dict[str, list[str]] = {}
    births = birth_passes(passes, {graph.names[row]: graph.ops[int(graph.op[row])] for row in rows})
    for row in rows:
        op = graph.ops[int(graph.op[row])]
        made.setdefault(births.get(graph.names[row], ""), []).append(op)
    texts = [
        f"{pass_name} put in {_kinds(ops)}" if pass_name else f"before all passes there {_was(ops)} {_kinds(ops)}"
        for pass_name, ops in made.items()
    ]
    return f"{list_names(texts)}."


def _was(ops: Sequence[str]) -> str:
    return agree(ops, "was", "were")


def _kinds(ops: Sequence[str]) -> str:
    plural = {"copy": "copies", "transpose": "transposes", "copy-start": "copies"}
    return " and ".join(
        f"{f'{count:,}' if count > 1 else 'a'} {plural[op] if count > 1 else op}" for op, count in Counter(ops).items()
    )


def birth_passes(passes: Passes, ops: Mapping[str, str]) -> dict[str, str]:
    """By name, `layout-assignment (pass 12)`: the pass that made the first instruction of its operation that one came
    from; without those that were there before all passes.

    Args:
        passes: What was recorded.
        ops: The operations of instructions of the last snapshot, by name.
    """
    versions = passes.versions
    keyed = np.flatnonzero(versions.key >= 0)
    op_of = np.full(len(versions.names), -1, np.int64)
    op_of[versions.key[keyed]] = versions.op[keyed]
    born = {int(versions.key[row]): at for at, effect in reversed([*enumerate(passes.effects)]) for row in effect.born}
    sources: dict[int, list[int]] = {}
    for link in passes.links:
        if link.new >= 0 and link.kind != "with":
            sources.setdefault(link.new, []).append(link.old)
    last = versions.rows(len(versions.snapshots) - 1)
    keys = {versions.names[key]: key for key in versions.key[last].tolist() if key >= 0}
    firsts = {name: _first(keys[name], sources, op_of.tolist()) for name in ops if name in keys}
    return {name: f"{passes[born[key]].name} (pass {born[key] + 1})" for name, key in firsts.items() if key in born}


def _first(key: int, sources: Mapping[int, Iterable[int]], op_of: Sequence[int]) -> int:
    """The first of the same operation that an instruction came from."""
    seen = {key}  # a pass may swap two names: this ends
    while (older := next((old for old in sources.get(key, ()) if op_of[old] == op_of[key]), key)) not in seen:
        seen.add(older)
        key = older
    return key
