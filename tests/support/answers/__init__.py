"""Captures as saved files, and everything that the analyses said about each: links, fates, costs, groups, memory, ways.

An assertion holds what its author thought of; a graph of 300 instructions has thousands of figures. What changes one of
them on purpose writes them anew, and the difference is read like any other:

    python -m tests.support.answers

which prints what is another. The programs were captured once, by `programs.py` beside this, and the files stay as they
are, so both JAX ends and each machine give the same answers. Whether they are right, the corpora judge.
"""

import gzip
import itertools
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import explorer as ex
from explorer.analysis.questions import answers as answers_to_questions

FOLDER = Path(__file__).parent
SAVED = {path.stem: path for path in sorted(FOLDER.glob("*.capture"))}
_BEFORE = {"attention_with_norm": "attention", "scanned": "train_step"}  # what is held against what
_WAYS = 12  # pairs and neighbourhoods of each graph: any would do, so they are spread over it


def kept(name: str) -> list[str]:
    """The lines that were written down; compressed, as nobody reads 100,000 lines but where they differ."""
    return gzip.decompress((FOLDER / f"{name}.txt.gz").read_bytes()).decode().splitlines()


def keep(name: str, lines: list[str]) -> None:
    """Write them down, the same bytes for the same lines."""
    (FOLDER / f"{name}.txt.gz").write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


def answers(name: str) -> list[str]:
    """All that is said about one saved capture, a fact a line."""
    capture = ex.load(SAVED[name])
    parts = {
        "text": [capture.to_text()],
        "nodes": _nodes(capture),
        "groups": _groups(capture),
        "links": _links(capture),
        "fates": _fates(capture),
        "lines": [repr(capture.lines()), *(f"{row}" for row in capture.lines())],
        "memory": _memory(capture),
        "passes": _passes(capture),
        "ways": _ways(capture),
        "facts": (f"{fact.kind} {_figure(fact.share)} {fact.stage} {fact.nodes} {fact}" for fact in capture.summary),
        "collectives": _collectives(capture),
        "questions": _questions(capture),
        "diff": _diff(ex.load(SAVED[_BEFORE[name]]), capture) if name in _BEFORE else [],
        "found": _found(capture),
        "export": _export(capture),
    }
    return [f"{part}: {line}" for part, facts in parts.items() for fact in facts for line in fact.splitlines()]


def _graphs(capture: ex.Capture) -> Iterator[tuple[str, ex.types.Graph]]:
    return ((stage.name, stage.graph) for stage in capture.stages)


def _figure(value: float) -> str:
    return f"{value:.6g}"


def _nodes(capture: ex.Capture) -> Iterator[str]:
    for stage, graph in _graphs(capture):
        yield f"{stage}: {dict(graph.attributes)} unread {graph.unread}"
        measures = {name: column.tolist() for name, column in graph.measures.items()}
        for node in graph.nodes:
            figures = {name: _figure(column[node.index]) for name, column in measures.items()}
            yield f"  {node!r} {node.scope} {node.place} {figures} {dict(node.attributes)}"


def _groups(capture: ex.Capture) -> Iterator[str]:
    for stage, graph in _graphs(capture):
        tree = graph.hierarchy
        yield f"{stage}:"
        for at, group in enumerate(tree.groups):
            own = np.flatnonzero(tree.group == at).tolist()
            said = tree.repeat[at], tree.differ[at], tree.difference[at]
            yield f"  {at} {group.name} {group.kind} in {group.parent} called by {group.caller} {said}: {own}"
        yield f"  twins {[f'{node}={twin}' for node, twin in enumerate(tree.twin.tolist()) if node != twin]}"
        yield f"  kernels {graph.kernel.tolist()}"
        yield f"  placed {graph.placed.tolist()}"


def _links(capture: ex.Capture) -> Iterator[str]:
    stages = list(_graphs(capture))
    for (stage, graph), (other, _) in itertools.permutations(stages, 2):
        shares = [_figure(capture.coverage(stage, grade=grade)) for grade in ("exact", "inferred")]
        yield f"{stage} to {other}: {shares}"
        for node in graph.nodes:
            there = capture.links.linked(node, other)
            yield f"  {node.name}: {capture.links.grade(node, other)} {[linked.name for linked in there]}"


def _fates(capture: ex.Capture) -> Iterator[str]:
    yield repr(capture.fate_table())
    yield from (f"{row}" for row in capture.fate_table())
    for stage, fates in capture.all_fates.items():
        yield f"inferred in {stage} {np.flatnonzero(fates.inferred).tolist()}"


def _memory(capture: ex.Capture) -> Iterator[str]:
    live = capture.live_memory
    yield live.table()
    yield f"peaks {live.peaks} totals {live.totals()} timeline {live.timeline.tolist()}"
    yield from (f"  {buffer!r}" for buffer in live.buffers)
    yield from (f"  {donation!r}" for donation in live.donations)


def _passes(capture: ex.Capture) -> Iterator[str]:
    if not capture.has_passes:
        return
    yield repr(capture.passes)
    yield from (f"{step.name} +{step.born} -{step.died} ~{step.changed}" for step in capture.passes)
    yield from (f"  {effect!r}" for effect in capture.passes.effects)
    for node in itertools.islice(capture.hlo.graph.nodes, 0, None, 7):
        yield repr(capture.passes.history(node.name))


def _ways(capture: ex.Capture) -> Iterator[str]:
    for stage, graph in _graphs(capture):
        chosen = list(graph.nodes)[:: max(1, len(graph) // _WAYS)]
        for a, b in itertools.pairwise(chosen):
            between = graph.paths(a, b)
            yield f"{stage} {a.name} to {b.name}: {len(between)} {[node.name for node in between.subgraph]}"
            yield f"  around {[node.name for node in graph.neighbourhood(a, 2)]}"


_QUERIES = (
    "op:dot", "dtype:f32 and not op:broadcast", "shape:8,*", "bytes > 100", "users >= 3", "rank < 1", "operands == 2",
    "in:body", "scope:transpose", 'op == "tanh"', "/dot.*/", "attr:dimensions={0}", "line:9", "through:9",
    "function:layer", "not (op:add or op:mul)",
)  # fmt: skip


def _found(capture: ex.Capture) -> Iterator[str]:
    for stage, graph in _graphs(capture):
        for query in _QUERIES:
            yield f"{stage} {query}: {[node.name for node in graph.where(query)]}"


def _collectives(capture: ex.Capture) -> Iterator[str]:
    yield capture.collectives.to_text()
    yield from (f"{row.node.name} {row.groups} {row}" for row in capture.collectives)


def _questions(capture: ex.Capture) -> Iterator[str]:
    said = answers_to_questions(capture)
    for part in ("answers", "operations", "removed_ops"):
        yield from (f"{part} {key}: {value}" for key, value in said[part].items())
    yield from (f"{line}" for line in said["removed_lines"])
    for node in itertools.islice(capture.hlo.graph.nodes, 0, None, 11):
        yield f"{capture.ask('what is this kernel made of', node)!r}"


def _diff(before: ex.Capture, capture: ex.Capture) -> Iterator[str]:
    diff = ex.diff(before, capture)
    yield diff.to_text()
    yield from (f"{value.name}: {value}" for value in diff.values)
    yield from (f"{fusion!r}" for fusion in (*diff.fusions_gained, *diff.fusions_lost, *diff.fusions_changed))
    for stage in diff.stages.values():
        yield f"{stage!r}"
        yield from (f"  {a.name} is {b.name}" for a, b in stage.pairs)
        yield f"  gone {[node.name for node in stage.only_in_a]} came {[node.name for node in stage.only_in_b]}"


def _export(capture: ex.Capture) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        written = capture.to_model_explorer_json(Path(folder) / "graph.json").read_text(encoding="utf-8")
    yield json.dumps(json.loads(written), indent=0)
