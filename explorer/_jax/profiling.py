"""JAX's profiler, of which a process has one: given back when a trace could not be written."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from jax._src import profiler as _profiler

__all__ = ["release_profiler"]


def release_profiler() -> None:
    """Let the user profile again after `jax.profiler.stop_trace` raised, on a full disk: it stays started then.

    Its state is not public. Where it is another than here, nothing is done, as without this.
    """
    state: Any = getattr(_profiler, "_profile_state", None)
    with suppress(AttributeError):
        state.reset()
