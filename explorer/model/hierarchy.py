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
    iterations), `iteration`, `single` (an iteration that is not like the others), or `uncalled` (the computations that
    nothing calls: no part of the program).

    Args:
        groups, group: The tree.
        repeat: Of each group, how often it runs, where that is known to be more than once; else 0.
        differ: Of each `repeat`, how many nodes of an iteration differ, in what they call, from one to another, or have
            no counterpart in another.
        twin: Of each node, its counterpart in the first of the iterations that are equal or nearly so; itself where
            there are none. It has the same op, and in iterations that are equal the same type.
        difference: Of each `repeat`, in words what differs between iterations that are only nearly equal:
            `6, 12, 18 and 24 without and, compare`; empty where all are equal.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> @jax.jit
        ... def layer(x):
        ...     return jnp.tanh(x @ x)
        >>> graph = explorer.explore(lambda x: layer(layer(x)), jnp.ones((8, 8))).jaxpr.graph
        >>> [(group.name, group.kind) for group in graph.hierarchy.groups]
        [('layer', 'call'), ('layer', 'function'), ('layer', 'call'), ('layer', 'function')]
    """

    groups: list[Group]
    group: Ints
    repeat: list[int] = field(default_factory=list[int])
    differ: list[int] = field(default_factory=list[int])
    twin: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    difference: list[str] = field(default_factory=list[str])
