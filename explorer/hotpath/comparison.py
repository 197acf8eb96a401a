"""One call both ways: as it was written, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import jax

_block: Callable[[Any], Any] = vars(jax)["block_until_ready"]


@dataclass(slots=True)
class BothWays:
    """What a call gave.

    Args:
        result, eager: As it was written, with its seconds; None where it raised.
        left: Those seconds of it that it went on after it had returned.
        copy, compiled: Compiled, with its seconds.
        error: What the compiled call raised.
    """

    result: Any = None
    eager: float = 0.0
    left: float = 0.0
    copy: Any = None
    compiled: float = 0.0
    error: Exception | None = None


def run_both(eager: Callable[[], Any], compiled: Callable[[], Any], turn: int) -> BothWays:
    """Run a call both ways, one and then the other by turns: the second finds what it needs in the caches.

    A function that only computes may run twice, so where it raises nothing is kept of it: the user's own call does the
    same again.

    Args:
        eager, compiled: Each way; nothing of their arguments is waited for.
        turn: How many calls ran both ways before. The very first compiled call isn't counted: JAX prepares for others.
    """
    both = BothWays()
    order = ((True, False), (False, True))[turn % 2] if turn else (True, False, True)
    for is_compiled in order:
        begun = perf_counter()
        try:
            result = compiled() if is_compiled else eager()
            returned = perf_counter()
            _block(result)
        except Exception as error:
            if not is_compiled:
                return BothWays()
            both.error = error
            continue
        ended = perf_counter()
        if is_compiled:
            both.copy, both.compiled = result, ended - begun
        else:
            both.result, both.eager, both.left = result, ended - begun, ended - returned
    return both
