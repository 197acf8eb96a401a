"""What was measured as tables of pandas: the functions behind the `to_frame` of each result."""

from __future__ import annotations

from dataclasses import fields
from math import nan
from typing import TYPE_CHECKING, Any

from explorer.analysis.attribution import own_frame
from explorer.errors import OptionError
from explorer.files.frames import frame_of
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.results.hot_paths import HotPaths, HotRow
from explorer.model.results.memory_use import MemoryUse
from explorer.model.results.profile import EquationTime, Kind, LineTime, OpTime, ProcessOp, ProcessProfile, Profile
from explorer.model.results.roofline import Point, Roofline
from explorer.model.results.sweep import Measured, Sweep, WhatIf
from explorer.model.results.timing import STEPS, Comparison, Ratio, Samples, Timing

if TYPE_CHECKING:
    import pandas as pd

_MEMORY_USES = ("argument", "output", "temp", "alias", "generated code")
_HOST = ["name", "seconds"]
_HOT = [field.name for field in fields(HotRow) if field.name not in ("holds", "times", "misses")]


def timing_frame(timing: Timing, samples: bool = False) -> pd.DataFrame:
    """A row for each figure, or with `samples` for each measurement in the order in which they were taken."""
    if samples:
        series = {"eager": timing.eager.samples} if timing.eager else {}
        series |= {"warm-up": timing.warm_up, "steady": timing.steady.samples}
        rows = [
            {"what": what, "number": number, "seconds": seconds}
            for what, values in series.items()
            for number, seconds in enumerate(values)
        ]
        return frame_of(rows, ["what", "number", "seconds"])
    return frame_of(timing_rows(timing))


def timing_rows(timing: Timing) -> list[dict[str, Any]]:
    """The figures of a timing: eager, each step of the first call, the first call, steady."""
    figures = {"eager": timing.eager} if timing.eager else {}
    figures |= {step: Samples((timing.stages[step],)) for step in STEPS if step in timing.stages}
    figures |= {"first call": timing.first_call, "steady": timing.steady}
    return [{"what": what, **_of_samples(figure)} for what, figure in figures.items()]


def comparison_frame(comparison: Comparison, samples: bool = False) -> pd.DataFrame:
    """A row for each name, or with `samples` for each round."""
    if samples:
        names = list(comparison.samples)
        rounds = zip(*(comparison.samples[name].samples for name in names), strict=False)
        return frame_of([dict(zip(names, row, strict=True)) for row in rounds], names)
    rows: list[dict[str, Any]] = []
    for name, measured in comparison.samples.items():
        ratio = comparison.ratios.get(name, Ratio(name, 1.0, 1.0, 1.0))
        ratios = {"ratio": ratio.ratio, "ratio_low": ratio.low, "ratio_high": ratio.high}
        rows.append({"name": name, **_of_samples(measured), **ratios})
    times, counts = ["median", "low", "high", "fastest", "spread"], ["samples", "calls"]
    return frame_of(rows, ["name", *times, "ratio", "ratio_low", "ratio_high", *counts])


def sweep_frame(sweep: Sweep) -> pd.DataFrame:
    """A row for each point; a swept name that is also the name of a figure gets an underscore."""
    rows: list[dict[str, Any]] = []
    for row in sweep.rows:
        figures = _of_program(row)
        swept = {f"{name}_" if name in figures else name: value for name, value in row.values.items()}
        rows.append(swept | figures)
    return frame_of(rows)


def what_if_frame(what_if: WhatIf) -> pd.DataFrame:
    """A row for each variant."""
    return frame_of(
        [
            {
                "variant": row.name,
                "kind": row.kind,
                "ratio": row.ratio.ratio if row.ratio else nan,
                "ratio_low": row.ratio.low if row.ratio else nan,
                "ratio_high": row.ratio.high if row.ratio else nan,
                "difference": row.difference.absolute if row.difference else nan,
                "relative": row.difference.relative if row.difference else nan,
                "same": row.is_same,
                **_of_program(row),
            }
            for row in what_if.rows
        ]
    )


def dynamic_frame(report: DynamicReport) -> pd.DataFrame:
    """A row for each size that was padded; a dimension whose name is also a column's gets an underscore."""
    rows: list[dict[str, Any]] = []
    for row in report.sizes:
        figures = {
            **{f"bucket_{name}": size for name, size in row.bucket.items()},
            "calls": row.calls, "seconds": row.median_seconds, "bytes": row.bytes, "padded_bytes": row.padded_bytes,
            "flops": row.flops, "padded_flops": row.padded_flops, "waste": row.waste,
        }  # fmt: skip
        rows.append({f"{name}_" if name in figures else name: size for name, size in row.sizes.items()} | figures)
    return frame_of(rows)


def memory_frame(use: MemoryUse) -> pd.DataFrame:
    """A row for each size, in bytes."""
    return frame_of(
        [
            {
                **row.values,
                **{name: row.uses.get(name) for name in _MEMORY_USES},
                "constants": row.constants,
                "live": row.live,
                "needed": row.needed,
                "measured": row.measured,
                "fits": use.fits(row),
                "error": row.error,
            }
            for row in use.rows
        ]
    )


def roofline_frame(roofline: Roofline) -> pd.DataFrame:
    """A row for each kernel."""
    return frame_of(roofline.points, [*_names(Point), "efficiency", "wasted"])


def process_profile_frame(profile: ProcessProfile) -> pd.DataFrame:
    """A row for each instruction, with its seconds in each process; NaN where one has no such instruction."""
    frame = frame_of(profile.ops, _names(ProcessOp))
    for at, process in enumerate(profile.processes):
        frame[process] = profile.seconds[:, at]
    return frame


def profile_frame(profile: Profile, kind: Kind = "lines") -> pd.DataFrame:
    """A row for each line, op, equation or thing that the host did; of a stack, the user's innermost line."""
    if kind == "host":
        return frame_of([{"name": name, "seconds": seconds} for name, seconds in profile.host.items()], _HOST)
    if kind == "lines":
        return frame_of(profile.lines, _names(LineTime))
    if kind == "equations":
        return frame_of(profile.equations, _names(EquationTime))
    if kind == "ops":
        columns = _names(OpTime)
        frame = frame_of(profile.ops, columns)
        frame["stack"] = [str(own_frame(op.stack) or "") for op in profile.ops]
        return frame
    raise OptionError(f"a profile has tables of lines, ops, equations and host; it got {kind!r}.")


def hot_frame(paths: HotPaths) -> pd.DataFrame:
    """A row for each function."""
    return frame_of(hot_rows(paths), [*_HOT, "calls", "speedup", "saved_seconds", "misses"])


def hot_rows(paths: HotPaths) -> list[dict[str, Any]]:
    """What became of each function that was called often."""
    return [
        {
            **{name: getattr(row, name) for name in _HOT},
            "calls": row.calls,
            "speedup": row.speedup,
            "saved_seconds": row.saved_seconds,
            "misses": sum(row.misses.values()),
        }
        for row in paths.functions
    ]


def _names(row: type) -> list[str]:
    return [field.name for field in fields(row)]


def _of_samples(samples: Samples) -> dict[str, float]:
    return {
        "median": samples.median, "low": samples.low, "high": samples.high, "fastest": samples.fastest,
        "spread": samples.spread, "samples": samples.count, "calls": samples.calls,
    }  # fmt: skip


def _of_program(row: Measured) -> dict[str, Any]:
    """Every figure of a compiled program: seconds, bytes and counts."""
    steady = row.steady
    return {
        "seconds": row.seconds,
        "low": steady.low if steady else nan,
        "high": steady.high if steady else nan,
        "first_call": row.first_call,
        **{step: row.stages.get(step, nan) for step in ("trace", "lower", "compile", "run")},
        **{use: row.memory.get(use, nan) for use in ("argument", "output", "temp", "alias")},
        "peak": row.peak,
        "least": row.least,
        "flops": row.flops,
        "bytes": row.bytes,
        "kernels": row.kernels,
        "error": row.error,
    }
