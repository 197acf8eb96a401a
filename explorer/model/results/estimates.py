"""Estimates for other hardware: times of kernels, and collectives between devices."""

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
    """Estimated time of one kernel, never measured.

    Args:
        node: The kernel's instruction.
        seconds: Time of all its runs in one run of the program; a loop of unknown length counts as one iteration.
        by: Source: `"XLA's cost model"`, `"the TPU compiler's cycles at 1.5 GHz"`, or `"published peaks"`
            (the minimum time, without launch latency).
        runs: Number of runs.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> kernel, = explorer.explore(jnp.sin, jnp.ones(8)).hlo.graph.where("op:sine")
        >>> explorer.types.Estimates((explorer.types.Estimate(kernel, 2e-6, "published peaks"),)).total
        '≥ 2 µs'
    """

    node: Node
    seconds: float
    by: str
    runs: float = 1.0


@dataclass(frozen=True)
class Estimates(RowSequence[Estimate]):
    """Estimated times of a program's kernels, longest first.

    Args:
        rows: One row per kernel with an estimate.
        unknown: Number of kernels without an estimate.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> kernel, = explorer.explore(jnp.sin, jnp.ones(8)).hlo.graph.where("op:sine")
        >>> estimates = explorer.types.Estimates((explorer.types.Estimate(kernel, 2e-6, "published peaks"),), unknown=1)
        >>> estimates.seconds, estimates.by, len(estimates)
        (2e-06, 'published peaks', 1)
    """

    rows: tuple[Estimate, ...] = ()
    unknown: int = 0

    @property
    def seconds(self) -> float:
        """Return the estimated seconds of one run, all kernels together; unknown times are not included."""
        return math.fsum(row.seconds for row in self.rows)

    @property
    def total(self) -> str:
        """Return `seconds` as text. A `≥` precedes it if all estimates are lower bounds, from published peaks."""
        is_least = {row.by for row in self.rows} == {PEAKS}
        return f"≥ {least_duration_text(self.seconds)}" if is_least else duration_text(self.seconds)

    @property
    def by(self) -> str:
        """Return the sources of the estimates joined by `and`, most frequent first; empty without estimates."""
        names = [row.by for row in self.rows]
        return " and ".join(sorted(set(names), key=lambda name: (-names.count(name), name)))

    def __repr__(self) -> str:
        return f"Estimates({len(self.rows)} kernels, {self.unknown} not known)"


@dataclass(frozen=True)
class Collective:
    """One collective of the optimized program.

    Args:
        node: The instruction; for an asynchronous collective, its start.
        kind: `all-reduce`, `all-gather`, `reduce-scatter`, `all-to-all`, `collective-permute`, …
        axes: Mesh axes along which it joins devices; empty if no mesh is known or no set of axes gives these groups.
        groups: Joined devices, by their position in the mesh; for a permutation, pairs of source and target.
        size: Number of devices in a group.
        bytes: Input bytes per device.
        wire: Minimum bytes that a device sends, for a ring algorithm.
        runs: Number of runs; a loop of unknown length counts as one iteration.
        file, line: Source position; empty and 0 if unknown.
        text: Text of the line.
        overlaps: Number of kernels that run between its start and its end; 0 if the program waits at once.
        seconds: Estimated, never measured: `wire` over the published bandwidth of the hardware's links, without their
            latency. None if the hardware is unknown.

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
    """All collectives of a program, by decreasing bytes sent.

    Args:
        rows: One row per collective.
        devices: Number of devices of the program.
        mesh: Name and size of each axis; empty if unknown.

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
        """Return the minimum bytes that a device sends in one run of the program."""
        return sum(row.wire * row.runs for row in self.rows)

    def __repr__(self) -> str:
        return f"Collectives({len(self.rows)} between {count_text(self.devices, 'device')})"
