"""What a file of signals says of each: a part of a program with a name of its own."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shard:
    """How arrays are split over devices.

    Args:
        axis: Which dimension.
        workers: The devices, by their place in `jax.devices()`.
        line: Of the file.
    """

    axis: int
    workers: tuple[int, ...]
    line: int = 0


@dataclass(frozen=True, slots=True)
class SignalSettings:
    """What is done with the functions of a signal.

    Args:
        name: The signal's.
        compile: Whether they are compiled, at their first call; None where nothing is said of it.
        optimization_level: What XLA is told, 0 to 4, as by `explorer.compile`.
        shard: How the arguments of a function are split; None for not at all.
        file, line: Where it is written; empty and 0 for nowhere.
    """

    name: str
    compile: bool | None = None
    optimization_level: int = 3
    shard: Shard | None = None
    file: str = ""
    line: int = 0
