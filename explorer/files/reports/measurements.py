"""What was measured, padded, or compiled because it was hot, as the body of a report."""

from __future__ import annotations

from typing import Any

from explorer.files.reports.report import fields_of, plain
from explorer.files.result_frames import hot_rows, timing_rows
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.results.hot_paths import HotPaths, OperationTimeline
from explorer.model.results.profile import Profile
from explorer.model.results.timing import Timing

_NAMED = 3  # lines that can't be told apart
_OP = ("name", "op", "module", "program", "seconds", "share", "total", "count", "flops", "bytes", "wasted", "scope")


def timing_body(timing: Timing) -> dict[str, Any]:
    """How long a function takes: a row for each figure."""
    return {
        **fields_of(timing, "function", "signature"),
        "summary": [timing.headline],
        "too_noisy": timing.steady.is_too_noisy,
        "speedup": timing.speedup,
        "speedup_interval": plain(timing.speedup_interval),
        "break_even": timing.break_even,
        "figures": list(timing_rows(timing)),
        **fields_of(timing, "notes", "environment"),
    }


def profile_body(profile: Profile) -> dict[str, Any]:
    """Where a function's time goes: by source line, and by instruction."""
    return {
        **fields_of(profile, "function", "signature", "runs"),
        "summary": [repr(profile).partition("\n")[0], *_hottest(profile)],
        **fields_of(profile, "seconds", "wall_seconds", "device_seconds", "gap_seconds", "unattributed"),
        "hottest": [{"file": line.file, "line": line.line} for line in profile.hottest],
        "lines": [plain(line) for line in profile.lines],
        "ops": [fields_of(op, *_OP) for op in profile.ops],
        **fields_of(profile, "host", "notes", "environment"),
    }


def _hottest(profile: Profile) -> list[str]:
    lines = profile.hottest
    if not lines:
        return []
    each = [f"line {line.line}, {line.share:.0%} of the device's time: {line.text}" for line in lines[:_NAMED]]
    if len(lines) > 1:
        each.insert(0, f"No line stands out; {len(lines):,} can't be told apart, the first of them:")
    return each


def padding_body(report: DynamicReport) -> dict[str, Any]:
    """Whether one binary can serve every size, and what prevents it."""
    return {
        **fields_of(report, "function", "verdict", "why", "dimensions", "buckets", "masks", "rules"),
        "summary": [report.headline],
        "refusals": [plain(refusal) for refusal in report.refusals],
        "binaries": [plain(binary) for binary in report.binaries],
        "faults": list(report.faults),
    }


def hot_body(paths: HotPaths) -> dict[str, Any]:
    """What became of the functions that were called often."""
    return {
        "summary": [paths.headline],
        "functions": list(hot_rows(paths)),
        **fields_of(paths, "seconds", "threshold", "mode", "notes", "environment"),
    }


def timeline_body(timeline: OperationTimeline) -> dict[str, Any]:
    """What an instruction log says, without its course over time."""
    counts = timeline.counts.items()
    return {
        **fields_of(timeline, "name", "start", "end"),
        "summary": [timeline.headline],
        "operations": [{"name": name, "compiled": compiled, "count": count} for (name, compiled), count in counts],
        "compiles": [plain(each) for each in timeline.compiles],
    }
