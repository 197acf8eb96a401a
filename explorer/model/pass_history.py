"""What became of each instruction while the passes ran, and all that happened to one of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

LINK_KINDS = ("rewritten", "merged", "fused", "duplicated", "with", "unused", "unknown", "replaced", "inlined")
"""What may have become of an instruction; a capture's file has them by index."""


class PassLink(NamedTuple):
    """What became of one instruction in one pass; `old` and `new` are keys, `new` is -1 where there is nothing.

    Args:
        position: Of the pass among those that changed something.
        kind: One of `LINK_KINDS`.
        inferred: It follows from equal structure, not from a reader that was rewired.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> passes = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8)).passes
        >>> {passes[link.position].name for link in passes.links if link.kind == "fused"}
        {'fusion'}
    """

    position: int
    old: int
    kind: str
    new: int
    inferred: bool


@dataclass(frozen=True, slots=True)
class HistoryEvent:
    """One thing that happened to an instruction; `position` is that of the pass, -1 before all passes.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8))
        >>> sine, = capture.hlo.graph.where("op:sine")
        >>> [(event.pass_name, event.says) for event in capture.passes.history(sine.name)][-1]
        ('fusion', 'fused into fused_computation as sin.0')
    """

    position: int
    pass_name: str
    name: str
    says: str
    others: tuple[str, ...] = ()
    text: str = ""
    inferred: bool = False


@dataclass(frozen=True)
class History:
    """All that happened to an instruction, and to what it came from and what it became, in order.

    Example:
        >>> import explorer, jax.numpy as jnp
        >>> capture = explorer.explore(lambda x: jnp.sin(x) * 2 + 1, jnp.ones(8))
        >>> history = capture.passes.history(capture.hlo.graph.where("op:fusion")[0].name)
        >>> len(history) > 0, "fusion" in {event.pass_name for event in history}
        (True, True)
    """

    name: str
    events: tuple[HistoryEvent, ...]

    def __iter__(self) -> Iterator[HistoryEvent]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __repr__(self) -> str:
        wide = max((len(event.pass_name) for event in self.events), default=0)
        named = max((len(event.name) for event in self.events), default=0)
        rows = [
            f"  {event.pass_name:<{wide}}  {event.name:<{named}}  {event.says}{' (inferred)' * event.inferred}"
            for event in self.events
        ]
        return "\n".join([f"History of {self.name}", *rows])
