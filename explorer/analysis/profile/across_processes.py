"""Many processes' profiles as one: which instruction takes how long where, and who waits for whom."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePath

import numpy as np

from explorer.model.results.profile import OpTime, ProcessOp, ProcessProfile, Profile
from explorer.model.units import duration_text

# HLO's names of operations that wait for other devices, with what they begin with where they are in two halves.
_COLLECTIVES = (
    *("all-reduce", "all-gather", "all-to-all", "reduce-scatter", "collective-permute", "collective-broadcast"),
    *("ragged-all-to-all", "send", "recv"),
)
_HALVES = ("", "-start", "-done")
_WAITING = frozenset(f"{kind}{half}" for kind in _COLLECTIVES for half in _HALVES)


def merge_profiles(profiles: Iterable[tuple[str, Profile]]) -> ProcessProfile:
    """One profile of many processes' profiles of one function.

    Each is looked at once and let go of: in memory stay a number for each instruction and process.

    Args:
        profiles: What each process is called, with its profile.
    """
    names: list[str] = []
    calls: list[float] = []
    columns: dict[ProcessOp, dict[int, float]] = {}
    functions: dict[str, None] = {}
    for at, (name, profile) in enumerate(profiles):
        names.append(name)
        calls.append(profile.seconds)
        functions[profile.function] = None
        for op in profile.ops:
            column = columns.setdefault(_op(op), {})
            column[at] = column.get(at, 0.0) + op.seconds
    table = np.full((len(columns), len(names)), np.nan)
    for row, column in enumerate(columns.values()):
        table[row, list(column)] = list(column.values())
    order = np.argsort(-np.nanmax(table, axis=1)) if len(columns) else np.zeros(0, int)
    ops = [*columns]
    notes = [] if len(functions) < 2 else [f"they are of several functions: {', '.join(functions)}"]
    return ProcessProfile(
        next(iter(functions), ""),
        tuple(names),
        tuple(ops[int(row)] for row in order),
        table[order],
        np.asarray(calls),
        tuple(notes),
    )


def _op(op: OpTime) -> ProcessOp:
    frame = op.stack[0] if op.stack else None
    file, line = (PurePath(frame.file).name, frame.line) if frame is not None else ("", 0)
    return ProcessOp(op.name, op.op, op.module, file, line, op.op in _WAITING)


def headline(profile: ProcessProfile) -> str:
    """How long a call takes, who waits, and for whom."""
    count = len(profile.processes)
    text = f"{profile.function} in {count:,} process{'es' * (count != 1)}"
    if not count:
        return text
    most = int(np.argmax(profile.calls))
    text += f": a call takes {duration_text(float(profile.calls[most]))} in process {profile.processes[most]}"
    waiting = profile.waiting
    longest = int(np.argmax(waiting))
    if not waiting[longest] > 0:
        return f"{text}; no time is seen to be lost in collectives"
    lost = float(waiting[longest])
    waits = f"process {profile.processes[longest]} waits {duration_text(lost)} of a call in collectives for others"
    return f"{text}; {waits}, as far as can be inferred; process {profile.processes[profile.slowest]} computes longest"


def process_profile_text(profile: ProcessProfile) -> str:
    """The sentence alone."""
    return f"ProcessProfile({headline(profile)})"
