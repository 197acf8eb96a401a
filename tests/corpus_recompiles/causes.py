"""What a cause of a recompile is, and how it is put down."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

__all__ = ["CAUSES", "Cause", "cause"]

# Sets up and calls; yields once, just before the one call that compiles again. Where it is cured, nothing must.
Scenario = Callable[[bool], Iterator[None]]


@dataclass(frozen=True)
class Cause:
    """A way to compile again.

    Args:
        name: The scenario's name.
        kind: The kind of the true reason.
        leaves: What changed; any of them is true, where several arguments changed at once. Empty if it is no argument.
        scenario: The program; called with whether the one thing is cured.
        devices: How many it needs.
        source: The public issue, discussion or page that it is retold from; empty for one of our own.
    """

    name: str
    kind: str
    leaves: tuple[str, ...]
    scenario: Scenario
    devices: int = 1
    source: str = ""


CAUSES: list[Cause] = []


def cause(kind: str, *leaves: str, devices: int = 1, source: str = "") -> Callable[[Scenario], Scenario]:
    """A scenario whose last call compiles again for a reason of `kind`, because one of `leaves` changed."""

    def register(scenario: Scenario) -> Scenario:
        CAUSES.append(Cause(scenario.__name__, kind, leaves, scenario, devices, source))
        return scenario

    return register
