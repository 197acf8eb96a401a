"""What XLA says of a program's memory: its buffer assignment and its live ranges, read from the dump of a compile."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_ALLOCATION = re.compile(r"allocation \d+: size (\d+)(.*):$")
_COLOUR = re.compile(r"color (\d+)")
_VALUE = re.compile(r" value: <\d+ (\S+?)(\{[\d,]*\})?(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\)")
_RANGE = re.compile(r"^    (\S+?)(\{[\d,]*\}):(\d+)-(\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Allocation:
    """A piece of memory that XLA has reserved for the whole run, and which values lie in it when.

    Args:
        size: Bytes.
        is_constant: It is part of the executable.
        space: The memory space; 0 is the device's own.
        values: Name, position in a tuple, size and offset of each value.
    """

    size: int
    is_constant: bool
    values: tuple[tuple[str, str, int, int], ...]
    space: int = 0


@dataclass(frozen=True)
class BufferAssignment:
    """XLA's own account.

    Args:
        allocations: Those that are alive with the program: what a single thread's scalars need is left out.
        ranges: First and last moment of each value that has one, by name and position.
    """

    allocations: tuple[Allocation, ...]
    ranges: dict[tuple[str, str], tuple[int, int]]

    @property
    def allocated(self) -> int:
        """Bytes that are reserved, from before the first instruction runs."""
        return sum(allocation.size for allocation in self.allocations)

    def in_space(self, space: int) -> BufferAssignment:
        """What lies in one memory space."""
        return BufferAssignment(tuple(each for each in self.allocations if each.space == space), self.ranges)

    @property
    def live(self) -> int:
        """Bytes that values lie in at the fullest moment."""
        moments = max((end for _, end in self.ranges.values()), default=0) + 1
        total = [0] * moments
        for allocation in self.allocations:
            for moment, size in enumerate(self._occupied(allocation, moments)):
                total[moment] += size
        return max(total)

    def _occupied(self, allocation: Allocation, moments: int) -> list[int]:
        """The bytes of an allocation that are in use, by moment."""
        alive = defaultdict[int, list[tuple[int, int]]](list)
        for name, at, size, offset in allocation.values:
            first, last = (0, moments - 1) if allocation.is_constant else self.ranges.get((name, at), (1, 0))
            for moment in range(first, min(last, moments - 1) + 1):
                alive[moment].append((offset, offset + size))
        return [_covered(alive[moment]) for moment in range(moments)]


def _covered(spans: list[tuple[int, int]]) -> int:
    covered = reached = 0
    for start, end in sorted(spans):
        covered += max(end - max(start, reached), 0)
        reached = max(reached, end)
    return covered


def read_buffer_assignment(folder: Path) -> BufferAssignment:
    """That of the one program in the dump of `xla_dump_to`."""
    (assignment,) = folder.glob("*buffer-assignment.txt")
    (ranges,) = folder.glob("*live-range.txt")
    allocations: list[Allocation] = []
    for block in re.split(r"^(?=allocation )", assignment.read_text(), flags=re.MULTILINE)[1:]:
        head, *lines = block.splitlines()
        size, kinds = _ALLOCATION.match(head).groups()
        values = tuple((m[1], m[2] or "{}", int(m[3]), int(m[4])) for m in map(_VALUE.match, lines) if m)
        if "thread-local" not in kinds:
            colour = _COLOUR.search(kinds)
            allocations.append(Allocation(int(size), "constant" in kinds, values, int(colour[1]) if colour else 0))
    found = _RANGE.findall(ranges.read_text())
    return BufferAssignment(tuple(allocations), {(name, at): (int(start), int(end)) for name, at, start, end in found})
