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
NO_SCHEDULE = "no schedule, so the peak is unknown"
_HOST = 5  # Layout::kHostMemorySpace, of every backend
_NEAR = 0.02  # of the reserved bytes: alignment and the pointer tables of tuples
_LITTLE = 1 << 16  # bytes: a TPU's compiler reserves some 32 kB for each loop, whatever its size
_SHOWN = 8  # rows of a table before the count of the others

Sizes = NDArray[Any]  # of int64 or, where those would overflow, of Python's integers


@dataclass(frozen=True, slots=True)
class Buffer:
    """One buffer in memory.

    Args:
        node: Instruction, parameter or constant that makes it.
        type: `f32[8,128]`.
        bytes: Size.
        kind: `argument` (live throughout), `donated` (free after its last reader), `constant`, `temp`, `output`, or
            `aliased` (an output in the memory of a donated argument).
        start, end: First and last live step of the schedule.
        space: Memory space; 0 is the device's main memory, which alone counts for the peak.

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
        """Return the Python stack that created the buffer, innermost frame first; empty if the compiler kept none."""
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
    """Live buffers at each step of a module's schedule.

    This is a model of XLA's buffer assignment. The peak is the largest sum of live bytes at one step. Constants and
    arguments that are not donated count throughout, outputs count from their write on, and a loop's body counts once,
    at the loop. An allocator reserves more: alignment, gaps between buffers, and pointer tables of tuples
    (`capture.memory` has XLA's figures: `argument`, `output`, `temp`, `alias`). Of 67 programs compiled for a CPU, the
    peak never exceeds that of XLA's assignment, and is within 2 % of it for 66; for 57 it is also within 2 % of what
    XLA reserves (`python -m tests.corpus_memory`). For a TPU arrays count with padded tiles, and on-chip memory counts
    separately. Of 65 programs, all that need more than 128 kB of device memory agree with the compiler's assignment to
    1 %, and none exceeds it. The compiler may reserve more than both: `reserved` is its figure, `besides` explains it.

    Without a schedule in the text (`is_scheduled` is False), the order of the text is used and there is no peak,
    because the executor chooses its own order.

    Columns have one row per buffer, shape `[n]`.

    Args:
        graph: Graph of the module.
        order: Node that runs at each step, shape `[steps]`. At the first step, the call, nothing runs yet, and the node
            is the first of the text.
        node: Index of the node that makes the buffer.
        array: Index among the node's arrays, tuples flattened.
        size: Bytes, int64; Python integers (dtype object) if they might overflow.
        kind: Indices into `KINDS`.
        space: Memory space, 0 for the main memory; other spaces have their own `peaks`.
        start, end: First and last live step.
        donations: Arguments that could be donated and are not.
        is_scheduled: True if the text declares its order as the schedule.
        reserved: Bytes of main memory that the compiler reserves for a whole run, with constants; 0 if unknown.

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
        """Return the live bytes at each step in the device's main memory, shape `[steps]`."""
        return self._timeline(0)

    @cached_property
    def peak(self) -> int:
        """Return the largest number of live bytes at one step, in main memory; 0 for an empty schedule.

        If `is_scheduled` is False, the number belongs to the order of the text and is no peak.
        """
        return int(self.timeline.max(initial=0))

    @property
    def peaks(self) -> dict[int, int]:
        """Return the largest number of live bytes at one step, by memory space; main memory (0) is first.

        Unused memory spaces are left out.
        """
        spaces: list[int] = np.unique(self.space).tolist()
        return {space: int(self._timeline(space).max(initial=0)) for space in spaces}

    @property
    def peak_step(self) -> int:
        """Return the first step with the most live bytes in main memory; -1 for an empty schedule."""
        return int(self.timeline.argmax()) if len(self.order) else -1

    @property
    def peak_at(self) -> Node | None:
        """Return the node that runs at the peak; None for an empty schedule."""
        return Node(self.graph, int(self.order[self.peak_step])) if len(self.order) else None

    @cached_property
    def buffers(self) -> tuple[Buffer, ...]:
        """Return all buffers, one for each row of the columns, in their order."""
        return tuple(self._buffer(row) for row in range(len(self)))

    def at(self, step: int | None = None) -> tuple[Buffer, ...]:
        """Return the buffers of all memory spaces live at a step, largest first; at the peak if `step` is None.

        An empty schedule has no buffers at its peak.

        Raises:
            OutOfRangeError: There is no such step.
        """
        steps = len(self.order)
        if step is None and not steps:
            return ()
        step = self.peak_step if step is None else step
        if not 0 <= step < steps:
            has = f"; allowed are 0 to {steps - 1:,}" if steps else ", which has no steps"
            raise OutOfRangeError(f"step {step} is outside of this schedule{has}.")
        rows = np.flatnonzero((self.start <= step) & (step <= self.end))
        # Stable, so that buffers of one size stay in the order of the columns.
        rows = rows[np.argsort(-self.size[rows], kind="stable")]
        return tuple(self._buffer(int(row)) for row in rows)

    def totals(self, step: int | None = None) -> dict[str, int]:
        """Return the live bytes in main memory at a step, by kind of buffer; at the peak if `step` is None.

        Kinds without live bytes are left out.

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
        """Return the reserved bytes outside of live buffers at the peak, by reason; empty if negligible.

        An output's memory is reserved before the write, and a temporary may use it until then. The text doesn't
        describe the rest: gaps between buffers, and scratch memory of kernels.
        """
        rest = self.reserved - self.peak
        if not self.is_scheduled or rest <= max(_NEAR * self.reserved, _LITTLE):
            return {}
        unwritten = (self.kind == KINDS.index("output")) & (self.space == 0) & (self.start > self.peak_step)
        outputs = min(int(self.size[unwritten].sum()), rest)
        parts = {"outputs that aren't written yet": outputs, "not known: gaps, memory of kernels": rest - outputs}
        return {why: size for why, size in parts.items() if size}

    @property
    def headline(self) -> str:
        """Return text with the peak, its step and its bytes by kind of buffer; `nothing runs` for an empty schedule.

        Without a schedule, the peak is given as unknown, with the most bytes in the order of the text.
        """
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
        """Return text with the headline, the `rows` largest buffers live at the peak, and remarks, one per line."""
        alive = self.at()
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
        """Yield the remarks below a table: other reserved memory, other memory spaces, possible donations."""
        if self.besides:
            parts = ", ".join(f"{bytes_text(size)} {why}" for why, size in self.besides.items())
            yield f"  reserved besides: {parts}"
        apart = [f"{space_name(space)} {bytes_text(size)}" for space, size in self.peaks.items() if space]
        if apart:
            yield f"  besides, {'at most' if self.is_scheduled else 'in this order'} in {', '.join(apart)}"
        if self.donations:
            could = bytes_text(sum(donation.bytes for donation in self.donations))
            what = "1 argument" if len(self.donations) == 1 else f"{len(self.donations):,} arguments"
            of = (
                "an output has its shape and dtype"
                if len(self.donations) == 1
                else "outputs have the same shapes and dtypes"
            )
            yield f"  {what} of {could} could be donated: {of}"

    def _timeline(self, space: int) -> Sizes:
        # A buffer changes the sum twice: at its start, and after its end.
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
    """Return the name of a memory space, with its number as in HLO layouts.

    Space 5 is host memory. The meaning of others depends on the device: 1 is VMEM on a TPU.

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


# The compiler's names of uses and their labels, in drawing order.
USES = (("argument", "arguments"), ("output", "outputs"), ("temp", "temporaries"), ("generated code", "code"))


def needed_bytes(uses: Mapping[str, int]) -> float:
    """Return the device memory that a program needs, in bytes, from the compiler's figures by use; NaN without any.

    Outputs in the memory of donated arguments count 0. The code counts, because a TPU keeps it in the same memory and
    its compiler refuses a program by the sum. An elementwise program on a v5e with 15.746 GiB of arguments and outputs
    and 2.02 MiB of code was refused as 43 KiB too large for 15.748 GiB. The compilers of GPUs and CPUs report a code of
    0.

    Example:
        >>> needed_bytes({"argument": 100, "output": 60, "temp": 20, "alias": 60, "generated code": 5})
        125
        >>> needed_bytes({})
        nan
    """
    if not uses:
        return math.nan
    return sum(uses.get(use, 0) for use, _ in USES) - uses.get("alias", 0)
