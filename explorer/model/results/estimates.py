"""Estimates for hardware that nobody ran the program on: times of kernels, and what devices send each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from explorer.model.declared import Framed
from explorer.model.graph import Node
from explorer.model.results.rows import RowSequence
from explorer.model.shardings import Groups
from explorer.model.units import count_text, duration_text, least_duration_text

PEAKS = "published peaks"


@dataclass(frozen=True)
class Estimate:
    """What one kernel is expected to take. Never measured.

    Args:
        node: The instruction that runs it.
        seconds: Of all its runs in one run of the program; a loop of unknown length counts as one.
        by: Who expects it: `"XLA's cost model"`, `"the TPU compiler's cycles at 1.5 GHz"`, or `"published peaks"`, the
            least that its work needs by them, without the latency of its launch.
        runs: How often it runs.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> kernel, = explorer.explore(jnp.sin, jnp.ones(8)).hlo.graph.where("op:sine")
        >>> explorer.Estimates((explorer.Estimate(kernel, 2e-6, "published peaks"),)).total
        '≥ 2 µs'
    """

    node: Node
    seconds: float
    by: str
    runs: float = 1.0


@dataclass(frozen=True)
class Estimates(RowSequence[Estimate]):
    """What the kernels of a program are expected to take, the one that takes most first.

    Args:
        rows: One for each kernel of which something is expected.
        unknown: How many kernels there are besides.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> kernel, = explorer.explore(jnp.sin, jnp.ones(8)).hlo.graph.where("op:sine")
        >>> estimates = explorer.Estimates((explorer.Estimate(kernel, 2e-6, "published peaks"),), unknown=1)
        >>> estimates.seconds, estimates.by, len(estimates)
        (2e-06, 'published peaks', 1)
    """

    rows: tuple[Estimate, ...] = ()
    unknown: int = 0

    @property
    def seconds(self) -> float:
        """Of all of them, one after the other; what isn't known is missing in it."""
        return math.fsum(row.seconds for row in self.rows)

    @property
    def total(self) -> str:
        """The same in words: of published peaks alone it is the least."""
        is_least = {row.by for row in self.rows} == {PEAKS}
        return f"≥ {least_duration_text(self.seconds)}" if is_least else duration_text(self.seconds)

    @property
    def by(self) -> str:
        """Who expects it, those of most kernels first."""
        names = [row.by for row in self.rows]
        return " and ".join(sorted(set(names), key=lambda name: (-names.count(name), name)))

    def __repr__(self) -> str:
        return f"Estimates({len(self.rows)} kernels, {self.unknown} not known)"


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
class Collectives(RowSequence[Collective], Framed):
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

    def __repr__(self) -> str:
        return f"Collectives({len(self.rows)} between {count_text(self.devices, 'device')})"
