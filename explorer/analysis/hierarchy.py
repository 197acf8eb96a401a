"""Groups for reading a graph, from information that every graph has: calls, scopes, transforms and repetition.

A training step has 100,000 instructions in few computations. Nodes of a computation are grouped by forward, backward
and update pass (JAX marks these in the scope path), then by the Python functions on their stack and their named scopes.
Equal repetitions become one group of iterations. A computation hangs below the node that calls it; computations without
a caller form one group apart from the program.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np

from explorer.analysis.group_tree import Loop, Tree, group_loop_context, split
from explorer.analysis.kernel_costs import BOUNDARY
from explorer.analysis.loops import trip_counts
from explorer.analysis.repeats import NearRepeat, Repeats, merge_near
from explorer.analysis.source_paths import SourcePaths, Step, parameter_names, phase
from explorer.model.graph import Graph, Group, Hierarchy, Ints
from explorer.model.types import parse_type
from explorer.model.units import count_text

_RETURNS = ("return", "func.return", "stablehlo.return", "tuple")
_MIN_HELD = 0.9  # share of a loop's nodes in the group that holds it
_RUN_OFTEN = ("body", "call")
_MIN_LOOP_SHARE = 0.5  # share of a function's nodes in iterations, for all of it to be the loop's body
_MIN_WHOLE_SHARE = 0.8  # share of a function's nodes in iterations, for the function itself to repeat
_MAX_SINGLES = 4  # iterations shown individually if none resembles another
_MIN_PART_NODES = 12  # in equal parts
_MIN_PARTS_SHARE = 0.5  # of the nodes, in equal parts
_MAX_NAMED = 5  # parameters in a name
_NUMBERS = re.compile(r"[\W_]*\d+")


def nest(graph: Graph) -> Hierarchy:
    """Return the hierarchy of any stage's graph: by computation, phase, Python call stack and repetition."""
    has_loops = any(group.kind in _RUN_OFTEN for group in graph.groups)
    return _Nesting(graph, trip_counts(graph, least=2) if has_loops else {}).nest()


class _Nesting:
    def __init__(self, graph: Graph, trips: Mapping[int, int]) -> None:
        self.graph = graph
        self.trips = trips
        self.places = SourcePaths(graph)
        self.tree = Tree(graph, self.places.shared)
        flat = np.asarray([*[group.kind in BOUNDARY for group in graph.groups], False], bool)
        self.repeats = Repeats(graph, self.places.frame, self.places.line, ~flat[graph.group])
        # Without differentiation, no scope needs to be parsed.
        marked = "transpose(" in "\n".join(graph.scopes)
        self.phases = [phase(scope) for scope in graph.scopes] if marked else []
        self.loops: list[Loop] = []
        self.is_read = np.zeros(len(graph.op), bool)
        self.is_read[graph.operand] = True
        self.differentiates = "backward" in self.phases

    def nest(self) -> Hierarchy:
        graph, tree = self.graph, self.tree
        entries = [i for i, g in enumerate(graph.groups) if g.caller < 0]
        nodes_of = graph.members
        called = _called_by_group(graph)
        aside = self.aside([graph.groups[i].kind for i in entries])
        todo = entries[:]
        seen: set[int] = set()
        while todo:
            computation = todo.pop()
            if computation in seen:
                continue
            seen.add(computation)
            g = graph.groups[computation]
            # A single entry needs no box: it is the whole picture.
            has_box = g.caller >= 0 or (len(entries) > 1 and g.kind != "entry")
            self.fill(nodes_of[computation], g, self.box(g, -1 if g.caller >= 0 else aside) if has_box else -1)
            # Reversed, because the stack returns the last element first.
            todo.extend(reversed(called.get(computation, ())))
        loose = np.flatnonzero(graph.group < 0)
        if len(loose):
            self.fill(loose.astype(np.int32), Group("", "entry"), -1)
        group_loop_context(tree, graph, self.places, self.loops)
        # A counterpart in an inner loop may have a counterpart in an outer loop.
        while (tree.twin[tree.twin] != tree.twin).any():
            tree.twin = tree.twin[tree.twin]
        return tree.finish()

    def aside(self, kinds: Sequence[str]) -> int:
        """Return a new group for computations that never run; -1 if all run.

        `kinds` has the kind of each computation without a caller; all but the entry never run.
        """
        uncalled = len(kinds) - kinds.count("entry") if "entry" in kinds else 0
        return self.tree.add(count_text(uncalled, "computation"), "uncalled", -1) if uncalled else -1

    def box(self, computation: Group, parent: int) -> int:
        name, kind, caller = computation.name.removeprefix("jaxpr="), computation.kind, computation.caller
        box = self.tree.add(name, kind, parent, caller=caller)
        self.tree.boxes.add(box)
        self.tree.repeat[box] = self.trips.get(caller, 0) if kind in _RUN_OFTEN else 0
        return box

    def fill(self, nodes: Ints, computation: Group, box: int) -> None:
        """Put a computation's nodes under `box`, one group per call and scope inside the caller's own."""
        tree, places = self.tree, self.places
        is_entry = computation.caller < 0
        if computation.kind in BOUNDARY:  # a kernel is shown whole, and a reducer has two operations
            tree.group[nodes] = box
            return
        caller = computation.caller
        outer = [] if is_entry else places.steps(int(places.frame[caller]), int(places.scope[caller]))
        ends = self.ends(nodes, box) if is_entry else np.zeros(len(nodes), bool)
        nodes = nodes[~ends]
        width = len(self.graph.scopes)
        pair = places.frame[nodes].astype(np.int64) * width + places.scope[nodes]
        # One number for all three: a place has many nodes, and its steps are walked once.
        pair = pair * 2 + places.is_known[nodes]
        pairs, row = np.unique(pair, return_inverse=True)
        at = [self.descend(box, *divmod(int(p) // 2, width), bool(p % 2), outer, is_entry) for p in pairs]
        if len(nodes):
            tree.group[nodes] = np.asarray(at, np.int32)[row]
            # A loop belongs to one phase: its forward and backward passes are two loops.
            phases = [pair for pair in tree.below(box, nodes) if tree.kind[pair[0]] == "phase"]
            for at_, inside in phases or [(box, nodes)]:
                self.search(at_, inside)

    def ends(self, nodes: Ints, box: int) -> np.ndarray:
        """Group inputs, and results if the program differentiates; return a mask of inputs and results in `nodes`."""
        graph, tree = self.graph, self.tree
        done = np.zeros(len(nodes), bool)
        if "parameter" in graph.ops:
            done = graph.op[nodes] == graph.ops.index("parameter")
            if done.any():
                tree.group[nodes[done]] = tree.child(box, "inputs", "inputs")
        returns = [code for code, op in enumerate(graph.ops) if op in _RETURNS]
        last = np.isin(graph.op[nodes], returns) & ~self.is_read[nodes]
        if last.any():
            tree.group[nodes[last]] = tree.child(box, "outputs", "outputs") if self.differentiates else box
        return done | last

    def descend(self, box: int, frame: int, scope: int, known: bool, outer: list[Step], is_entry: bool) -> int:
        """Return the group of a frame and scope in `box`, added if missing: its phase, then one per function and scope.

        Steps in common with `outer`, those of the caller, get no group.
        """
        at = box
        if is_entry and known and self.differentiates:
            at = self.tree.child(at, self.phases[scope] or "update", "phase")
        steps = self.places.steps(frame, scope)
        same = 0
        while same < min(len(outer), len(steps)) and outer[same][:2] == steps[same][:2]:
            same += 1
        for step in steps[same:]:
            at = self.tree.child(at, step.name, step.kind, step.key, step.level)
        return at

    def search(self, box: int, nodes: Ints) -> None:
        """Group the repetitions among the nodes below `box`, in it or in nested groups."""
        tree = self.tree
        rest = nodes
        # A function may have several loops, one after another.
        while (iteration := self.repeats.chain(rest)) is not None:
            common, iteration = self.loop(rest, iteration)
            inside = iteration >= 0
            for alike in self.fold(rest[inside], iteration[inside], common, nodes):
                self.look_inside(alike, rest[inside])
            rest = rest[~inside]
        part = self.repeats.parts(rest)
        if part is not None and self.fold_parts(rest, part):
            return
        for child, below in tree.below(box, rest):
            if tree.is_made(child):
                self.search(child, below)

    def loop(self, nodes: Ints, iteration: Ints) -> tuple[int, Ints]:
        """Return the innermost group with nearly all of a loop, and the iteration of each of `nodes`, -1 outside."""
        tree, repeats = self.tree, self.repeats
        groups = tree.group[nodes]
        common = tree.common(groups[iteration >= 0], _MIN_HELD)
        below = tree.is_below(common, nodes)
        iteration = np.where(below, iteration, np.int32(-1))
        candidate = below
        if not self.is_whole(common, int((iteration >= 0).sum()), int(below.sum()), _MIN_LOOP_SHARE):
            candidate = below & repeats.same_lines(nodes, iteration)
        return common, repeats.absorb(nodes, iteration, candidate)

    def is_whole(self, common: int, inside: int, every: int, share: float) -> bool:
        return self.tree.is_made(common) and inside >= share * every

    def look_inside(self, iterations: list[int], nodes: Ints) -> None:
        """Group the repetitions inside iterations. Iterations are equal, so stop if the first has no repetition."""
        before = len(self.tree.name)
        inside = dict(self.tree.below(self.tree.parent[iterations[0]], nodes))
        for at in iterations:
            self.search(at, inside.get(at, nodes[:0]))
            if len(self.tree.name) == before:
                return

    def equal_iterations(self, nodes: Ints, iteration: Ints) -> tuple[list[list[int]], bool]:
        """Return the numbers of equal iterations by class, and True if the computations they call are equal too."""
        classes = self.repeats.classes(nodes, iteration)
        if len(classes[0]) >= max(2, sum(map(len, classes)) / 2):
            return classes, True
        # Kernels with parts of a neighbor differ, though the lines may have made the same operations.
        return self.repeats.classes(nodes, iteration, inside=False), False

    def place(self, common: int, nodes: Ints, layers: str, whole: bool) -> tuple[str, int]:
        """Return a loop's name and parent group; a loop that is all of `common` replaces it."""
        if whole:
            return self.tree.name[common], self.tree.parent[common]
        return layers or self.loop_name(common, nodes), common

    def fold(self, nodes: Ints, iteration: Ints, common: int, around: Ints) -> list[list[int]]:
        """Group equal iterations in `common` or in its place; return the iterations of each new group, if any.

        `common` has nearly all of the loop, and `around` has all nodes of `common`.
        """
        tree = self.tree
        classes, exact = self.equal_iterations(nodes, iteration)
        loops = merge_near(self.repeats, nodes, iteration, classes, tree.twin)
        every = int(tree.is_below(common, around).sum())
        layers = self.layers_name(common, nodes)
        whole = not layers and self.is_whole(common, len(nodes), every, _MIN_WHOLE_SHARE)
        if len(loops[0].numbers) < 2 and not (whole and len(loops) <= _MAX_SINGLES):
            return []
        name, parent = self.place(common, nodes, layers, whole)
        made: list[list[int]] = []
        groups: list[int] = []
        last = int(iteration.max())
        loop_of = np.full(last + 1, -1, np.int32)
        for which_loop, loop in enumerate(loops):
            loop_of[loop.numbers] = which_loop
        positions = dict(split(loop_of[iteration], np.arange(len(nodes), dtype=np.int32)))
        for which_loop, loop in enumerate(loops):
            numbers, kept = loop.numbers, positions[which_loop]
            number = np.searchsorted(numbers, iteration[kept]).astype(np.int32)
            if len(numbers) > 1:
                at, iterations = tree.repeat_in(parent, common, name, nodes[kept], number, len(numbers))
                tree.difference[at] = loop.difference
                tree.differ[at] = loop.differ + self.pair_equal(loop, nodes[kept], iteration[kept], exact)
                # The usual iteration first: if it has no repetition, the others probably don't either.
                usual = iterations[numbers.index(loop.classes[0][0])]
                made.append([usual, *(at for at in iterations if at != usual)])
                groups.append(at)
            elif whole:
                which = {0: "first ", last: "last "}.get(numbers[0], "another ")
                at = tree.add(which + name, "single", parent, level=tree.level[common])
                tree.move(nodes[kept], number, common, [at])
                groups.append(at)
        lines = self.lines(parent, nodes)
        if lines:
            self.loops.append(Loop(groups, parent, name, (lines[0], lines[-1])))
        if whole:
            # Constants that stayed in the function would keep it next to its iterations.
            leaves = around[np.diff(self.graph.operand_start)[around] == 0]
            tree.group[leaves[tree.is_below(common, leaves)]] = parent
        return made

    def pair_equal(self, loop: NearRepeat, nodes: Ints, iteration: Ints, exact: bool) -> int:
        """Pair the nodes of equal iterations; return the number of a usual iteration's nodes that differ inside."""
        class_of = np.full(int(iteration.max()) + 1, -1, np.int32)
        for at, alike in enumerate(loop.classes):
            class_of[alike] = at
        positions = split(class_of[iteration], np.arange(len(nodes), dtype=np.int32))
        twin = self.tree.twin
        differ = [self.repeats.twins(nodes[kept], iteration[kept], twin, inside=exact) for _, kept in positions]
        return differ[0]

    def fold_parts(self, nodes: Ints, part: Ints) -> bool:
        """Return True after grouping equal parts; False, without a change, if they are too few of the nodes."""
        tree, repeats = self.tree, self.repeats
        around, nodes, part = len(nodes), nodes[part >= 0], part[part >= 0]
        does = set(part[np.diff(self.graph.operand_start)[nodes] > 0].tolist())  # more than reading a constant
        classes = [alike for alike in repeats.classes(nodes, part) if len(alike) > 2 and alike[0] in does]
        class_of = np.full(int(part.max()) + 1, -1, np.int32)
        for at, alike in enumerate(classes):
            class_of[alike] = at
        if (class_of[part] >= 0).sum() < max(_MIN_PART_NODES, _MIN_PARTS_SHARE * around):
            return False
        for at, kept in split(class_of[part], np.arange(len(nodes), dtype=np.int32)):
            if at < 0:
                continue
            alike = classes[at]
            inside, number = nodes[kept], np.searchsorted(alike, part[kept]).astype(np.int32)
            common = tree.common(tree.group[inside])
            tree.repeat_in(common, common, self.part_name(inside), inside, number, len(alike))
            repeats.twins(inside, number, tree.twin)
        return True

    def layers_name(self, common: int, nodes: Ints) -> str:
        """Return the name, without numbers, that several layers' scopes share; else an empty text."""
        tree = self.tree
        depth = len(tree.path(common))
        paths = [tree.path(group) for group in np.unique(tree.group[nodes]).tolist()]
        inner = {path[depth] if len(path) > depth else -1 for path in paths}
        # Without numbers, `layers_0` and `layers_1` have one name.
        names = {_NUMBERS.sub("", tree.name[group]) if group >= 0 else "" for group in inner}
        return names.pop() if len(names) == 1 < len(inner) else ""

    def loop_name(self, common: int, nodes: Ints) -> str:
        lines = self.lines(common, nodes)
        if not lines:
            return "loop"
        return f"loop, line {lines[0]}" if lines[0] == lines[-1] else f"loop, lines {lines[0]}–{lines[-1]}"

    def lines(self, group: int, nodes: Ints) -> list[int]:
        level = self.tree.level_of(group)
        stacks = {self.places.stack(frame) for frame in np.unique(self.places.frame[nodes]).tolist()}
        return sorted({self.graph.frames[stack[level]].line for stack in stacks if len(stack) > level} - {0})

    def part_name(self, nodes: Ints) -> str:
        names = parameter_names(self.graph, nodes)
        if 0 < len(names) <= _MAX_NAMED:
            return ", ".join(names)
        return str(parse_type(self.graph.types[int(self.graph.type[nodes[-1]])]))


def _called_by_group(graph: Graph) -> dict[int, list[int]]:
    """Return by group the groups that its nodes call, in order; groups without calls are missing."""
    called: dict[int, list[int]] = {}
    for i, group in enumerate(graph.groups):
        if group.caller >= 0:
            called.setdefault(int(graph.group[group.caller]), []).append(i)
    return called
