"""What stands before and after a loop of layers, as groups of their own, so that the first view tells the story:
forward ▸ embed, block ×24, loss; and the same names on the way back.

The lines of the function that holds the loop tell: what is above it in the program comes before, what is below after.
The backward pass keeps the forward's lines, so it gets the forward's names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from explorer.analysis.outline.group_tree import Tree
from explorer.analysis.outline.source_paths import SourcePaths, parameter_names
from explorer.model.graph import Graph, Ints

__all__ = ["Loop", "tell"]

_PHASES = ("forward", "update", "backward")  # the backward pass takes the names of the forward
_FEWEST = 3  # things before or after a loop that are worth a box, where no phase asks for one
_NAMED = 2  # parameters that a name tells


class Loop(NamedTuple):
    """A loop that was found: the groups of its iterations, in `parent`, and the lines there that it runs from."""

    groups: list[int]
    parent: int
    name: str
    lines: tuple[int, int]


def tell(tree: Tree, graph: Graph, places: SourcePaths, loops: list[Loop]) -> None:
    """Group what stands before and after each loop."""
    names: dict[tuple[str, tuple[int, int], str], str] = {}
    for loop in sorted(loops, key=lambda loop: _phase_order(tree, loop.parent)):
        _tell(tree, graph, places, loop, names)


def _phase_order(tree: Tree, group: int) -> int:
    outermost = tree.name[tree.path(group)[0]] if group >= 0 else ""
    return _PHASES.index(outermost) if outermost in _PHASES else -1


def _tell(
    tree: Tree, graph: Graph, places: SourcePaths, loop: Loop, names: dict[tuple[str, tuple[int, int], str], str]
) -> None:
    parent, (first, last) = loop.parent, loop.lines
    level = tree.level[parent] if parent >= 0 else 0
    sides: dict[str, tuple[list[int], list[Ints]]] = {"before": ([], []), "after": ([], [])}

    def side(frame: int) -> tuple[list[int], list[Ints]] | None:
        stack = places.stack(frame)
        line = graph.frames[stack[level]].line if len(stack) > level else 0
        return sides["before"] if 0 < line < first else sides["after"] if line > last else None

    direct = np.flatnonzero(tree.group == parent).astype(np.int32)
    for frame in np.unique(places.frame[direct]).tolist():
        found = side(frame)
        if found is not None:
            found[1].append(direct[places.frame[direct] == frame])
    for child, inside in tree.below(parent, np.arange(len(graph.names), dtype=np.int32)):
        if child not in loop.groups and (tree.is_made(child) or tree.kind[child] in ("repeat", "single")):
            found = side(int(places.frame[inside[0]]))
            if found is not None:
                found[0].append(child)
                found[1].append(inside)
    function = parent
    is_phase = parent >= 0 and _phase_order(tree, parent) >= 0
    if is_phase and tree.kind[parent] == "function" and len(tree.children[tree.parent[parent]]) == 1:
        # The only function of a phase: its parts are the phase's.
        parent = tree.parent[parent]
        for child in tree.children[function][:]:
            tree.hang(child, parent)
        tree.group[tree.group == function] = parent
    for which, (groups, found) in sides.items():
        nodes = np.concatenate([np.zeros(0, np.int32), *found])
        things = len(groups) + int(np.isin(nodes, direct).sum())
        is_told = things == len(groups) == 1 and tree.kind[groups[0]] != "repeat"  # by its own name
        if not things or is_told or (things < _FEWEST and not is_phase):
            continue
        key = (tree.name[function] if function >= 0 else "", loop.lines, which)
        if key not in names:
            names[key] = _name(tree, graph, nodes, loop.name, function, which, is_phase)
        part = tree.add(names[key], "part", parent, level=level)
        for group in groups:
            tree.hang(group, part)
        own = nodes[np.isin(nodes, direct)]
        tree.group[own] = part


def _name(tree: Tree, graph: Graph, nodes: Ints, loop: str, function: int, which: str, is_phase: bool) -> str:
    """After the loop, in what is differentiated, comes what the function is named for; else parameters tell."""
    if which == "after" and is_phase and tree.kind[function] == "function":
        return tree.name[function]
    parameters = parameter_names(graph, nodes)
    return ", ".join(parameters) if 0 < len(parameters) <= _NAMED else f"{which} {loop}"
