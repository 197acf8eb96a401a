"""Records of traces behind `.specializations`, and the warnings and errors of a program."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import local
from time import perf_counter
from types import FrameType
from typing import Any, NoReturn

import jax

from explorer._jax.calls import STEP_EVENTS
from explorer.capture.readers.jaxpr import short_type
from explorer.capture.sources import called_at
from explorer.capture.trace_errors import explain_donated
from explorer.errors import (
    ExplorerError,
    LeakedStateError,
    RecompilationWarning,
    StaticArgumentError,
    UnwrittenStateWarning,
)
from explorer.jitted.state import is_array
from explorer.jitted.surface import given_arguments
from explorer.model.results.dynamic_report import Specialization

_MAX_TEXT = 40  # characters of a constant


@dataclass
class Trace:
    leaves: dict[str, str]  # arguments and captured state by path: an array's type, or a constant's value
    shapes: dict[str, tuple[int | str, ...]]  # of the arrays among the leaves
    reason: str = "first call"
    start: float = field(default_factory=perf_counter)
    seconds: float = 0.0
    when: datetime = field(default_factory=lambda: datetime.now(UTC))

    @classmethod
    def of(cls, leaves: Iterable[tuple[str, Any]]) -> Trace:
        named = dict(leaves)
        arrays = {name: leaf for name, leaf in named.items() if is_array(leaf)}
        return cls(
            {name: _type(leaf) if name in arrays else _value(leaf) for name, leaf in named.items()},
            # A size may be a symbol of a shapeless function.
            {n: tuple(s if isinstance(s, int) else str(s) for s in leaf.shape) for n, leaf in arrays.items()},
        )

    def to_specialization(self) -> Specialization:
        return Specialization(dict(self.shapes), self.reason, self.seconds, self.when)


def _type(array: Any) -> str:
    return short_type(array) + (" (weakly typed)" if getattr(jax.typeof(array), "weak_type", False) else "")


def _value(constant: Any) -> str:
    if callable(constant) and hasattr(constant, "__qualname__"):
        return constant.__qualname__
    try:
        text = re.sub(r" at 0x[0-9a-f]+", "", repr(constant))
    except Exception:  # the user's own `__repr__` fails
        text = type(constant).__name__
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"


def why(new: Trace, earlier: Iterable[Trace]) -> str:
    """Return the reason for a trace: its differences from the most similar earlier one, as `x: f32[3] → f32[4]`.

    At most two differences are listed. Without an earlier trace it is `first call`.
    """
    differences = [_difference(old.leaves, new.leaves) for old in earlier]
    if not differences:
        return "first call"
    # Of equally similar traces, the latest.
    nearest = min(reversed(differences), key=len)
    if not nearest:
        return "the structure, or a setting of JAX, changed"
    first = [f"{name}: {before or 'not there'} → {after or 'not there'}" for name, (before, after) in nearest.items()]
    return "; ".join(first[:2]) + (f"; and {len(first) - 2} more" if len(first) > 2 else "")


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = dict.fromkeys((*new, *old))
    return {n: (old.get(n, ""), new.get(n, "")) for n in names if old.get(n) != new.get(n)}


def what_varies(traces: Iterable[Trace]) -> list[tuple[str, list[str]]]:
    """Return the leaves that differ between traces as pairs `(name, distinct values)`; those with most values first."""
    traces = list(traces)
    names = dict.fromkeys(name for trace in traces for name in trace.leaves)
    seen = {name: list(dict.fromkeys(t.leaves.get(name, "not there") for t in traces)) for name in names}
    return sorted(((n, values) for n, values in seen.items() if len(values) > 1), key=lambda item: -len(item[1]))


class _Pending(local):
    """Traces of this thread that XLA hasn't compiled yet, by name."""

    def __init__(self) -> None:
        self.traces: dict[str, Trace] = {}


_pending = _Pending()
_listening = False


def measure(name: str, trace: Trace) -> None:
    """Set `trace.seconds` to the time since its start.

    When XLA has compiled the trace on this thread, the time until then replaces it.
    """
    # A call stays within JAX's C++. JAX's own event is the only sign that the compilation has ended.
    global _listening
    if not _listening:
        _listening = True
        jax.monitoring.register_event_duration_secs_listener(_hear)
    trace.seconds = perf_counter() - trace.start
    # Only the latest: a trace that never compiles must not stay here.
    _pending.traces = {f"jit({name})": trace}


def _hear(event: str, duration_secs: float, **kwargs: str | int) -> None:
    if STEP_EVENTS.get(event) == "compile":
        trace = _pending.traces.pop(str(kwargs.get("fun_name")), None)
        if trace is not None:
            trace.seconds = perf_counter() - trace.start


def warn_storm(name: str, traces: Sequence[Trace]) -> None:
    changing = [
        f"  {leaf}: {', '.join(values[:4])}{f', … ({len(values)} in all)' if len(values) > 4 else ''}"
        for leaf, values in what_varies(traces)[:3]
    ]
    warn_user(
        f"{name} was traced {len(traces)} times. What varies:\n"
        + "\n".join(changing or ["  the structure of its arguments or state"])
        + "\n  Hint: keep shapes the same (pad, or ex.compile with a NamedDimension); pass numbers that change as "
        "arguments, or keep them in the state as arrays, jnp.asarray(value); return results instead of collecting them "
        "in the state.",
        RecompilationWarning,
    )


def warn_full(name: str, limit: int) -> None:
    warn_user(
        f"{name} had {limit} variants; all were dropped to limit memory, and are compiled again when needed.\n"
        f"  Hint: raise max_specializations={limit}, if it needs more variants, or make its arguments vary less.",
        RecompilationWarning,
    )


def warn_shapes(name: str, reason: str) -> None:
    warn_user(
        f"{name} is traced for each shape, although it is shapeless: {reason}\n"
        "  Hint: compute with the size (x.shape[0] * 2) instead of testing it, or jit it without shapeless=True.",
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


def explain_call_error(
    name: str,
    signature: inspect.Signature | None,
    static: Collection[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> ExplorerError | None:
    """Return the error to raise for a call that JAX refused; None if JAX's own message is best."""
    try:
        given = given_arguments(signature, args, kwargs)
    except TypeError:  # Python's message is clear
        return None
    for parameter, value in given.items():
        if parameter in static and (why := _why_not_static(value)):
            return StaticArgumentError(
                f"static argument `{parameter}` of {name} {why}: jit keeps a program for each value, and finds it by "
                f"hash and ==.\n{called_at()}  Hint: {_instead(parameter, value)}."
            )
    return explain_donated(name, given)


def _why_not_static(value: Any) -> str:
    try:
        hash(value)
    except TypeError:
        return f"is {type(value).__name__}, which has no hash"
    except Exception:  # the user's own `__hash__` raises a better error
        return ""
    try:
        _ = value == value
    except Exception as error:
        return f"is {type(value).__name__}, whose == raises {type(error).__name__}"
    return ""


def _instead(parameter: str, value: Any) -> str:
    if hasattr(value, "dtype"):
        return f"an array can't be a static argument: leave `{parameter}` out of static_argnums and static_argnames"
    if isinstance(value, (list, set, dict)):
        kind = "" if isinstance(value, dict) else "tuple" if isinstance(value, list) else "frozenset"
        return f"give {kind}({parameter})" if kind else f"give tuple(sorted({parameter}.items()))"
    return f"give {type(value).__name__} __hash__ and __eq__, by @dataclass(frozen=True) for one"


_SKIPPED = ("explorer", "jax", "jaxlib", "contextlib", "functools")


def warn_user(message: str, category: type[Warning]) -> None:
    warnings.warn(message, category, stacklevel=_users_frame()[0])


def users_line() -> tuple[str, int]:
    """Return file and line of the innermost frame outside of Explorer and JAX; ("", 0) without one."""
    frame = _users_frame()[1]
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _users_frame() -> tuple[int, FrameType | None]:
    """Return the `stacklevel` of the innermost frame outside of Explorer and JAX, and that frame, if there is one."""
    depth, frame = 0, inspect.currentframe()
    while frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in _SKIPPED:
        depth, frame = depth + 1, frame.f_back
    return depth, frame
