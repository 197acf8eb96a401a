"""What kernels are expected to take, on hardware that nobody ran them on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from explorer.model.attached import Displayable
from explorer.model.graph import Node
from explorer.model.units import duration_text, least_duration_text

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
class Estimates(Displayable, Sequence[Estimate]):  # pyright: ignore[reportUnsafeMultipleInheritance]
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

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Estimate]:
        return iter(self.rows)

    def __getitem__(self, at: int) -> Estimate:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.rows[at]

    def __repr__(self) -> str:
        return f"Estimates({len(self.rows)} kernels, {self.unknown} not known)"
