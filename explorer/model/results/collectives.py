"""What the devices of a sharded program send each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.model.attached import Displayable, attached
from explorer.model.graph import Node
from explorer.model.shardings import Groups
from explorer.model.units import count_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Collective:
    """One collective of the optimised program.

    Args:
        node: The instruction; where it is started and waited for apart, the start.
        kind: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `collective-permute`, …
        axes: Of the mesh, along which it joins devices; empty where no mesh is known or no choice of axes makes it.
        groups: The devices that it joins, by their place in the mesh; of a permutation pairs of source and target.
        size: How many devices a group has.
        bytes: What a device gives to it.
        wire: What a device sends, at the least: what a ring needs.
        runs: How often it runs, where that is known; a loop of unknown length counts as one.
        file, line: Of the source; empty and 0 where no line is known.
        text: What stands in the line.
        overlaps: Kernels that run between its start and its end; none where it is waited for at once.
        seconds: Estimated, never measured: `wire` over the published bandwidth of the hardware's links, without their
            latency. None where the hardware is not known.

    Example:
        >>> import explorer
        >>> text = '''HloModule m, is_scheduled=true, num_partitions=2
        ... add { a = f32[] parameter(0)
        ...   b = f32[] parameter(1)
        ...   ROOT c = f32[] add(a, b) }
        ... ENTRY main { x = f32[1024] parameter(0)
        ...   ROOT r = f32[1024] all-reduce(x), replica_groups={{0,1}}, to_apply=add }'''
        >>> collective, = explorer.open_hlo(text).collectives
        >>> collective.kind, collective.size, collective.bytes
        ('all-reduce', 2, 4096)
    """

    node: Node
    kind: str
    axes: tuple[str, ...]
    groups: Groups
    size: int
    bytes: int
    wire: int
    runs: float = 1.0
    file: str = ""
    line: int = 0
    text: str = ""
    overlaps: tuple[Node, ...] = ()
    seconds: float | None = None


@dataclass(frozen=True)
class Collectives(Displayable, Sequence[Collective]):  # pyright: ignore[reportUnsafeMultipleInheritance]
    """All collectives of a program, the one that sends most first.

    Args:
        rows: One for each.
        devices: How many devices the program is for.
        mesh: Name and size of each axis; empty where it isn't known.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> collectives = explorer.explore(jnp.sin, jnp.ones(8)).collectives
        >>> len(collectives), collectives.devices, collectives.wire
        (0, 1, 0)
    """

    rows: tuple[Collective, ...]
    devices: int = 1
    mesh: tuple[tuple[str, int], ...] = ()

    @property
    def wire(self) -> float:
        """Bytes that a device sends in one run of the program, at the least."""
        return sum(row.wire * row.runs for row in self.rows)

    @attached
    def to_frame(self) -> pd.DataFrame:
        """As a `pandas.DataFrame`, a row for each."""
        ...

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Collective]:
        return iter(self.rows)

    def __getitem__(self, at: int) -> Collective:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.rows[at]

    def __repr__(self) -> str:
        return f"Collectives({len(self.rows)} between {count_text(self.devices, 'device')})"
