"""The groups that a person reads a graph by."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from explorer.model.graph import Group, Ints


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """A tree of groups over a graph: `group[i]` is the group of node `i`, an index into `groups`, -1 for the top.

    A group's `parent` comes before it, or is -1. Its `kind` is the computation's (`fusion`, `body`, …), `inputs`,
    `outputs`, `phase`, `function`, `scope`, `part` (what is before or after a loop), `repeat` (its children are the
    iterations), `iteration`, or `single` (an iteration that is not like the others).

    Args:
        groups, group: The tree.
        repeat: Of each group, how often it runs, where that is known to be more than once; else 0.
        differ: Of each `repeat`, how many nodes of an iteration differ, in what they call, from one to another.
        twin: Of each node, its counterpart in the first of the iterations that are equal; itself where there are none.
    """

    groups: list[Group]
    group: Ints
    repeat: list[int] = field(default_factory=list[int])
    differ: list[int] = field(default_factory=list[int])
    twin: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
