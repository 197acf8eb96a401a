"""What was traced, when and why: the records behind `.specializations`, and the warning when there are too many."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import local
from time import perf_counter
from typing import Any

import jax

from explorer._jax.steps import STEP_EVENTS
from explorer.capture.readers.jaxpr import short_type
from explorer.jitted.kinds import is_array
from explorer.model.results.dynamic_report import Specialization

_LONGEST = 40


@dataclass
class Trace:
    """One run of a function's Python.

    Args:
        leaves: By path, what each argument's and the captured state's leaves were: a type, or a constant's value.
        shapes: Of the arrays among them.
    """

    leaves: dict[str, str]
    shapes: dict[str, tuple[int | str, ...]]
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
