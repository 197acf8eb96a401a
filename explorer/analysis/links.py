"""Links between nodes of different stages that are the same operation.

A program that Explorer compiled has numbered equations and contains its links (`capture/recording.py`). Other modules
are linked by their metadata. Two nodes are linked if the innermost frames of their stacks are the same place, and if
their names are equal, or at least primitive, transforms and number of enclosing loops. A node may have several links; a
node without metadata has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import repeat
from typing import NamedTuple

import numpy as np

from explorer.model.graph import Graph
from explorer.model.links import INFERRED, EquationSets, Links

_Key = tuple[object, ...]

_CALLS = frozenset(["jit", "pjit", "xla_call"])
_SAME = {"scan": "while", "pjit": "jit"}  # primitives that lowering renames


def link_stages(graphs: Mapping[str, Graph], exact: Mapping[str, EquationSets]) -> Links:
    """Return the links of every stage of a capture to its first stage: those in `exact`, others by metadata."""
    first, *others = graphs or ("",)
    rows: dict[_Key, list[int]] = {}
    # With exact sets for all stages, no metadata needs to be read.
    if not exact.keys() >= {*others}:
        graph = graphs[first]
        for row, (scope, frame, loops) in enumerate(_metadata(graph, first)):
            for key in _keys(graph, graph.scopes[scope], frame, loops):
                rows.setdefault(key, []).append(row)
    sets = {stage: exact[stage] if stage in exact else _linked(graphs[stage], stage, rows) for stage in others}
    return Links(graphs, sets)


def _linked(graph: Graph, stage: str, rows: Mapping[_Key, list[int]]) -> EquationSets:
    """Return the inferred equations of a stage's nodes by metadata, where XLA joins names of merged nodes with `;`."""
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
    """Return the keys that equal operations share, most specific first; empty without metadata."""
    if not name:
        return []
    if frame < 0:  # an argument of the program has a name, `params['w']`, but no frame
        return [(name,)] if "/" not in name else []
    place = graph.frames[frame]
    alike = place.file, place.line, place.column, *parse_path(name)
    if loops < 0:
        # Lowered names have each loop around an operation; those of a jaxpr don't.
        loops = f"/{name}".count("/while/")
    return [(place.file, place.line, place.column, name), (*alike, loops)]


def _metadata(graph: Graph, stage: str) -> Iterator[tuple[int, int, int]]:
    """Yield scope, frame, and for a jaxpr the number of enclosing loops of each node, else -1."""
    scopes: list[int] = graph.scope.tolist()
    frames: list[int] = graph.frame.tolist()
    if stage != "jaxpr":
        yield from zip(scopes, frames, repeat(-1))
        return
    of_group: list[int] = []
    for number, group in enumerate(graph.groups):  # a group comes after its caller's
        outer = int(graph.group[group.caller]) if group.caller >= 0 else -1
        is_loop = group.caller >= 0 and graph.ops[int(graph.op[group.caller])] in ("scan", "while")
        of_group.append((of_group[outer] if 0 <= outer < number else 0) + is_loop)
    for scope, frame, group in zip(scopes, frames, graph.group.tolist(), strict=True):
        yield scope, frame, of_group[group] if group >= 0 else 0


class ParsedPath(NamedTuple):
    """A parsed scope path.

    Args:
        transforms: `transpose`, `jvp`, `vmap`, outermost first.
        primitive: The primitive; `jit` for a call.
    """

    transforms: tuple[str, ...]
    primitive: str


def parse_path(path: str) -> ParsedPath:
    """Parse one scope path. Paths joined by XLA must be split at `;` first.

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
