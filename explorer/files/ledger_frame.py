"""A ledger as a table of pandas: a row for each event, oldest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from explorer.files.frames import import_pandas
from explorer.model.events.event import KINDS, REASONS, Event
from explorer.model.events.key import Key
from explorer.model.events.ledger import Ledger

if TYPE_CHECKING:
    import pandas

# What each column holds, and how to have it of an event.
COLUMNS: Mapping[str, tuple[str, Callable[[Event], Any]]] = {
    "call": ("number of the call that left the fast path; its events have one number", lambda event: event.call),
    "id": ("number of the compile in its function: [step/3]; empty for a miss", lambda event: event.id),
    "kind": ("trace, lower, compile, cache-hit or miss", lambda event: event.kind),
    "function": ("name of what was compiled", lambda event: event.function),
    "eager": (
        "whether it is a single operation, outside of any jit",
        lambda event: _of_function(event, "eager", False),
    ),
    "file": ("file where the function is defined; empty if unseen", lambda event: _of_function(event, "file", "")),
    "line": ("line where the function is defined; 0 if unseen", lambda event: _of_function(event, "line", 0)),
    "call_site": ("the user's line that called it", lambda event: str(event.call_site or "")),
    "reason": ("kind of the reason", lambda event: event.reason.kind),
    "leaf": ("what changed: batch['x'].shape[0]", lambda event: event.reason.leaf),
    "before": ("its value in the nearest earlier call", lambda event: event.reason.before),
    "after": ("its value in this call", lambda event: event.reason.after),
    "why": ("the reason in one sentence", lambda event: str(event.reason)),
    "fix": ("code that would stop it", lambda event: event.reason.fix),
    "signature": ("types of the arguments: x: float32[32,8]", lambda event: signature(event.key)),
    "seconds": ("how long the event took, in seconds", lambda event: event.seconds),
    "saved": ("seconds of compiling that the persistent cache spared", lambda event: event.saved),
    "total": ("seconds that the function has cost so far, this event included", lambda event: event.total),
    "start": ("when it began (UTC)", lambda event: event.start),
    "thread": ("name of the thread", lambda event: event.thread),
    "device": ("what it was compiled for: cpu:0", lambda event: event.device),
    "process": ("which process it was in, where several were merged", lambda event: event.process),
    "error": ("what stopped it; empty if it went well", lambda event: event.error),
}
_DTYPES = {
    "call": "int64", "eager": "bool", "line": "int64", "seconds": "float64", "saved": "float64", "total": "float64",
    "start": "float64",
}  # fmt: skip


def ledger_frame(ledger: Ledger) -> pandas.DataFrame:
    """A row for each event of `ledger`; an empty one has the same columns and dtypes.

    Kinds and reasons are categories, names and sentences strings, seconds floats, `start` a time with UTC. What was
    dropped, spilled, or is to be known of the ledger is in the frame's `attrs`.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    pd = import_pandas()
    events = ledger.events
    columns = {
        name: pd.Series([value(event) for event in events], dtype=_DTYPES.get(name, "string"))
        for name, (_, value) in COLUMNS.items()
    }
    columns["kind"] = columns["kind"].astype(pd.CategoricalDtype(list(KINDS)))
    columns["reason"] = columns["reason"].astype(pd.CategoricalDtype(list(REASONS)))
    columns["start"] = pd.to_datetime((columns["start"] * 1e6).astype("int64"), unit="us", utc=True)
    table = pd.DataFrame(columns)
    table.attrs.update(dropped=ledger.dropped, spilled=ledger.spilled, note=ledger.note)
    return table


def signature(key: Key | None) -> str:
    """`x: float32[32,8], n=3`: the types of the arrays, and the values of what is static."""
    if key is None:
        return ""
    arrays = [f"{leaf.path}: {leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in key.leaves]
    return ", ".join([*arrays, *(f"{static.path}={static.value}" for static in key.statics)])


def _of_function(event: Event, name: str, unseen: Any) -> Any:
    return unseen if event.key is None else getattr(event.key.function, name)
