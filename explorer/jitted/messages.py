"""What a program says to the user: when it is traced too often, and when its state can't be kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from explorer.capture.sources import called_at
from explorer.errors import LeakedStateError, RecompilationWarning, UnwrittenStateWarning
from explorer.jitted.traces import Trace, what_varies
from explorer.jitted.warn import warn_user


def warn_storm(name: str, traces: Sequence[Trace]) -> None:
    changing = [
        f"  {leaf}: {', '.join(values[:4])}{f', … ({len(values)} in all)' if len(values) > 4 else ''}"
        for leaf, values in what_varies(traces)[:3]
    ]
    warn_user(
        f"{name} was traced {len(traces)} times. What varies:\n"
        + "\n".join(changing or ["  the structure of its arguments or state"])
        + "\n  Hint: keep shapes the same (pad, or ex.compile with a NamedDimension); pass numbers as arguments or "
        "keep them in the state as arrays, jnp.asarray(value), where they aren't constants; return what grows.",
        RecompilationWarning,
    )


def warn_full(name: str, limit: int) -> None:
    warn_user(
        f"{name} had {limit} variants; all were let go, to bound the memory, and what comes again is compiled again.\n"
        f"  Hint: raise max_specializations={limit}, if there are that many in turn, or keep what varies the same.",
        RecompilationWarning,
    )


def warn_shapes(name: str, reason: str) -> None:
    warn_user(
        f"{name} is traced for each shape, although it is shapeless: {reason}\n"
        "  Hint: compute with the size where it is asked (x.shape[0] * 2), or jit it without shapeless=True.",
        RecompilationWarning,
    )


def warn_unwritten(name: str, paths: Sequence[str]) -> None:
    warn_user(
        f"{name} changed {', '.join(paths[:3])}, which is captured as `inputs` only: the change is dropped.\n"
        "  Hint: jit(…, outputs=…) with the same container writes it back.",
        UnwrittenStateWarning,
    )


def refuse_leak(name: str, holder: object) -> NoReturn:
    raise LeakedStateError(
        f"{name} is called while another function is traced, and would leave a traced value in its "
        f"captured {type(holder).__name__}.\n{called_at()}"
        "  Hint: ex.jit(outer, inputs=state, outputs=state) captures it there too; inside of jax.grad, "
        "jax.vmap, jax.lax.cond or jax.jit, return the new state instead."
    )


def refuse_frozen(name: str, path: str) -> NoReturn:
    raise LeakedStateError(
        f"{name} reads its state (`{path}`) while another function is traced, which would bake in today's value for "
        f"all its calls.\n{called_at()}"
        "  Hint: ex.jit(outer, inputs=state) captures it there too; or give the state as an argument."
    )
