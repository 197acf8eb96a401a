"""Memory of a program: its buffers with their bytes, their place in the schedule and their maker."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.errors import OutOfRangeError
from explorer.model.declared import cached_property
from explorer.model.graph import Frame, Graph, Ints, Node
from explorer.model.text import aligned
from explorer.model.types import parse_type
from explorer.model.units import bytes_text

KINDS = ("argument", "donated", "constant", "temp", "output", "aliased")
NO_SCHEDULE = "no schedule: not a peak"
_HOST = 5  # Layout::kHostMemorySpace, of every backend
_NEAR = 0.02  # of what is reserved: alignment and the tables of pointers that tuples are
_LITTLE = 1 << 16  # bytes: a TPU's compiler reserves some 32 kB for each loop, whatever its size
_SHOWN = 8  # rows of a table before it says how many more there are

Sizes = NDArray[Any]  # of int64 or, where those would overflow, of Python's integers


@dataclass(frozen=True, slots=True)
class Buffer:
    """One array in memory.

    Args:
        node: What makes it: an instruction, or the parameter or constant that it is.
        type: `f32[8,128]`.
        bytes: Its size.
        kind: `argument` (the caller's, there throughout), `donated` (an argument given away: free after its last
            reader), `constant`, `temp`, `output`, `aliased` (an output that lies where a donated argument was).
        start, end: The first and last step of the schedule in which it is alive.
        space: The memory space; 0 is the device's own, and the only one that counts for the peak.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> memory = explorer.explore(lambda x: jnp.tanh(x) @ x, jnp.ones((64, 64))).live_memory
        >>> [(buffer.kind, buffer.bytes) for buffer in memory.buffers if buffer.kind == "argument"]
        [('argument', 16384)]
    """

    node: Node
    type: str
    bytes: int
    kind: str
    start: int
    end: int
    space: int = 0

    @property
    def source(self) -> tuple[Frame, ...]:
        """The Python stack that made it, innermost frame first; empty where the compiler kept none."""
        return self.node.source

    def __repr__(self) -> str:
        return f"Buffer({self.node.name}: {self.type}, {bytes_text(self.bytes)} {self.kind}, {self.start}–{self.end})"


@dataclass(frozen=True, slots=True)
class Donation:
    """An argument that is not donated though an output of its type could be written over it."""

    argument: Node
    type: str
    bytes: int


@dataclass(frozen=True, eq=False)
class LiveMemory:
    """What is alive at each step of a module's schedule.

    A model of XLA's own buffer assignment: the peak is the most bytes that buffers take up at one step, where arguments
    that are not donated and constants count throughout, outputs from when they are written, and a loop's body once, at
    the loop. It is not what an allocator reserves: that is more by alignment, by gaps between buffers, and by the
    tables of pointers that tuples are (`capture.memory` has XLA's own figures: `argument`, `output`, `temp`, `alias`).
    Of 67 programs compiled for a CPU it is never above what the buffers of XLA's assignment take up at their fullest
    moment, and within 2 % of that for 66; of 57 also within 2 % of all that XLA reserves (`python -m
    tests.corpus_memory`). For a TPU arrays are counted with the tiles that they fill up, and on-chip memory for itself:
    of 65 programs all that need more than 128 kB of its own memory agree with its compiler's assignment to 1 %, none is
    above. What its compiler reserves may be more than both: `reserved` is its figure, `besides` what of it is known.

    Where the text has no schedule (`is_scheduled` is False), its own order was taken for one, and nothing here is a
    peak: whoever runs it decides on an order of their own.

    Columns have one row a buffer, shape `[n]`.

    Args:
        graph: The module's.
        order: The node that runs at each step, shape `[steps]`. The first step is the call: nothing runs yet, and the
            node is the first of the text.
        node: Index of the node that makes the buffer.
        array: Which of the node's arrays it is, a tuple's counted flat.
        size: Bytes, int64; Python's own integers (dtype object) where they might not fit in that.
        kind: Codes into `KINDS`.
        space: Memory space, 0 for the device's own: the others count for themselves (`peaks`).
        start, end: First and last step alive.
        donations: Arguments that could be donated and are not.
        is_scheduled: Whether the text says that its order is the schedule.
        reserved: Bytes of the device's own memory that the compiler says a run takes from its beginning to its end,
            constants counted; 0 where it says nothing.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> memory = explorer.explore(lambda x: jnp.tanh(x) @ x, jnp.ones((64, 64))).live_memory
        >>> memory.peak, memory.peak == int(max(memory.timeline)), memory.peak_step < len(memory.timeline)
        (49152, True, True)
        >>> sum(buffer.bytes for buffer in memory.at(memory.peak_step)) == memory.peak
        True
    """

    graph: Graph
    order: Ints
    node: Ints
    array: Ints
    size: Sizes
    kind: Ints
    space: Ints
    start: Ints
    end: Ints
    donations: tuple[Donation, ...] = ()
    is_scheduled: bool = True
    reserved: int = 0

    def __len__(self) -> int:
        return len(self.node)

    @cached_property
    def timeline(self) -> Sizes:
        """Bytes alive at each step in the device's own memory, shape `[steps]`."""
        return self._timeline(0)

    @property
    def peak(self) -> int:
        """Bytes alive at the fullest step; 0 where nothing runs. No peak where `is_scheduled` is False."""
        return int(self.timeline.max(initial=0))

    @property
    def peaks(self) -> dict[int, int]:
        """Bytes alive at the fullest step of each memory space that is used, the device's own (0) first."""
        spaces: list[int] = np.unique(self.space).tolist()
        return {space: int(self._timeline(space).max(initial=0)) for space in spaces}

    @property
    def peak_step(self) -> int:
        """The first of the fullest steps; -1 where nothing runs."""
        return int(self.timeline.argmax()) if len(self.order) else -1

    @property
    def peak_at(self) -> Node | None:
        """What runs at the peak."""
        return Node(self.graph, int(self.order[self.peak_step])) if len(self.order) else None

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """Every buffer, in the order in which they are made."""
        return tuple(self._buffer(row) for row in range(len(self)))

    def at(self, step: int | None = None) -> tuple[Buffer, ...]:
        """The buffers alive at a step, the largest first; at the peak if no step is given.

        Raises:
            OutOfRangeError: There is no such step.
        """
        step = self.peak_step if step is None else step
        if not 0 <= step < max(len(self.order), 1):
            raise OutOfRangeError(f"step {step} is none of the {len(self.order):,} of this schedule, counted from 0.")
        rows = np.flatnonzero((self.start <= step) & (step <= self.end))
        rows = rows[np.argsort(-self.size[rows], kind="stable")]
        return tuple(self._buffer(int(row)) for row in rows)

    def totals(self, step: int | None = None) -> dict[str, int]:
        """Bytes alive at a step (the peak if none is given) by kind, the kinds there are.

        Example:
            >>> import explorer, jax.numpy as jnp
            >>> memory = explorer.explore(lambda x: jnp.tanh(x) @ x, jnp.ones((64, 64))).live_memory
            >>> memory.totals(memory.peak_step)["argument"], memory.peak_at is not None
            (16384, True)
        """
        step = self.peak_step if step is None else step
        alive = (self.start <= step) & (step <= self.end) & (self.space == 0)
        sizes: dict[str, int] = {kind: int(self.size[alive & (self.kind == i)].sum()) for i, kind in enumerate(KINDS)}
        return {kind: size for kind, size in sizes.items() if size}

    @property
    def besides(self) -> dict[str, int]:
        """What is reserved and in no buffer that is alive at the peak, by why; empty where that is next to nothing.

        An output's place is reserved before it is written, and until then a temporary may lie there. Of the rest the
        text doesn't tell: gaps between buffers, and what kernels need for themselves.
        """
        rest = self.reserved - self.peak
        if not self.is_scheduled or rest <= max(_NEAR * self.reserved, _LITTLE):
            return {}
        unwritten = (self.kind == KINDS.index("output")) & (self.space == 0) & (self.start > self.peak_step)
        outputs = min(int(self.size[unwritten].sum()), rest)
        parts = {"outputs that aren't written yet": outputs, "not known: gaps, kernels' own": rest - outputs}
        return {why: size for why, size in parts.items() if size}

    @property
    def headline(self) -> str:
        """The peak, where and of what; where there is no schedule, that this is none."""
        at = self.peak_at
        if at is None:
            return "nothing runs"
        what = ", ".join(f"{kind} {bytes_text(size)}" for kind, size in self.totals().items())
        where = f"at {at.name}, step {self.peak_step:,} of {len(self.order) - 1:,}: {what}"
        if self.is_scheduled:
            of = f" of the {bytes_text(self.reserved)} that the compiler reserves," if self.besides else ""
            return f"peak {bytes_text(self.peak)}{of} {where}"
        return f"{NO_SCHEDULE}; in the order of the text at most {bytes_text(self.peak)} {where}"

    def table(self, rows: int = _SHOWN) -> str:
        """The peak and the largest buffers alive at it, as text."""
        alive = self.at() if len(self.order) else ()
        cells = [
            (bytes_text(b.bytes), _kind(b), b.node.name, b.type, f"{b.start:,}–{b.end:,}", _place(b))
            for b in alive[:rows]
        ]
        lines = [self.headline, *aligned(cells, (0,), "  ")]
        if len(alive) > rows:
            others = sum(b.bytes for b in alive[rows:] if not b.space)
            lines.append(f"  and {len(alive) - rows:,} more, together {bytes_text(others)}")
        return "\n".join([*lines, *self._remarks()])

    def _remarks(self) -> Iterator[str]:
        """What a table says below its rows: what is reserved besides, other memory spaces, what could be donated."""
        if self.besides:
            parts = ", ".join(f"{bytes_text(size)} {why}" for why, size in self.besides.items())
            yield f"  reserved besides: {parts}"
        apart = [f"{space_name(space)} {bytes_text(size)}" for space, size in self.peaks.items() if space]
        if apart:
            yield f"  besides, {'at most' if self.is_scheduled else 'in this order'} in {', '.join(apart)}"
        if self.donations:
            could = bytes_text(sum(donation.bytes for donation in self.donations))
            what = "1 argument" if len(self.donations) == 1 else f"{len(self.donations):,} arguments"
            whose = "its type" if len(self.donations) == 1 else "their types"
            yield f"  {what} of {could} could be donated: an output has {whose}"

    def _timeline(self, space: int) -> Sizes:
        change = np.zeros(len(self.order) + 1, self.size.dtype)
        own = self.space == space
        np.add.at(change, self.start[own], self.size[own])
        np.subtract.at(change, self.end[own] + 1, self.size[own])
        return np.cumsum(change[:-1])

    def _buffer(self, row: int) -> Buffer:
        node = Node(self.graph, int(self.node[row]))
        return Buffer(
            node=node,
            type=str(parse_type(node.type).arrays[int(self.array[row])]),
            bytes=int(self.size[row]),
            kind=KINDS[int(self.kind[row])],
            start=int(self.start[row]),
            end=int(self.end[row]),
            space=int(self.space[row]),
        )

    def __repr__(self) -> str:
        return f"LiveMemory({self.table()})"


def space_name(space: int) -> str:
    """A memory space as HLO's layouts write it; which one the others are depends on the device: 1 is a TPU's VMEM.

    Example:
        >>> space_name(5), space_name(1)
        ('host memory S(5)', 'memory space S(1)')
    """
    return f"{'host memory' if space == _HOST else 'memory space'} S({space})"


def _kind(buffer: Buffer) -> str:
    return f"{buffer.kind} S({buffer.space})" if buffer.space else buffer.kind


def _place(buffer: Buffer) -> str:
    place = buffer.node.place
    return f"{place.function.rpartition('.')[2]}:{place.line}" if place is not None else ""


# What a compiler says of a program, and what a person calls it, in the order in which it is drawn.
USES = (("argument", "arguments"), ("output", "outputs"), ("temp", "temporaries"), ("generated code", "code"))


def needed_bytes(uses: Mapping[str, int]) -> float:
    """Bytes of a device's memory that a program needs, by what its compiler says of each use; NaN where it doesn't.

    Outputs that lie where a donated argument was take nothing. The code counts: a TPU keeps it in the same memory, and
    its compiler refuses a program by the sum. Of an elementwise program on a v5e, arguments and outputs of 15.746 GiB
    and a code of 2.02 MiB were refused as 43 KiB too many for the 15.748 GiB that there are. The compilers of GPUs and
    CPUs say 0.

    Example:
        >>> needed_bytes({"argument": 100, "output": 60, "temp": 20, "alias": 60, "generated code": 5})
        125
        >>> needed_bytes({})
        nan
    """
    if not uses:
        return math.nan
    return sum(uses.get(use, 0) for use, _ in USES) - uses.get("alias", 0)
