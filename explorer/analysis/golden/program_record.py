"""A capture as the few figures that a golden file has of it.

They name operations, types and lines, and nothing that XLA numbers, so that one program gives one record on every run;
sums are those of the line table, rounded to whole FLOPs and bytes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from explorer.analysis.cost.kernels import running_nodes
from explorer.model.capture import Capture
from explorer.model.findings import Finding
from explorer.model.golden import LineRecord, ProgramRecord
from explorer.model.graph import Graph, Ints
from explorer.model.live_memory import needed_bytes
from explorer.model.stage import is_library_file, library_of
from explorer.model.types import parse_type

_MOVES_NOTHING = frozenset(
    ("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "fusion", "broadcast", "reshape", "call")
)
# Their bodies have equations of their own.
_CALLS = frozenset(
    ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "remat2", "checkpoint")
)
Place = tuple[str, int]


def program_record(capture: Capture, findings: Iterable[Finding], folder: str, target: str) -> ProgramRecord:
    """What a golden file has of one program.

    Args:
        capture: With jaxpr and HLO.
        findings: What lint says of the same function.
        folder: Paths are written from there.
        target: The hardware's name.

    Raises:
        UnknownNameError: A stage is missing.
    """
    graph, memory, collectives = capture.hlo.graph, capture.memory, capture.collectives
    kernels = running_nodes(graph)
    table = {(row.file, row.line): row for row in capture.lines()}
    jaxpr = capture.jaxpr.graph
    is_call = np.asarray([op in _CALLS for op in jaxpr.ops] or [False], bool)[jaxpr.op]
    rows = np.flatnonzero(jaxpr.is_equation & ~is_call).astype(np.int32)
    equations = _counts_by_line(jaxpr, rows, _equation_texts(jaxpr, rows))
    made = _counts_by_line(graph, kernels, _kernel_texts(graph, kernels))
    lines = tuple(
        LineRecord(
            file_label(place[0], folder),
            place[1],
            table[place].text if place in table else "",
            _sorted(equations.get(place)),
            _sorted(made.get(place)),
            round(table[place].flops) if place in table else 0,
            round(table[place].bytes) if place in table else 0,
        )
        for place in dict.fromkeys((*equations, *made, *table))
    )
    return ProgramRecord(
        target=target,
        kernels=len(kernels),
        flops=round(sum(row.flops for row in table.values())),
        bytes=round(sum(row.bytes for row in table.values())),
        peak_memory=int(needed_bytes(memory)) if memory else 0,
        results=memory.get("output", 0),
        constants=sum(constant.bytes for constant in capture.constants),
        wire=round(collectives.wire),
        donated=memory.get("alias", 0),
        collectives=_sorted(Counter(f"{row.kind} over {', '.join(row.axes) or 'devices'}" for row in collectives)),
        findings=_sorted(Counter(finding.rule for finding in findings)),
        lines=lines,
    )


def _sorted(counts: Counter[str] | None) -> dict[str, int]:
    return dict(sorted((counts or Counter[str]()).items()))


def _counts_by_line(graph: Graph, nodes: Ints, texts: Sequence[str]) -> Mapping[Place, Counter[str]]:
    """How often each text stands on each line, in the order of the nodes."""
    attribution = graph.attribution
    places: list[Place] = [*((place.file, place.line) for place in attribution.places), ("", 0)]
    counts: dict[Place, Counter[str]] = {}
    codes: list[int] = attribution.line[nodes].tolist()
    for text, code in zip(texts, codes, strict=True):
        counts.setdefault(places[code], Counter())[text] += 1
    return counts


def _equation_texts(graph: Graph, equations: Ints) -> list[str]:
    """`exp f32[8,128]`."""
    types = _types(graph)
    codes = zip(graph.op[equations].tolist(), graph.type[equations].tolist(), strict=True)
    return [f"{graph.ops[op]} {types[type_]}" for op, type_ in codes]


def _kernel_texts(graph: Graph, kernels: Ints) -> list[str]:
    """What each kernel does, all of it but what only moves or names values, and the type that it gives."""
    silent = np.asarray([op in _MOVES_NOTHING for op in graph.ops], bool)
    inside = np.flatnonzero((graph.kernel >= 0) & ~silent[graph.op]).astype(np.int32)
    pairs: list[int] = np.unique(graph.kernel[inside].astype(np.int64) * len(graph.ops) + graph.op[inside]).tolist()
    ops: dict[int, list[str]] = {}
    for pair in pairs:
        ops.setdefault(pair // len(graph.ops), []).append(graph.ops[pair % len(graph.ops)])
    types = _types(graph)
    texts: list[str] = []
    for kernel in kernels.tolist():
        computes = sorted(ops.get(kernel, [graph.ops[int(graph.op[kernel])]]))
        texts.append(f"{', '.join(computes)} → {types[int(graph.type[kernel])]}")
    return texts


def _types(graph: Graph) -> list[str]:
    """Without layouts, which a compiler chooses anew for every change around."""
    return [str(parse_type(text)) for text in graph.types]


def file_label(file: str, folder: str) -> str:
    """A path that is the same on another machine: from `folder`, or for a library's file from its package's folder."""
    if not file:
        return ""
    if is_library_file(file):
        package = library_of(file)
        _, folder_of_it, rest = file.replace(os.sep, "/").rpartition(f"/{package}/")
        return f"{package}/{rest}" if folder_of_it else package
    return os.path.relpath(file, folder).replace(os.sep, "/") if os.path.isabs(file) else file
