"""Which nodes of different stages are the same operation.

A program that Explorer compiled has its equations numbered, and says it itself (`capture/recording.py`). A module from
elsewhere, or one compiled without numbers, is linked by what its metadata has: two nodes are linked if the innermost
frame of their stacks is the same place, and the name and the transforms in their scopes are the same. Several may be;
what has no metadata is not linked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from explorer.model.capture import Capture
from explorer.model.equation_sets import INFERRED, EquationSets
from explorer.model.graph import Graph
from explorer.model.links import Links

_Key = tuple[object, ...]

_CALLS = frozenset(["jit", "pjit", "xla_call"])
_SAME = {"scan": "while", "pjit": "jit"}  # primitives that lowering renames


def link_stages(capture: Capture) -> Links:
    """Link every stage of a capture to its first one; reads the stages that were not read yet."""
    graphs = {stage.name: stage.graph for stage in capture.stages}
    first, *others = graphs or ("",)
    known = capture.exact_sets
    rows: Mapping[_Key, list[int]] = {}
    if any(stage not in known for stage in others):
        rows = _rows_by_key(graphs[first])
    return Links(graphs, {stage: known[stage] if stage in known else _linked(graphs[stage], rows) for stage in others})


def _linked(graph: Graph, rows: Mapping[_Key, list[int]]) -> EquationSets:
    """The sets of a stage's nodes by their metadata. XLA joins the names of operations that it merged with `;`."""
    sets: dict[tuple[int, int], list[int]] = {}
    row, equation = list[int](), list[int]()
    scopes: list[int] = graph.scope.tolist()
    for node, (scope, frame) in enumerate(zip(scopes, graph.frame.tolist(), strict=True)):
        if (scope, frame) not in sets:
            names = graph.scopes[scope].split(";")
            sets[scope, frame] = [at for name in names for at in rows.get(_key(graph, name, frame), ())]
        row += [node] * len(sets[scope, frame])
        equation += sets[scope, frame]
    return EquationSets.of_pairs(row, equation, np.full(len(graph.names), INFERRED, np.int8))


def _rows_by_key(graph: Graph) -> dict[_Key, list[int]]:
    rows: dict[_Key, list[int]] = {}
    scopes: list[int] = graph.scope.tolist()
    for node, (scope, frame) in enumerate(zip(scopes, graph.frame.tolist(), strict=True)):
        if key := _key(graph, graph.scopes[scope], frame):
            rows.setdefault(key, []).append(node)
    return rows


def _key(graph: Graph, name: str, frame: int) -> _Key:
    """What two nodes have in common that are the same operation; empty for one without metadata.

    An argument of the program has a name, `params['w']`, and no frame.
    """
    if not name:
        return ()
    if frame < 0:
        return (name,) if "/" not in name else ()
    path, place = parse_path(name), graph.frames[frame]
    return place.file, place.line, place.column, path.transforms, path.primitive


class ParsedPath(NamedTuple):
    """A path of scopes.

    Args:
        transforms: `transpose`, `jvp`, `vmap`, as they stand, the outermost first.
        primitive: What it does; of a call `jit`.
    """

    transforms: tuple[str, ...]
    primitive: str


def parse_path(path: str) -> ParsedPath:
    """Parse one path; XLA's joined ones are to be taken apart at `;` before.

    Example:
        >>> parse_path("jit(f)/transpose(jvp(jit(g)))/while/body/mul")
        ParsedPath(transforms=('transpose', 'jvp'), primitive='mul')
    """
    transforms: list[str] = []
    word = ""
    for word in path.split("/"):
        while word.endswith(")") and "(" in word:
            head, _, word = word[:-1].partition("(")
            if head in _CALLS:
                word = "jit"
                break
            transforms.append(head)
    return ParsedPath(tuple(transforms), _SAME.get(word, word))
