"""Profiles in the formats of other tools: Perfetto's trace, XProf's folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

from explorer.analysis.profile_attribution import regions
from explorer.files.disk import write_text, write_whole
from explorer.model.results.profile import OpTime, Profile
from explorer.model.results.profile_events import HOST, RECORD, REGION, THUNK, WAIT, Events, Op

_MICRO = 1e6
_KIND = {THUNK: "instruction", REGION: "part of an instruction", WAIT: "wait", HOST: "host"}
_RUN, _HOST_NAME = "explorer", "host"


def write_perfetto(profile: Profile, path: str | PathLike[str]) -> Path:
    """Write a trace in Chrome's JSON format, for ui.perfetto.dev, chrome://tracing and speedscope."""
    text = json.dumps({"displayTimeUnit": "ns", "traceEvents": list(_events(profile))}, separators=(",", ":"))
    return write_text(path, text)


def _events(profile: Profile) -> Iterator[dict[str, Any]]:
    events = profile.events
    yield {"ph": "M", "pid": 1, "tid": 0, "name": "process_name", "args": {"name": profile.function}}
    if events is None:
        return
    for thread, name in enumerate(events.threads):
        yield {"ph": "M", "pid": 1, "tid": thread + 1, "name": "thread_name", "args": {"name": name}}
    rows = {(row.program, row.name): row for row in profile.ops}
    args = [_args(op, rows.get((op.program, op.name))) for op in events.ops]
    begin = float(events.windows[0, 0]) if len(events.windows) else 0.0
    owner = regions(events)
    columns = (events.thread, events.start, events.end, events.kind, events.what)
    for i, (thread, start, end, kind, what) in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if kind == RECORD or end < begin:  # no length, or before the first call
            continue
        op = what if kind == THUNK else owner.get(i, -1) if kind == REGION else -1
        yield {
            "ph": "X", "pid": 1, "tid": thread + 1, "name": _name(events, kind, what, op),
            "cat": _KIND.get(kind, "runtime"), "ts": (start - begin) * _MICRO, "dur": (end - start) * _MICRO,
            "args": args[op] if op >= 0 else {},
        }  # fmt: skip


def _args(op: Op, row: OpTime | None) -> dict[str, Any]:
    """Return an instruction's module, line, operation and scope for Perfetto; without a line the module alone."""
    if row is None or not row.stack:
        return {"module": op.module}
    line = f"{row.stack[0].file}:{row.stack[0].line}"
    return {"module": op.module, "line": line, "op": row.op, "scope": row.scope}


def _name(events: Events, kind: int, what: int, op: int) -> str:
    if op >= 0:
        return events.ops[op].name
    return "part" if kind == REGION else events.names[what]


def write_xprof(profile: Profile, folder: str | PathLike[str]) -> Path:
    """Write `plugins/profile/RUN/HOST.xplane.pb`, where XProf and TensorBoard look; return the path."""
    target = Path(folder) / "plugins" / "profile" / _RUN
    number = 1
    while target.exists():  # an earlier run is not overwritten
        number += 1
        target = target.with_name(f"{_RUN}-{number}")
    target.mkdir(parents=True)
    path = target / f"{_HOST_NAME}.xplane.pb"
    write_whole(path, profile.xspace)
    return path
