"""Recorded events of a profile by column, the timeline of one call, and flame graphs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from explorer.model.declared import cached_property
from explorer.model.graph import Floats, Frame, Ints

# Kinds of events.
THUNK = 0  # an instruction runs
REGION = 1  # work of a thread for another thread
RECORD = 2  # work is given to another thread; a moment
WAIT = 3  # wait for other threads
BETWEEN = 4  # the runtime between instructions
HOST = 5  # anything else: Python, dispatch


@dataclass(frozen=True, slots=True)
class Op:
    """One instruction of one program, named as by the profiler.

    Args:
        program, module: Number and name of the program; -1 and empty outside of programs, such as a copy by the host.
        name: Name of the instruction.
        kernel: On a GPU, name of the launched function, else empty. An instruction may launch several; all kernels of
            a CUDA graph belong to the call that launched the graph.
    """

    program: int
    module: str
    name: str
    kernel: str = ""


@dataclass(frozen=True, eq=False)
class Events:
    """Events by column, shape `[n]`, in any order.

    Args:
        thread: Index into `threads`.
        start, end: Seconds since the profiler started.
        kind: One of the constants above.
        what: For a THUNK, index into `ops`. For a RECORD and a REGION, number of the work item, or -1. For other kinds,
            index into `names`.
        threads: Names of CPU threads or GPU streams.
        ops: Executed instructions.
        names: Names of host events.
        windows: Start and end of each call of the profiled function, shape `[runs, 2]`, in order.
        python: Index of the calling thread; -1 if unknown.
    """

    thread: Ints
    start: Floats
    end: Floats
    kind: Ints
    what: NDArray[np.int64]
    threads: Sequence[str]
    ops: Sequence[Op]
    names: Sequence[str]
    windows: Floats
    python: int = -1

    def __len__(self) -> int:
        return len(self.thread)


@dataclass(frozen=True, eq=False)
class Timeline:
    """One call of median duration, as columns of shape `[m]` sorted by start.

    Args:
        start, end: Seconds since the start of the call.
        thread: Index into `threads`.
        op: Row of the profile's `ops`.
        waits: True if the thread only waits for others that run the same instruction.
        threads: Names of the active threads or GPU streams.
        seconds: Duration of the call.
        left_out: Number of omitted intervals, the shortest ones first.
    """

    start: Floats
    end: Floats
    thread: Ints
    op: Ints
    waits: NDArray[np.bool_]
    threads: Sequence[str]
    seconds: float
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.start)


By = Literal["scope", "stack"]
_NANO = 1e9


@dataclass(frozen=True, slots=True)
class FlameNode:
    """One box: a scope, a line of the source, a library, or a kernel.

    Args:
        name: `attention`, `block (model.py:12)`, `flax`, `fusion.3`.
        kind: `root`, `module`, `scope`, `frame`, `package`, `none`, `kernel`, or `more` for small ones put together.
        seconds: Time per call, inner boxes included.
        own: Time per call without inner boxes.
        parent: Index of the box around it; -1 for the root.
        op: Index of a kernel in the profile's `ops`; -1 for other boxes.
        frame: Source position of a `frame`; None for other boxes.
        count: Number of boxes that a `more` box sums up; 1 for other boxes.
    """

    name: str
    kind: str
    seconds: float
    own: float = 0.0
    parent: int = -1
    op: int = -1
    frame: Frame | None = None
    count: int = 1


@dataclass(frozen=True, eq=False)
class Flame:
    """Flame graph as boxes, each before the boxes inside it, which follow longest first.

    Example:
        >>> import explorer as ex
        >>> from explorer.analysis.profile_trees import flame
        >>> dot = ex.types.OpTime("dot.1", "dot", "jit_f", 1, 3e-3, 0.75, 3e-3, 1, 0.0, 0.0, None, (),
        ...     "layer/attention")
        >>> add = ex.types.OpTime("add.2", "add", "jit_f", 1, 1e-3, 0.25, 1e-3, 1, 0.0, 0.0, None, (), "layer")
        >>> graph = flame([dot, add], "scope", "f")
        >>> graph
        Flame(f by scope: 2 kernels, 4 deep)
        >>> print(graph.to_folded())
        f;layer;attention;dot.1 3000000
        f;layer;add.2 1000000
    """

    nodes: Sequence[FlameNode]
    by: By

    @property
    def seconds(self) -> float:
        """Return the seconds of the root, the device's time per call."""
        return self.nodes[0].seconds

    @cached_property
    def depths(self) -> Sequence[int]:
        """Return the depth of each box, 0 for the root."""
        depths: list[int] = []
        for node in self.nodes:
            # A box comes after its parent, whose depth is known.
            depths.append(depths[node.parent] + 1 if node.parent >= 0 else 0)
        return depths

    @cached_property
    def children(self) -> Sequence[Sequence[int]]:
        """Return the indices of the boxes directly inside each box."""
        children: list[list[int]] = [[] for _ in self.nodes]
        for i, node in enumerate(self.nodes):
            if node.parent >= 0:
                children[node.parent].append(i)
        return children

    def path(self, index: int) -> tuple[str, ...]:
        """Return the names of the boxes from the root to one box."""
        return tuple(reversed([node.name for node in self._outwards(index)]))

    def to_folded(self) -> str:
        """Return collapsed stacks: one line per box with time of its own, with its path and nanoseconds per call.

        flamegraph.pl, speedscope, inferno and others open this text (Gregg: github.com/brendangregg/FlameGraph).
        """
        rows = ((self.path(i), round(node.own * _NANO)) for i, node in enumerate(self.nodes) if node.own > 0)
        return "\n".join(f"{';'.join(map(_folded, path))} {nanoseconds}" for path, nanoseconds in rows if nanoseconds)

    def pruned(self, most: int) -> Flame:
        """Return a copy with the `most` longest boxes; inside each box, one `more` box sums up the omitted boxes.

        If there are no more than `most` boxes, return this graph itself.
        """
        if len(self.nodes) <= most:
            return self
        # Among equally long boxes the outer box comes first, so that no box is kept without its parent.
        nodes = self.nodes
        longest = sorted(range(len(nodes)), key=lambda i: (-nodes[i].seconds, i))[: max(most, 1)]
        place = {index: i for i, index in enumerate(sorted(longest))}
        kept = [replace(nodes[index], parent=place.get(nodes[index].parent, -1)) for index in place]
        small: dict[int, list[float]] = {}
        for i, node in enumerate(nodes):
            if i not in place and node.parent in place:
                small.setdefault(place[node.parent], []).append(node.seconds)
        for parent, inside in small.items():
            kept.append(FlameNode(f"{len(inside):,} more", "more", sum(inside), sum(inside), parent, count=len(inside)))
        return Flame(depth_first(kept), self.by)

    def _outwards(self, index: int) -> Iterator[FlameNode]:
        while index >= 0:
            yield self.nodes[index]
            index = self.nodes[index].parent

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        kernels = sum(node.kind == "kernel" for node in self.nodes)
        deep = max(self.depths) + 1
        name = self.nodes[0].name
        return f"Flame({name} by {self.by}: {kernels:,} kernel{'' if kernels == 1 else 's'}, {deep:,} deep)"


def depth_first(nodes: Sequence[FlameNode]) -> list[FlameNode]:
    """Return the boxes of a tree, each before the boxes inside it; `nodes[0]` is the root.

    The boxes inside one box are sorted by decreasing time, with a `more` box last.
    """
    inside: dict[int, list[int]] = {}
    for i, node in enumerate(nodes):
        inside.setdefault(node.parent, []).append(i)
    ordered: list[FlameNode] = []
    pending = [(0, -1)]
    while pending:
        index, parent = pending.pop()
        ordered.append(replace(nodes[index], parent=parent))
        if index in inside:
            below = sorted(inside[index], key=lambda i: (nodes[i].kind == "more", -nodes[i].seconds, nodes[i].name))
            # Reversed, because the last of `pending` is taken first.
            pending += [(i, len(ordered) - 1) for i in reversed(below)]
    return ordered


def _folded(name: str) -> str:
    """Return a name as one step of a collapsed stack, without `;` or line breaks; `?` for an empty name."""
    # In a folded line, semicolons divide the boxes, and the last space the time.
    return " ".join(name.replace(";", ",").split()) or "?"
