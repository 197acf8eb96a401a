"""What stands before and after a loop of layers, as groups of their own, so that the first view tells the story:
forward ▸ embed, block ×24, loss; and the same names on the way back.

The lines of the function that holds the loop decide: what is above it in the program comes before, what is below after.
The backward pass keeps the forward's lines, so it gets the forward's names.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from explorer.analysis.outline.group_tree import Tree
from explorer.analysis.outline.source_paths import SourcePaths, parameter_names
from explorer.model.graph import Graph, Ints

_PHASES = ("forward", "update", "backward")  # the backward pass takes the names of the forward
_FEWEST = 3  # things before or after a loop that are worth a box, where no phase asks for one
_NAMED = 2  # parameters that a name lists


class Loop(NamedTuple):
    """A loop that was found: the groups of its iterations, in `parent`, and the lines there that it runs from."""

    groups: list[int]
    parent: int
    name: str
    lines: tuple[int, int]


class _Side(NamedTuple):
    """What stands before or after a loop: groups with the nodes inside each, and nodes that are in no such group."""

    groups: list[int]
    inside: list[Ints]
    loose: list[Ints]

    def nodes(self) -> Ints:
        return np.concatenate([np.zeros(0, np.int32), *self.loose, *self.inside])


def group_loop_context(tree: Tree, graph: Graph, places: SourcePaths, loops: list[Loop]) -> None:
    """Group what stands before and after each loop."""
    names: dict[tuple[str, tuple[int, int], str], str] = {}
    for loop in sorted(loops, key=lambda loop: _phase_order(tree, loop.parent)):
        _group_sides(tree, graph, places, loop, names)


def _phase_order(tree: Tree, group: int) -> int:
    outermost = tree.name[tree.path(group)[0]] if group >= 0 else ""
    return _PHASES.index(outermost) if outermost in _PHASES else -1


def _group_sides(
    tree: Tree, graph: Graph, places: SourcePaths, loop: Loop, names: dict[tuple[str, tuple[int, int], str], str]
) -> None:
    """Add a group for each side of a loop that is worth one, named as in `names` where an earlier phase named it."""
    function = loop.parent
    level = tree.level_of(function)
    sides = _sides(tree, graph, places, loop, level)
    is_phase = _phase_order(tree, function) >= 0
    parent = _lift_only_function(tree, function) if is_phase else function
    for which, side in sides.items():
        if not _is_worth_a_group(tree, side, is_phase):
            continue
        key = (tree.name[function] if function >= 0 else "", loop.lines, which)
        if key not in names:
            names[key] = _name(tree, graph, side.nodes(), loop.name, function, which, is_phase)
        part = tree.add(names[key], "part", parent, level=level)
        for group in side.groups:
            tree.hang(group, part)
        for nodes in side.loose:
            tree.group[nodes] = part


def _sides(tree: Tree, graph: Graph, places: SourcePaths, loop: Loop, level: int) -> dict[str, _Side]:
    """What of the loop's parent its lines put "before" and "after" the loop; the rest is left out."""
    sides = {"before": _Side([], [], []), "after": _Side([], [], [])}
    beside = _Side([], [], [])
    first, last = loop.lines

    def side_of(frame: int) -> _Side:
        stack = places.stack(frame)
        line = graph.frames[stack[level]].line if len(stack) > level else 0
        return sides["before"] if 0 < line < first else sides["after"] if line > last else beside

    direct = np.flatnonzero(tree.group == loop.parent).astype(np.int32)
    for frame in np.unique(places.frame[direct]).tolist():
        side_of(frame).loose.append(direct[places.frame[direct] == frame])
    for child, inside in tree.below(loop.parent, np.arange(len(graph.names), dtype=np.int32)):
        if child not in loop.groups and (tree.is_made(child) or tree.kind[child] in ("repeat", "single")):
            side = side_of(int(places.frame[inside[0]]))
            side.groups.append(child)
            side.inside.append(inside)
    return sides


def _lift_only_function(tree: Tree, function: int) -> int:
    """Move what is in the only function of a phase into the phase; the group where it is then."""
    phase = tree.parent[function]
    if tree.kind[function] != "function" or len(tree.children[phase]) != 1:
        return function
    for child in tree.children[function][:]:
        tree.hang(child, phase)
    tree.group[tree.group == function] = phase
    return phase


def _is_worth_a_group(tree: Tree, side: _Side, is_phase: bool) -> bool:
    things = len(side.groups) + sum(map(len, side.loose))
    # A single group has a name of its own already, but that of a repetition says nothing of where it is.
    has_name = things == len(side.groups) == 1 and tree.kind[side.groups[0]] != "repeat"
    return not has_name and things >= (1 if is_phase else _FEWEST)


def _name(tree: Tree, graph: Graph, nodes: Ints, loop: str, function: int, which: str, is_phase: bool) -> str:
    """After the loop, in what is differentiated, comes what the function is named for; else the parameters name it."""
    if which == "after" and is_phase and tree.kind[function] == "function":
        return tree.name[function]
    parameters = parameter_names(graph, nodes)
    return ", ".join(parameters) if 0 < len(parameters) <= _NAMED else f"{which} {loop}"
