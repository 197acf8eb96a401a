"""What was traced, when and why: the records behind `.specializations`, and what a program says to the user."""

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
from explorer.model.results.dynamic_report import Specialization

_LONGEST = 40


@dataclass
class Trace:
    """One run of a function's Python."""

    # by path, what each argument's and the captured state's leaves were: a type, or a constant's value
    leaves: dict[str, str]
    shapes: dict[str, tuple[int | str, ...]]  # of the arrays among them
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
            {name: tuple(map(_size, leaf.shape)) for name, leaf in arrays.items()},
        )

    def to_specialization(self) -> Specialization:
        return Specialization(dict(self.shapes), self.reason, self.seconds, self.when)


def _size(size: Any) -> int | str:
    return size if isinstance(size, int) else str(size)  # a symbol, of a shapeless function


def _type(array: Any) -> str:
    return short_type(array) + (" (weakly typed)" if getattr(jax.typeof(array), "weak_type", False) else "")


def _value(constant: Any) -> str:
    if callable(constant) and hasattr(constant, "__qualname__"):
        return constant.__qualname__
    try:
        text = re.sub(r" at 0x[0-9a-f]+", "", repr(constant))
    except Exception:  # the user's own repr; a message can do without
        text = type(constant).__name__
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def why(new: Trace, earlier: Iterable[Trace]) -> str:
    """What differs from the most similar earlier trace."""
    differences = [_difference(old.leaves, new.leaves) for old in earlier]
    if not differences:
        return "first call"
    nearest = min(reversed(differences), key=len)
    if not nearest:
        return "the structure, or what JAX was told besides the arguments, is another"
    first = [f"{name}: {before or 'not there'} → {after or 'not there'}" for name, (before, after) in nearest.items()]
    return "; ".join(first[:2]) + (f"; and {len(first) - 2} more" if len(first) > 2 else "")


def _difference(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    names = dict.fromkeys((*new, *old))
    return {n: (old.get(n, ""), new.get(n, "")) for n in names if old.get(n) != new.get(n)}


def what_varies(traces: Iterable[Trace]) -> list[tuple[str, list[str]]]:
    """The leaves that are not the same in all traces, with what they were; those that vary most first."""
    traces = list(traces)
    names = dict.fromkeys(name for trace in traces for name in trace.leaves)
    seen = {name: list(dict.fromkeys(t.leaves.get(name, "not there") for t in traces)) for name in names}
    return sorted(((n, values) for n, values in seen.items() if len(values) > 1), key=lambda item: -len(item[1]))


class _Pending(local):
    """What this thread has traced and XLA has not compiled yet, by name."""

    def __init__(self) -> None:
        self.traces: dict[str, Trace] = {}


_pending = _Pending()
_listening = False


def measure(name: str, trace: Trace) -> None:
    """Have a trace know what it took, up to the end of its compilation on this thread.

    A call stays within JAX's C++, so nothing of ours comes after the compilation but JAX's own report of it.
    """
    global _listening
    if not _listening:
        _listening = True
        jax.monitoring.register_event_duration_secs_listener(_hear)
    trace.seconds = perf_counter() - trace.start
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


def explain_call_error(
    name: str,
    signature: inspect.Signature | None,
    static: Collection[str],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> ExplorerError | None:
    """The error to raise for a call that JAX refused; None if it says best itself what is wrong."""
    given: dict[str, Any] = {f"argument {i}": value for i, value in enumerate(args)} | dict(kwargs)
    if signature is not None:
        try:
            given = dict(signature.bind(*args, **kwargs).arguments)
        except TypeError:  # Python says that best
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
    except Exception:  # the user's own, which says more
        return ""
    try:
        _ = value == value
    except Exception as error:
        return f"is {type(value).__name__}, whose == raises {type(error).__name__}"
    return ""


def _instead(parameter: str, value: Any) -> str:
    if hasattr(value, "dtype"):
        return f"an array is no static argument: leave `{parameter}` out of static_argnums and static_argnames"
    if isinstance(value, (list, set, dict)):
        kind = "" if isinstance(value, dict) else "tuple" if isinstance(value, list) else "frozenset"
        return f"give {kind}({parameter})" if kind else f"give tuple(sorted({parameter}.items()))"
    return f"give {type(value).__name__} __hash__ and __eq__, by @dataclass(frozen=True) for one"


_PASSED = ("explorer", "jax", "jaxlib", "contextlib", "functools")


def warn_user(message: str, category: type[Warning]) -> None:
    depth, frame = 1, inspect.currentframe()
    while frame is not None and _is_passed(frame):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)


def users_line() -> tuple[str, int]:
    """File and line of the innermost frame outside of Explorer and JAX."""
    frame = inspect.currentframe()
    while frame is not None and _is_passed(frame):
        frame = frame.f_back
    return ("", 0) if frame is None else (frame.f_code.co_filename, frame.f_lineno)


def _is_passed(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _PASSED
