"""What is in memory while a module runs: every buffer with its bytes, its place in the schedule and who made it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from explorer.analysis.memory.liveness import Lifetimes, lifetimes
from explorer.analysis.memory.schedule import Schedule, schedule_of
from explorer.errors import NotRecordedError
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Ints, Node
from explorer.model.live_memory import KINDS, Donation, LiveMemory, Sizes

_BY_USE = ("argument", "output", "temp")


def read_memory(graph: Graph) -> LiveMemory:
    """When each buffer of an HLO module is alive; its order is the schedule where the module is scheduled."""
    schedule = schedule_of(graph)
    alive, values = lifetimes(schedule), schedule.values
    kinds = np.full(len(values), KINDS.index("temp"), np.int32)
    constants = {value for leaves in schedule.constants.values() for value in leaves}
    for kind, members in (
        ("constant", constants),
        ("output", alive.outputs),
        ("aliased", alive.aliased),
        ("argument", alive.arguments),
        ("donated", alive.donated),
    ):
        kinds[list(members)] = KINDS.index(kind)
    kept = np.flatnonzero(np.asarray(values.size, object))  # tokens and what only renames something weigh nothing

    def column(rows: Sequence[int]) -> Ints:
        return np.asarray(rows, np.int32)[kept]

    return LiveMemory(
        graph=graph,
        order=np.asarray(schedule.steps, np.int32),
        node=column(values.node),
        array=column(values.array),
        size=_sizes(values.size)[kept],
        kind=kinds[kept],
        space=column([type_.memory_space for type_ in values.type]),
        start=column(alive.start),
        end=column(alive.end),
        donations=_donations(schedule, alive),
        is_scheduled=graph.attributes.get("is_scheduled") == "true",
    )


def _sizes(sizes: Sequence[int]) -> Sizes:
    """Bytes as int64, or as Python's own integers where all together might not fit in that: 2**40 × 2**40 elements."""
    return np.asarray(sizes, np.int64 if sum(sizes) < 1 << 62 else object)


def live_memory(capture: Capture) -> LiveMemory:
    """What is in memory at each step of a capture's optimised program.

    Raises:
        NotRecordedError: The capture has none.
    """
    if not any(stage.name == "hlo" for stage in capture.stages):
        there = ", ".join(stage.name for stage in capture.stages) or "no stage"
        raise NotRecordedError(
            f"what is in memory is decided with the schedule of the optimised program (hlo); this capture has {there}. "
            "Hint: explorer.explore(function, *arguments) compiles it."
        )
    live = read_memory(capture.hlo.graph)
    return replace(live, reserved=_reserved(live, capture.memory))


def _reserved(live: LiveMemory, uses: Mapping[str, int]) -> int:
    """What a compiler says that it takes of the device's own memory; 0 where it says nothing.

    Constants are in a figure of all, and in none of those by use.
    """
    if "reserved" in uses or not all(use in uses for use in _BY_USE):
        return uses.get("reserved", 0)
    constants = int(live.size[(live.kind == KINDS.index("constant")) & (live.space == 0)].sum())
    return sum(uses[use] for use in _BY_USE) - uses.get("alias", 0) + constants


def _donations(schedule: Schedule, alive: Lifetimes) -> tuple[Donation, ...]:
    """Each output takes the place of one argument of its type, as XLA would have it."""
    values = schedule.values
    written = alive.outputs - alive.aliased - alive.arguments
    types = [*map(str, values.type)]
    free = Counter(types[value] for value in written)
    donations: list[Donation] = []
    for value in sorted(alive.arguments - alive.donated):
        type_ = types[value]
        if free[type_] > 0 and values.size[value]:
            free[type_] -= 1
            donations.append(Donation(Node(schedule.code.graph, values.node[value]), type_, values.size[value]))
    return tuple(donations)
