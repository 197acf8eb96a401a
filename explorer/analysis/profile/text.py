"""Profiles as text: a line profiler's table with the longest kernels, and the profiles of many processes as one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os.path import basename
from pathlib import PurePath

import numpy as np

from explorer.analysis.profile.recording import host_words
from explorer.model.results.process_profile import ProcessOp, ProcessProfile
from explorer.model.results.profile import Profile
from explorer.model.results.profile_rows import OpTime
from explorer.model.units import count_text, duration_text

_LINES, _KERNELS, _HOST = 12, 6, 4
_WIDEST = 56
_BAR = 10
_LONGER = 1.1  # times as long while it is recorded: worth a word


def profile_text(profile: Profile) -> str:
    """What `repr` gives: the lines that took longest with their share, then kernels, the rest, the host."""
    lines, ops = _line_cells(profile), _op_cells(profile)
    head = ("time", "share", "", "line" if lines else "", "source" if lines else "")
    table = _aligned([head, *lines, *ops])
    above = [_headline(profile), "", *table[: len(lines) + 1]]
    below = ["", *table[len(lines) + 1 :]] if ops else []
    return "\n".join(line.rstrip() for line in (*above, *below, "", *_rest(profile)))


def _line_cells(profile: Profile) -> list[tuple[str, ...]]:
    sources = [source for capture in profile.captures.values() for source in capture.sources.items()]
    labels = {file: source.label for file, source in sources}
    is_one_file = len({line.file for line in profile.lines}) <= 1
    rows: list[tuple[str, ...]] = []
    for line in profile.lines[:_LINES]:
        place = str(line.line) if is_one_file else f"{labels.get(line.file, basename(line.file))}:{line.line}"
        rows.append((*_time(line.seconds, line.share), place, _short(line.text)))
    rows += _more([line.seconds for line in profile.lines[_LINES:]], profile.device_seconds, "line")
    if profile.unattributed > 0:
        share = profile.unattributed / profile.device_seconds
        rows.append((*_time(profile.unattributed, share), "", "no line known"))
    return rows


def _op_cells(profile: Profile) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for op in profile.ops[:_KERNELS]:
        times = f"  ×{op.count:,.0f}" if op.count > 1 else ""
        rows.append((*_time(op.seconds, op.share), op.op, f"{op.name}{times}"))
    return rows + _more([op.seconds for op in profile.ops[_KERNELS:]], profile.device_seconds, "kernel")


def _headline(profile: Profile) -> str:
    calls = f"mean of {profile.runs:,} calls" if profile.runs > 1 else "one call"
    wall, device = duration_text(profile.seconds), duration_text(profile.device_seconds)
    recorded = ""
    if profile.wall_seconds > _LONGER * profile.seconds or profile.device_seconds > profile.seconds:
        recorded = f"; recorded {duration_text(profile.wall_seconds)}, of which"
    return f"{profile.function}{profile.signature}: {wall} a call{recorded or ','} {device} on the device ({calls})"


def _rest(profile: Profile) -> Iterable[str]:
    share = f" ({profile.gap_seconds / profile.wall_seconds:.0%} of the call)" if profile.wall_seconds else ""
    yield f"device waits  {duration_text(profile.gap_seconds)}{share}"
    host = list(host_words(profile.host).items())[:_HOST]
    if host:
        yield f"host          {', '.join(f'{name} {duration_text(seconds)}' for name, seconds in host)}"
    for note in profile.notes:
        yield f"note: {note}"


def _time(seconds: float, share: float) -> tuple[str, str, str]:
    whole = min(share, 1.0) if share > 0 else 0.0  # a share from a file may be any number, or NaN
    return duration_text(seconds), f"{share:.1%}", "█" * round(whole * _BAR) or "▏"


def _more(seconds: Sequence[float], whole: float, what: str) -> list[tuple[str, ...]]:
    if not seconds:
        return []
    total = sum(seconds)
    return [(*_time(total, total / whole if whole else 0.0), "", count_text(len(seconds), f"more {what}"))]


def _short(text: str) -> str:
    return text if len(text) <= _WIDEST else text[: _WIDEST - 1] + "…"


def _aligned(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(_cell(cell, widths[i], i) for i, cell in enumerate(row)) for row in rows]


def _cell(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column in (2, 4) else cell.rjust(width)


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
