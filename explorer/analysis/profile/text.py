"""A profile as text: a line profiler's table, the longest kernels, and what is neither."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os.path import basename

from explorer.analysis.profile.host import host_words
from explorer.model.results.profile import Profile
from explorer.model.text import aligned, cut_end
from explorer.model.units import count_text, duration_text

_LINES, _KERNELS, _HOST = 12, 6, 4
_WIDEST = 56
_BAR = 10
_LONGER = 1.1  # times as long while it is recorded: worth a word


def profile_text(profile: Profile) -> str:
    """What `repr` gives: the lines that took longest with their share, then kernels, the rest, the host."""
    lines, ops = _line_cells(profile), _op_cells(profile)
    head = ("time", "share", "", "line" if lines else "", "source" if lines else "")
    table = aligned([head, *lines, *ops], (0, 1, 3))
    above = [_headline(profile), "", *table[: len(lines) + 1]]
    below = ["", *table[len(lines) + 1 :]] if ops else []
    return "\n".join((*above, *below, "", *_rest(profile)))


def _line_cells(profile: Profile) -> list[tuple[str, ...]]:
    sources = [source for capture in profile.captures.values() for source in capture.sources.items()]
    labels = {file: source.label for file, source in sources}
    is_one_file = len({line.file for line in profile.lines}) <= 1
    rows: list[tuple[str, ...]] = []
    for line in profile.lines[:_LINES]:
        place = str(line.line) if is_one_file else f"{labels.get(line.file, basename(line.file))}:{line.line}"
        rows.append((*_time(line.seconds, line.share), place, cut_end(line.text, _WIDEST)))
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
