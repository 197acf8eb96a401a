"""Which nodes of different stages are the same operation.

A program that Explorer compiled has its equations numbered, and says it itself (`capture/recording.py`). A module from
elsewhere, or one compiled without numbers, is linked by what its metadata has: two nodes are linked if the innermost
frame of their stacks is the same place, and their names are the same, or at least the primitive, the transforms and the
number of loops around it. Several may be; what has no metadata is not linked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import NamedTuple

import numpy as np

from explorer.analysis.passes.origins import known_sets
from explorer.model.capture import Capture
from explorer.model.graph import Graph
from explorer.model.links import INFERRED, EquationSets, Links

_Key = tuple[object, ...]

_CALLS = frozenset(["jit", "pjit", "xla_call"])
_SAME = {"scan": "while", "pjit": "jit"}  # primitives that lowering renames


def link_stages(capture: Capture) -> Links:
    """Link every stage of a capture to its first one; reads the stages that were not read yet."""
    graphs = {stage.name: stage.graph for stage in capture.stages}
    first, *others = graphs or ("",)
    exact = known_sets(capture)
    rows: dict[_Key, list[int]] = {}
    if any(stage not in exact for stage in others):
        graph = graphs[first]
        for row, (scope, frame, loops) in enumerate(_metadata(graph, first)):
            for key in _keys(graph, graph.scopes[scope], frame, loops):
                rows.setdefault(key, []).append(row)
    sets = {stage: exact[stage] if stage in exact else _linked(graphs[stage], stage, rows) for stage in others}
    return Links(graphs, sets)


def _linked(graph: Graph, stage: str, rows: Mapping[_Key, list[int]]) -> EquationSets:
    """The sets of a stage's nodes by their metadata. XLA joins the names of operations that it merged with `;`."""
    sets: dict[tuple[int, int], list[int]] = {}
    row, equation = list[int](), list[int]()
    for node, (scope, frame, loops) in enumerate(_metadata(graph, stage)):
        if (scope, frame) not in sets:
            keys = [_keys(graph, name, frame, loops) for name in graph.scopes[scope].split(";")]
            alike = (next((rows[key] for key in of_name if key in rows), ()) for of_name in keys)
            sets[scope, frame] = [at for several in alike for at in several]
        row += [node] * len(sets[scope, frame])
        equation += sets[scope, frame]
    return EquationSets.of_pairs(row, equation, np.full(len(graph.names), INFERRED, np.int8))


def _keys(graph: Graph, name: str, frame: int, loops: int) -> list[_Key]:
    """What two nodes have in common that are the same operation, the closest first; empty for one without metadata.

    An argument of the program has a name, `params['w']`, and no frame.
    """
    if not name:
        return []
    if frame < 0:
        return [(name,)] if "/" not in name else []
    place = graph.frames[frame]
    alike = place.file, place.line, place.column, *parse_path(name)
    if loops < 0:
        loops = f"/{name}".count("/while/")
    return [(place.file, place.line, place.column, name), (*alike, loops)]


def _metadata(graph: Graph, stage: str) -> Iterator[tuple[int, int, int]]:
    """The scope and the frame of each node, and in a jaxpr the loops around it; -1 where the name says them."""
    scopes: list[int] = graph.scope.tolist()
    frames: list[int] = graph.frame.tolist()
    if stage != "jaxpr":
        yield from zip(scopes, frames, repeat(-1))
        return
    of_group: list[int] = []
    for number, group in enumerate(graph.groups):  # each after that of its caller
        outer = int(graph.group[group.caller]) if group.caller >= 0 else -1
        is_loop = group.caller >= 0 and graph.ops[int(graph.op[group.caller])] in ("scan", "while")
        of_group.append((of_group[outer] if 0 <= outer < number else 0) + is_loop)
    for scope, frame, group in zip(scopes, frames, graph.group.tolist(), strict=True):
        yield scope, frame, of_group[group] if group >= 0 else 0


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
