"""When a function is compiled by itself, and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from explorer.hotpath.compiled import XlaOptions
from explorer.hotpath.journal import Journal


@dataclass(frozen=True, slots=True)
class Options:
    """When a function is compiled, and how.

    Args:
        calls: So many, and
        seconds: so long in all, before.
        submit: What runs a compile: beside the program, or at once.
        journal: Keeps each step.
        is_background: Whether compiles run beside the program.
        is_forced: Whether a copy serves though it isn't faster, as long as it gives the same.
        mode: How much is done for a function: `default`, `reduce-overhead`, `max-autotune`.
        xla: Sets of XLA's options, of which the fastest is kept; none for XLA's own. Arguments are never donated: that
            nobody else holds an array can't be proven in Python, where a count of references counts borrowed ones too.
    """

    calls: int
    seconds: float
    submit: Callable[[Callable[[], None]], object]
    journal: Journal = field(default_factory=Journal)
    is_background: bool = False
    is_forced: bool = False
    mode: str = "default"
    xla: Sequence[XlaOptions] = ()
