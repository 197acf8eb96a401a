"""Which steps of a compile JAX does, and which it had done before: it says so to who listens."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import jax

STEP_EVENTS = {
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
SAVED_EVENT = "/jax/compilation_cache/compile_time_saved_sec"  # XLA's part was read from the persistent cache


@contextmanager
def steps_done() -> Generator[set[str]]:
    """The names of the steps that JAX does in this process meanwhile: `trace`, `lower` and `compile`.

    Those of other threads are among them. A program that the persistent cache had was not compiled.

    Example:
        >>> import jax.numpy as jnp
        >>> function = jax.jit(lambda x: x * 3)
        >>> with steps_done() as first:
        ...     _ = function.lower(jnp.ones(3))
        >>> with steps_done() as again:
        ...     _ = function.lower(jnp.ones(3))
        >>> sorted(first), sorted(again)
        (['lower', 'trace'], [])
    """
    done: set[str] = set()
    was_saved = False

    def hear(event: str, duration_secs: float, **_: str | int) -> None:
        nonlocal was_saved
        was_saved = was_saved or event == SAVED_EVENT
        if event in STEP_EVENTS:
            done.add(STEP_EVENTS[event])

    jax.monitoring.register_event_duration_secs_listener(hear)
    try:
        yield done
    finally:
        jax.monitoring.unregister_event_duration_listener(hear)
        if was_saved:
            done.discard("compile")
