"""Data frames of results, for `to_frame`; columns shared with the shell's reports are public here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from math import nan
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from explorer.analysis.attribution import own_frame
from explorer.errors import OptionError
from explorer.files.columns import Column, Columns, frame_of, import_pandas, of_part, own
from explorer.model.attribution import MARKS, LineRow
from explorer.model.capture import Capture
from explorer.model.events.event import KINDS, REASONS, Event
from explorer.model.events.key import Key
from explorer.model.events.ledger import Ledger
from explorer.model.events.process_ledger import ProcessLedger, ProcessProgram
from explorer.model.fates import FateRow
from explorer.model.findings import Finding
from explorer.model.links import GRADES
from explorer.model.results.dynamic_report import DynamicReport
from explorer.model.results.estimates import Collective
from explorer.model.results.hot_paths import HotRow
from explorer.model.results.memory_use import MemoryUse
from explorer.model.results.profile import EquationTime, Kind, LineTime, OpTime, ProcessOp, ProcessProfile, Profile
from explorer.model.results.roofline import Point
from explorer.model.results.sweep import Measured, Sweep
from explorer.model.results.targets import TargetResult
from explorer.model.results.timing import STEPS, Comparison, Ratio, Samples, Timing

if TYPE_CHECKING:
    import pandas as pd

# Measurements ------------------------------------------------------------------------------------------------------

_TIMES = own(Samples, "median", "low", "high", "fastest", "spread")
_COUNTS = own(Samples, "calls", samples="count")[::-1]
FIGURE: Columns = (
    Column("what", itemgetter(0), str, "eager, trace, lower, compile, run, first call or steady"),
    *of_part(itemgetter(1), (*_TIMES, *_COUNTS)),
)
_COMPARED: Columns = (
    Column("name", itemgetter(0)),
    *of_part(itemgetter(1), _TIMES),
    *of_part(itemgetter(2), own(Ratio, ratio="ratio", ratio_low="low", ratio_high="high")),
    *of_part(itemgetter(1), _COUNTS),
)


def timing_frame(timing: Timing, samples: bool = False) -> pd.DataFrame:
    """Return a DataFrame with a row for each figure, or with `samples` for each measurement, in order."""
    if not samples:
        return frame_of(figures(timing), FIGURE)
    series = {"eager": timing.eager.samples} if timing.eager else {}
    series |= {"warm-up": timing.warm_up, "steady": timing.steady.samples}
    rows = [
        {"what": what, "number": number, "seconds": seconds}
        for what, values in series.items()
        for number, seconds in enumerate(values)
    ]
    return frame_of(rows, ["what", "number", "seconds"])


def figures(timing: Timing) -> list[tuple[str, Samples]]:
    """Return (name, samples) of each figure: `eager` if measured, the first call's steps, `first call`, `steady`."""
    named = {"eager": timing.eager} if timing.eager else {}
    named |= {step: Samples((timing.stages[step],)) for step in STEPS if step in timing.stages}
    return [*named.items(), ("first call", timing.first_call), ("steady", timing.steady)]


def comparison_frame(comparison: Comparison, samples: bool = False) -> pd.DataFrame:
    """Return a DataFrame with a row for each name, or with `samples` for each round, with a column per name."""
    if samples:
        names = list(comparison.samples)
        rounds = zip(*(comparison.samples[name].samples for name in names), strict=False)
        return frame_of([dict(zip(names, row, strict=True)) for row in rounds], names)
    same = Ratio(comparison.baseline, 1.0, 1.0, 1.0)
    rows = [(name, one, comparison.ratios.get(name, same)) for name, one in comparison.samples.items()]
    return frame_of(rows, _COMPARED)


def _by_name(mapping: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, lambda row, name=name: getattr(row, mapping).get(name, nan)) for name in names)


_PROGRAM: Columns = (
    *own(Measured, "seconds"),
    Column("low", lambda row: row.steady.low if row.steady else nan),
    Column("high", lambda row: row.steady.high if row.steady else nan),
    *own(Measured, "first_call"),
    *_by_name("stages", *STEPS),
    *_by_name("memory", "argument", "output", "temp", "alias"),
    *own(Measured, "peak", "least", "flops", "bytes", "kernels", "error"),
)


def _values(row: object, columns: Columns) -> dict[str, Any]:
    return {column.name: column.value(row) for column in columns}


def _with_figures(named: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict of the varied values and the figures; a name that clashes with a figure's ends in `_`."""
    return {f"{name}_" if name in figures else name: value for name, value in named.items()} | {**figures}


def sweep_frame(sweep: Sweep) -> pd.DataFrame:
    """Return a DataFrame with a row for each point: its varied values, then its figures."""
    return frame_of(_with_figures(row.values, _values(row, _PROGRAM)) for row in sweep.rows)


def _of(part: str, name: str) -> Callable[[Any], Any]:
    """Return a function from a row to `row.<part>.<name>`, or to NaN without that part."""
    return lambda row: nan if getattr(row, part) is None else getattr(getattr(row, part), name)


_VARIANT: Columns = (
    Column("variant", attrgetter("name")),
    Column("kind", attrgetter("kind")),
    Column("ratio", _of("ratio", "ratio")),
    Column("ratio_low", _of("ratio", "low")),
    Column("ratio_high", _of("ratio", "high")),
    Column("difference", _of("difference", "absolute")),
    Column("relative", _of("difference", "relative")),
    Column("same", attrgetter("is_same")),
    *_PROGRAM,
)


def dynamic_frame(report: DynamicReport) -> pd.DataFrame:
    """Return a DataFrame with a row for each size that was padded: its bucket, calls and waste."""
    names = ("calls", "bytes", "padded_bytes", "flops", "padded_flops", "waste")
    calls, *rest = ((name, attrgetter(name)) for name in names)
    figures = (calls, ("seconds", attrgetter("median_seconds")), *rest)
    return frame_of(
        _with_figures(
            row.sizes,
            {f"bucket_{name}": size for name, size in row.bucket.items()} | {name: of(row) for name, of in figures},
        )
        for row in report.sizes
    )


def memory_frame(use: MemoryUse) -> pd.DataFrame:
    """Return a DataFrame with a row for each combination of varied values: its memory by use, in bytes."""
    uses = ("argument", "output", "temp", "alias", "generated code")
    return frame_of(
        {
            **row.values,
            **{name: row.uses.get(name) for name in uses},
            **{name: getattr(row, name) for name in ("constants", "live", "needed", "measured")},
            "fits": use.fits(row),
            "error": row.error,
        }
        for row in use.rows
    )


def process_profile_frame(profile: ProcessProfile) -> pd.DataFrame:
    """Return a DataFrame with a row for each instruction and its seconds in a column per process, NaN if missing."""
    frame = frame_of(profile.ops, own(ProcessOp))
    for at, process in enumerate(profile.processes):
        frame[process] = profile.seconds[:, at]
    return frame


OP = ("name", "op", "module", "program", "seconds", "share", "total", "count", "flops", "bytes", "wasted")


def profile_frame(profile: Profile, kind: Kind = "lines") -> pd.DataFrame:
    """Return a DataFrame of a profile's `lines`, `ops`, `equations` or `host` activities, one row each.

    For `ops`, the column `stack` has the user's innermost line.
    """
    stack = Column("stack", lambda op: str(own_frame(op.stack) or ""))
    tables: dict[str, tuple[Callable[[], Iterable[Any]], Columns]] = {
        "lines": (lambda: profile.lines, own(LineTime)),
        "ops": (lambda: profile.ops, (*own(OpTime, *OP), stack, *own(OpTime, "scope", "computes"))),
        "equations": (lambda: profile.equations, own(EquationTime)),
        "host": (profile.host.items, (Column("name", itemgetter(0)), Column("seconds", itemgetter(1)))),
    }
    if kind not in tables:
        raise OptionError(f"a profile has tables of lines, ops, equations and host; it got {kind!r}.")
    rows, columns = tables[kind]
    return frame_of(rows(), columns)


HOT: Columns = (
    *own(HotRow, *(field.name for field in fields(HotRow) if field.name not in ("holds", "times", "misses"))),
    *own(HotRow, "calls", "speedup", "saved_seconds"),
    Column("misses", lambda row: sum(row.misses.values()), int, "Calls that ran eagerly because a guard missed."),
)


# Programs ----------------------------------------------------------------------------------------------------------


def node_frame(capture: Capture, stage: str = "hlo") -> pd.DataFrame:
    """Return a DataFrame with a row for each node of a stage, with the columns that `Capture.to_frame` lists."""
    pandas = import_pandas()
    graph = capture.stage(stage).graph
    links, attribution = capture.links, graph.attribution
    first = links.graphs[links.first]
    own_rows = {at: (at,) for at in range(len(graph.names))}
    equations = own_rows if stage == links.first else links.table(stage, links.first)
    # Code -1, for no place or group, decodes to the entry added at the end.
    places = [*((place.file, place.line) for place in attribution.places), ("", 0)]
    files, lines = zip(*places, strict=True)
    columns: dict[str, Sequence[object]] = {
        "name": graph.names,
        "op": _decoded(graph.op, graph.ops),
        "type": _decoded(graph.type, graph.types),
        "group": _decoded(graph.group, [*(group.name for group in graph.groups), ""]),
        "scope": _decoded(graph.scope, graph.scopes),
        "file": _decoded(attribution.line, files),
        "line": _decoded(attribution.line, lines),
        "how": _decoded(attribution.mark, MARKS),
        "equations": [", ".join(first.names[row] for row in equations.get(at, ())) for at in range(len(graph.names))],
        "grade": _decoded(links.grades(stage), GRADES),
    }
    return pandas.DataFrame({name: list(column) for name, column in columns.items()} | dict(graph.measures))


def _decoded(codes: NDArray[Any], values: Sequence[object]) -> list[object]:
    return [values[code] for code in codes.tolist()]


_COLLECTIVE = ("kind", "axes", "groups", "size", "bytes", "wire", "runs", "file", "line", "text", "seconds")
_TARGET = (
    *("target", "device", "fits", "memory", "capacity", "kernels", "flops", "bytes", "wire", "seconds"),
    *("is_complete", "estimated", "estimated_by", "failure"),
)
_FINDING = (
    *("severity", "code", "rule", "message", "label", "line", "column", "text", "evidence"),
    *("documentation", "file"),
)


_TABLES: Mapping[str, tuple[Callable[[Any], Iterable[Any]], Columns]] = {
    "Collectives": (iter, (Column("node", attrgetter("node.name")), *own(Collective, *_COLLECTIVE))),
    "FateTable": (iter, own(FateRow)),
    "Findings": (
        iter,
        (*own(Finding, *_FINDING[:9]), Column("fix", attrgetter("fix.text")), *own(Finding, *_FINDING[9:])),
    ),
    "HotPaths": (attrgetter("functions"), HOT),
    "LineTable": (iter, own(LineRow)),
    "Roofline": (attrgetter("points"), (*own(Point), *own(Point, "efficiency", "wasted"))),
    "TargetComparison": (iter, own(TargetResult, *_TARGET)),
    "WhatIf": (attrgetter("rows"), _VARIANT),
}


def to_frame(value: object) -> pd.DataFrame:
    """Return the DataFrame of a result that has only one table."""
    name = type(value).__name__
    if name in _FRAMES:
        return _FRAMES[name](value)
    rows, columns = _TABLES[name]
    return frame_of(rows(value), columns)


# Ledgers ------------------------------------------------------------------------------------------------------------

PROCESS_PROGRAM = own(
    ProcessProgram,
    *("function", "file", "line", "call_site", "is_shared", "eager", "compiles", "seconds", "slowest"),
)


def process_frame(ledger: ProcessLedger) -> pd.DataFrame:
    """Return a DataFrame with a row for each program; `processes` names those that compiled it, `count` counts them."""

    def slowest(row: ProcessProgram) -> str:
        return ledger.processes[row.slowest_process]

    columns = (
        *PROCESS_PROGRAM,
        Column("arguments", lambda row: ", ".join(f"{path}: {kind}" for path, kind in row.arguments)),
        Column("count", attrgetter("count")),
        Column("processes", lambda row: ledger.named(row.processes)),
        Column("slowest_process", slowest),
    )
    return frame_of(ledger, columns)


def _of_function(name: str, unseen: Any) -> Callable[[Event], Any]:
    return lambda event: unseen if event.key is None else getattr(event.key.function, name)


EVENT: Columns = (
    Column(
        "call", attrgetter("call"), "int64", "number of the call that left the fast path; its events have one number"
    ),
    Column("id", attrgetter("id"), "string", "number of the compile in its function: [step/3]; empty for a miss"),
    Column("kind", attrgetter("kind"), "string", "trace, lower, compile, cache-hit or miss"),
    Column("function", attrgetter("function"), "string", "name of the compiled function or operation"),
    Column("eager", _of_function("eager", False), "bool", "whether it is a single operation, outside of any jit"),
    Column("file", _of_function("file", ""), "string", "file where the function is defined; empty if unseen"),
    Column("line", _of_function("line", 0), "int64", "line where the function is defined; 0 if unseen"),
    Column("call_site", lambda event: str(event.call_site or ""), "string", "the user's line that called it"),
    Column("reason", attrgetter("reason.kind"), "string", "kind of the reason"),
    Column("leaf", attrgetter("reason.leaf"), "string", "what changed: batch['x'].shape[0]"),
    Column("before", attrgetter("reason.before"), "string", "its value in the nearest earlier call"),
    Column("after", attrgetter("reason.after"), "string", "its value in this call"),
    Column("why", lambda event: str(event.reason), "string", "the reason in one sentence"),
    Column("fix", attrgetter("reason.fix"), "string", "code that would prevent the recompile"),
    Column("signature", lambda event: signature(event.key), "string", "types of the arguments: x: float32[32,8]"),
    Column("seconds", attrgetter("seconds"), "float64", "how long the event took, in seconds"),
    Column("saved", attrgetter("saved"), "float64", "seconds of compiling that the persistent cache saved"),
    Column("total", attrgetter("total"), "float64", "seconds that the function has cost so far, this event included"),
    Column("start", attrgetter("start"), "float64", "when it began (UTC)"),
    Column("thread", attrgetter("thread"), "string", "name of the thread"),
    Column("device", attrgetter("device"), "string", "what it was compiled for: cpu:0"),
    Column("process", attrgetter("process"), "string", "which process it was in, where several were merged"),
    Column("error", attrgetter("error"), "string", "error that ended it; empty if it succeeded"),
)


def ledger_frame(ledger: Ledger) -> pd.DataFrame:
    """Return a DataFrame with a row for each event, oldest first; an empty ledger gives the same columns and dtypes.

    Kinds and reasons are categories, names and sentences strings, seconds floats, `start` a time in UTC. The frame's
    `attrs` have `dropped`, `spilled` and `note`.

    Raises:
        MissingPackageError: pandas is not installed.
    """
    pandas = import_pandas()
    events = ledger.events
    columns = {each.name: pandas.Series([each.value(event) for event in events], dtype=each.type) for each in EVENT}
    columns["kind"] = columns["kind"].astype(pandas.CategoricalDtype(list(KINDS)))
    columns["reason"] = columns["reason"].astype(pandas.CategoricalDtype(list(REASONS)))
    columns["start"] = pandas.to_datetime((columns["start"] * 1e6).astype("int64"), unit="us", utc=True)
    table = pandas.DataFrame(columns)
    table.attrs.update(dropped=ledger.dropped, spilled=ledger.spilled, note=ledger.note)
    return table


def signature(key: Key | None) -> str:
    """Return types of arrays and values of static arguments, `x: float32[32,8], n=3`; empty if the key is unknown."""
    if key is None:
        return ""
    arrays = [f"{leaf.path}: {leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in key.leaves]
    return ", ".join([*arrays, *(f"{static.path}={static.value}" for static in key.statics)])


_FRAMES: Mapping[str, Callable[[Any], pd.DataFrame]] = {
    "MemoryUse": memory_frame,
    "ProcessLedger": process_frame,
    "ProcessProfile": process_profile_frame,
}
