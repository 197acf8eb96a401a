"""What is being compiled right now."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.model.events.event import Place


@dataclass(frozen=True, slots=True)
class Running:
    """One call that JAX is at.

    Args:
        function: Its name.
        call_site: Where the thread stands in the user's code: in the function's own lines while it is traced.
        stage: `trace`, `lower` or `compile`.
        since: When the call began, in seconds since 1970.
        thread: Its name.

    Example:
        >>> import explorer, jax, jax.numpy as jnp
        >>> def double(x):
        ...     seen.extend((call.function, call.stage) for call in ledger.running)
        ...     return x * 2
        >>> seen, x = [], jnp.ones(3)
        >>> with explorer.watch() as ledger:
        ...     _ = jax.jit(double)(x)
        >>> seen
        [('double', 'trace')]
    """

    function: str
    call_site: Place | None
    stage: str
    since: float
    thread: str = ""

    def __str__(self) -> str:
        doing = {"trace": "tracing", "lower": "lowering", "compile": "compiling"}[self.stage]
        return f"{doing} {self.function}" + (f" at {self.call_site}" if self.call_site is not None else "")
