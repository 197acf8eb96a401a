"""What is in memory while a module runs: every buffer with its bytes, its place in the schedule and who made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from explorer.analysis.memory.liveness import Walk
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints, Node
from explorer.model.live_memory import KINDS, Donation, LiveMemory
from explorer.model.types import parse_type


def read_memory(graph: Graph) -> LiveMemory:
    """When each buffer of an HLO module is alive; its order is the schedule where the module is scheduled."""
    walk = Walk(graph)
    kinds = np.full(len(walk.node), KINDS.index("temp"), np.int32)
    arguments = [value for values in walk.arguments.values() for value in values]
    aliased = walk.aliased()
    for kind, values in (
        ("constant", walk.constants),
        ("output", walk.outputs),
        ("aliased", aliased),
        ("argument", arguments),
        ("donated", walk.donated()),
    ):
        kinds[list(values)] = KINDS.index(kind)
    size = np.asarray(walk.size, np.int64)
    kept = np.flatnonzero(size)  # tokens and what only renames something weigh nothing

    def column(values: list[int]) -> Ints:
        return np.asarray(values, np.int32)[kept]

    return LiveMemory(
        graph=graph,
        order=np.asarray(walk.steps, np.int32),
        node=column(walk.node),
        array=column(walk.array),
        size=size[kept],
        kind=kinds[kept],
        space=column(walk.space),
        start=column(walk.start),
        end=column(walk.end),
        donations=_donations(walk, graph, set(arguments) - walk.donated(), set(walk.outputs) - aliased),
        is_scheduled=graph.attributes.get("is_scheduled") == "true",
    )


def live_memory(capture: Capture) -> LiveMemory:
    """What is in memory at each step of a capture's optimised program."""
    return read_memory(capture.hlo.graph)


def _donations(walk: Walk, graph: Graph, arguments: set[int], outputs: set[int]) -> tuple[Donation, ...]:
    """Each output takes the place of one argument of its type, as XLA would have it."""

    def types_of(values: Sequence[int]) -> list[str]:
        types = [parse_type(graph.types[int(graph.type[walk.node[value]])]) for value in values]
        return [str(type_.arrays[walk.array[value]]) for type_, value in zip(types, values, strict=True)]

    given, written = sorted(arguments), sorted(outputs - arguments)
    types = types_of([*given, *written])
    free = Counter(types[len(given) :])
    donations: list[Donation] = []
    for value, type_ in zip(given, types, strict=False):
        if free[type_] > 0 and walk.size[value]:
            free[type_] -= 1
            donations.append(Donation(Node(graph, walk.node[value]), type_, walk.size[value]))
    return tuple(donations)
