"""Results as sheets: a sentence, tables and notes on a page, and the same as text in a terminal.

A result's columns are defined once: the head of each, and the text of a row's cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Generic, TypeVar

import numpy as np

from explorer.analysis.collectives import group_text
from explorer.analysis.facts import kernel_facts
from explorer.analysis.profile_trees import headline as process_profile_headline
from explorer.analysis.recompiles.process_programs import headline as process_ledger_headline
from explorer.files.findings import verdict
from explorer.model.answers import Answer
from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger, ProcessProgram
from explorer.model.golden import Change, CheckResult
from explorer.model.machine_code import LANGUAGES, KernelCode, MachineCode
from explorer.model.results.estimates import PEAKS, Collective, Collectives, Estimate, Estimates
from explorer.model.results.profile import ProcessProfile
from explorer.model.results.roofline import Peaks
from explorer.model.results.targets import LargestFit, TargetComparison, TargetResult, TargetRow, Targets, Trial
from explorer.model.text import aligned, cut_end
from explorer.model.units import (
    bytes_text,
    count_text,
    duration_text,
    least_duration_text,
    rate_text,
    share_text,
)
from explorer.view.chart import Table, html_table
from explorer.view.interface import View
from explorer.view.page import sentence

T = TypeVar("T")
Columns = Mapping[str, Callable[[T], str]]
"""Head of each column, and the function that gives a row's cell."""


@dataclass(frozen=True)
class Sheet:
    """Content of a result's view.

    Args:
        title: Title of the page.
        sentence: Summary; empty for none.
        tables: Tables; a terminal shows only the first.
        notes: Notes and failures.
        is_bold: True for a bold sentence on a page.
        below: HTML below everything else.
        lines: Terminal output, if it differs from sentence, first table and notes.
    """

    title: str
    sentence: str = ""
    tables: Sequence[Table] = ()
    notes: Sequence[str] = ()
    is_bold: bool = False
    below: str = ""
    lines: Sequence[str] | None = None

    @property
    def html(self) -> str:
        first = f"<b>{escape(self.sentence)}</b>" if self.is_bold else escape(self.sentence)
        parts = [f"<p>{first}</p>" * bool(self.sentence), *(html_table(table, is_open=True) for table in self.tables)]
        parts += [f"<p>{escape(note)}</p>" for note in self.notes]
        return f'<div class="explorer-static">{"".join(parts)}{self.below}</div>'

    @property
    def text(self) -> str:
        if self.lines is not None:
            return "\n".join(self.lines)
        table = [line for table in self.tables[:1] for line in text_of(table)]
        more = [table.more for table in self.tables[:1] if table.more]
        return "\n".join([*[self.sentence] * bool(self.sentence), *table, *self.notes, *more])


class SheetView(View[T], Generic[T]):
    """View of values that a function converts to a sheet."""

    def __init__(self, sheet: Callable[[T], Sheet]) -> None:
        self.sheet = sheet

    def title(self, value: T) -> str:
        return self.sheet(value).title

    def html(self, value: T) -> str:
        return self.sheet(value).html


def table_of(title: str, columns: Columns[T], rows: Iterable[T], more: str = "") -> Table:
    """Return a table with a row for each of `rows` and a cell for each of `columns`; `more` is a note below."""
    return Table(title, tuple(columns), [tuple(text(row) for text in columns.values()) for row in rows], more)


def text_of(table: Table, most: int | None = None, indent: str = "") -> list[str]:
    """Return the lines of a table in a terminal: the head and the first `most` rows, by default all."""
    return aligned([table.head, *table.rows[:most]], indent=indent)


# Programs for devices that are not here -----------------------------------------------------------------------------


def _along(row: Collective) -> str:
    return ", ".join(row.axes) or group_text(row.groups)


_COLLECTIVE: Columns[Collective] = {
    "line": lambda row: f"{row.line}  {row.text[:40]}" if row.line else "no line",
    "collective": lambda row: row.kind,
    "along": _along,
    "devices": lambda row: str(row.size),
    "given": lambda row: bytes_text(row.bytes),
    "sent": lambda row: bytes_text(row.wire),
    "times": lambda row: f"{row.runs:g}",
    "meanwhile": lambda row: count_text(len(row.overlaps), "kernel") if row.overlaps else "waits",
    "estimated": lambda row: (
        f"≥ {least_duration_text(row.seconds * row.runs)}" if row.seconds is not None else "not known"
    ),
}


def collectives(value: Collectives) -> Sheet:
    mesh = " × ".join(f"{name} {size}" for name, size in value.mesh)
    where = f"between {value.devices} devices" + (f" ({mesh})" if mesh else "")
    if not value:
        devices = f"{value.devices} devices" if value.devices > 1 else "one device"
        return Sheet("collectives", f"No collectives: a program of {devices}.")
    headline = f"{count_text(len(value), 'collective')} {where}; each sends {bytes_text(value.wire)} or more."
    return Sheet("collectives", headline, [table_of("what each device sends", _COLLECTIVE, value)])


def estimates(value: Estimates) -> Sheet:
    title = "estimated times"
    if not value:
        return Sheet(
            title, "Nothing is estimated: the program was compiled for this machine, where it can be measured."
        )
    unknown = count_text(value.unknown, "kernel")
    more = f"; {unknown} more without an estimate" if value.unknown else ""
    of = count_text(len(value), "kernel")
    total = value.seconds or 1.0
    columns: Columns[Estimate] = {
        "kernel": lambda row: row.node.name,
        "line": lambda row: str(row.node.place.line) if row.node.place else "",
        "estimated": lambda row: (
            f"≥ {least_duration_text(row.seconds)}" if row.by == PEAKS else duration_text(row.seconds)
        ),
        "of all": lambda row: share_text(row.seconds / total),
        "runs": lambda row: f"{row.runs:g}",
        "by": lambda row: row.by,
    }
    headline = f"Estimated {value.total} for {of}, by {value.by}{more}. Nothing is measured."
    return Sheet(title, headline, [table_of("what each kernel is expected to take", columns, value)])


def _rate(dtype: str) -> Callable[[TargetRow], str]:
    return lambda row: rate_text(row.device.flops[dtype]) if dtype in row.device.flops else ""


_TARGET: Columns[TargetRow] = {  # what isn't known is empty
    "target": lambda row: row.device.key,
    "hardware": lambda row: row.device.name,
    "memory": lambda row: bytes_text(row.device.memory) if row.device.memory else "its machine's",
    "bandwidth": lambda row: rate_text(row.device.bandwidth, "B") if row.device.bandwidth else "",
    "bf16": _rate("bf16"),
    "f32": _rate("f32"),
    "its compiler": lambda row: (
        ("installed" if row.is_installed else "not installed") + (f" ({row.hint})" if row.hint else "")
    ),
}


def targets(value: Targets) -> Sheet:
    count = len({source for row in value for source in row.device.sources})
    figures = "Published figures of one device, matrix products without sparsity"
    note = f"{figures}; `.device.sources` names the {count} that they are from."
    return Sheet("targets", tables=[table_of("what target= takes", _TARGET, value, note)])


_FITS = {True: "yes", False: "no", None: "not known"}
_ONE_DEVICE = (
    "Figures are for one device and one run. Nothing is measured: times are estimated by the compiler's model of the "
    "device if it has one, otherwise from published figures. The minimum for kernels and links comes from published "
    "figures, without the latency of launches and links."
)


def _estimated(row: TargetResult) -> str:
    """Return the estimated time with its source: `3.1 s, by XLA's cost model, 2 kernels not known`.

    Return `not known` without estimates.
    """
    if not row.estimates:
        return "not known"
    unknown = f", {count_text(row.estimates.unknown, 'kernel')} not known" if row.estimates.unknown else ""
    return f"{row.estimates.total}, by {row.estimates.by}{unknown}"


def _at_least(row: TargetResult) -> str:
    if math.isnan(row.seconds):
        return "not known"
    return f"≥ {least_duration_text(row.seconds)}" + ("" if row.is_complete else ", some kernels not known")


def _compiled(text: Callable[[TargetResult], str]) -> Callable[[TargetResult], str]:
    """Return a cell function that gives `text(row)`, or an empty text for a target whose compilation failed."""
    return lambda row: "" if row.failure else text(row)


_COMPARED: Columns[TargetResult] = {
    "target": lambda row: row.target,
    "hardware": lambda row: row.device,
    "fits": lambda row: _FITS[row.fits],
    "memory": _compiled(lambda row: bytes_text(row.memory)),
    "of": lambda row: bytes_text(row.capacity) if row.capacity else "not known",
    "kernels": _compiled(lambda row: str(row.kernels)),
    "FLOPs": _compiled(lambda row: rate_text(row.flops, "").removesuffix("/s")),
    "bytes": _compiled(lambda row: bytes_text(row.bytes)),
    "sent": _compiled(lambda row: bytes_text(row.wire) if row.wire else "none"),
    "estimated": _compiled(_estimated),
    "at least": _compiled(_at_least),
}


def target_comparison(value: TargetComparison) -> Sheet:
    """Return the sheet of targets: where the program fits, the fastest by published figures, and all failures."""
    fitting = [row for row in value if row.fits]
    first = f"{value.function} fits on {len(fitting)} of {count_text(len(value), 'target')}"
    unknown = sum(row.fits is None for row in value)
    first += f"; for {unknown:,} that is unknown" * bool(unknown)
    if len(fitting) > 1 and all(row.is_complete for row in fitting):
        best = min(fitting, key=lambda row: row.seconds)
        least = least_duration_text(best.seconds)
        first += f"; by published figures it is fastest on {best.target}: {least} or more"
    title = f"{value.function} on {count_text(len(value), 'target')}"
    return Sheet(title, f"{first}.", [table_of(title, _COMPARED, value, _ONE_DEVICE)], _remarks(value))


def _remarks(comparison: TargetComparison) -> list[str]:
    """Return a sentence for each target that failed, then the caveats of compiling without the hardware."""
    failures = [f"{row.target}: {row.failure.removeprefix(f'{row.target}: ')}" for row in comparison if row.failure]
    caveats: dict[str, list[str]] = {}
    for row in comparison:
        if row.capture is not None and not row.failure:
            caveats.setdefault(row.capture.environment.get("caveat", ""), []).append(row.target)
    return failures + [f"{', '.join(names)}: {caveat}." for caveat, names in caveats.items() if caveat]


def largest_fit(value: LargestFit) -> Sheet:
    """Return the sheet of the largest size that fits, with a row for every size that was compiled."""
    columns: Columns[Trial] = {
        value.dimension: lambda trial: f"{trial.size:,}",
        "fits": lambda trial: "yes" if trial.fits else "no",
        "memory": lambda trial: "" if math.isnan(trial.needed) else bytes_text(trial.needed),
        "compiled in": lambda trial: duration_text(trial.seconds),
        "why not": lambda trial: trial.error,
    }
    title = f"the largest {value.dimension} of {value.function} on {value.device}"
    more = " · ".join([f"Limit: {value.basis}. Memory is per device.", *value.notes])
    table = table_of(title, columns, value.trials, more)
    lines = [value.headline, *text_of(table, indent="  "), more]
    return Sheet(title, value.headline, [table], is_bold=True, lines=lines)


def peaks(value: Peaks) -> Sheet:
    rows = list(_peaks_rows(value))
    title = f"{value.device}: its peaks"
    lines = [value.device, *(f"  {of:<12}{figures}" for of, figures in rows)]
    lines += [f"  note: {note}" for note in value.warnings]
    table = Table(title, ("of", "figures"), rows)
    return Sheet(f"peaks of {value.device}", tables=[table], notes=value.warnings, lines=lines)


def _peaks_rows(peaks: Peaks) -> Iterator[tuple[str, str]]:
    """Yield (label, figures) for each row; the label is empty if it repeats the label above."""
    yield "memory", rate_text(peaks.bandwidth, "B")
    if peaks.fresh:
        yield "", f"{rate_text(peaks.fresh, 'B')} into newly allocated memory"
    for size, rate in sorted(peaks.caches.items()):
        yield "", f"{rate_text(rate, 'B')} within {bytes_text(size)}"
    for title, rates in (("matmul", peaks.matmul), ("arithmetic", peaks.fma)):
        if rates:
            yield title, ", ".join(f"{dtype} {rate_text(rate)}" for dtype, rate in rates.items())
    if peaks.special:
        yield "functions", ", ".join(f"{op} {rate_text(rate, '')}" for op, rate in peaks.special.items())
    if peaks.overhead or peaks.call_overhead:  # published figures have no such value
        yield "overhead", f"{duration_text(peaks.overhead)} a kernel, {duration_text(peaks.call_overhead)} a call"


# Many processes -----------------------------------------------------------------------------------------------------

_MOST, _MOST_PROGRAMS, _IN_TERMINAL = 100, 200, 20  # rows shown; a thousand processes may all differ
_ARGUMENTS = 60  # characters


def process_profile(value: ProcessProfile) -> Sheet:
    """Return the sheet of a profile of several processes: their time, and the longest instructions."""
    waiting, own, count = value.waiting, value.own, len(value.processes)
    processes: Columns[int] = {
        "process": lambda at: value.processes[at],
        "a call": lambda at: duration_text(float(value.calls[at])),
        "computes": lambda at: duration_text(float(own[at])),
        "waits in collectives, inferred": lambda at: duration_text(float(waiting[at])),
    }
    ops: Columns[int] = {
        "instruction": lambda at: value.ops[at].name,
        "line": lambda at: f"{value.ops[at].file}, line {value.ops[at].line}" if value.ops[at].file else "–",
        "in most processes": lambda at: duration_text(float(np.nanmedian(value.seconds[at]))),
        "longest": lambda at: duration_text(float(np.nanmax(value.seconds[at]))),
        "in process": lambda at: value.processes[int(np.nanargmax(value.seconds[at]))],
        "processes": lambda at: f"{int((~np.isnan(value.seconds[at])).sum()):,} of {count:,}",
    }
    order = map(int, np.argsort(-waiting, kind="stable")[:_MOST])
    waits = table_of("Processes, by time waiting", processes, order)
    longest = table_of("Instructions, the longest first", ops, range(min(len(value.ops), _MOST)))
    headline = f"{process_profile_headline(value)}."
    lines = [headline, *text_of(waits, _IN_TERMINAL), *value.notes]
    return Sheet(f"{value.function} in {count:,} processes", headline, [waits, longest], value.notes, lines=lines)


def process_ledger(value: ProcessLedger) -> Sheet:
    """Return the sheet of several processes' compiles: programs that differ between processes, then all programs."""
    different: Columns[ProcessDifference] = {
        "who": lambda row: value.named(row.processes),
        "function": lambda row: value.rows[row.program].place,
        "what": lambda row: row.what or "–",
        "with them": lambda row: row.here if row.other is not None else "no such program",
        "with most": lambda row: row.usual or "–",
        "over several processes": lambda row: "yes: they may deadlock" if row.is_shared else "not known",
    }
    program: Columns[ProcessProgram] = {
        "function": lambda row: row.place,
        "called at": lambda row: row.call_site,
        "arguments": lambda row: cut_end(", ".join(f"{path}: {kind}" for path, kind in row.arguments), _ARGUMENTS),
        "compiled by": lambda row: f"{row.count:,} of {len(value.processes):,}",
        "compiles": lambda row: f"{row.compiles:,}",
        "seconds of all": lambda row: duration_text(row.seconds),
        "slowest": lambda row: f"{duration_text(row.slowest)} in {value.processes[row.slowest_process]}",
    }
    count, others = len(value.rows), len(value.differences)
    tables: list[Table] = []
    if others:
        title = f"Processes whose program differs: {others:,}"
        tables.append(table_of(title, different, value.differences[:_MOST], _more(others, _MOST)))
    shown = value.rows[:_MOST_PROGRAMS]
    tables.append(table_of(f"Programs: {count:,}", program, shown, _more(count, _MOST_PROGRAMS)))
    headline = f"{process_ledger_headline(value)}."
    lines = [headline, *(row.text for row in value.differences[:_IN_TERMINAL]), *text_of(tables[-1], _IN_TERMINAL)]
    below = [_more(count, _IN_TERMINAL), *value.notes]
    lines += below if any(below) else []
    return Sheet(f"What {len(value.processes):,} processes compiled", headline, tables, value.notes, lines=lines)


def _more(count: int, shown: int) -> str:
    return f"{count - shown:,} more: .to_frame() has all of them." if count > shown else ""


# Machine code and golden records ------------------------------------------------------------------

_KERNELS = 3  # that share one code


def machine_code(value: MachineCode) -> Sheet:
    """Return the sheet of each kernel's code figures, with the code to unfold."""
    languages = [name for language, name in LANGUAGES.items() if any(language in row.texts for row in value)]
    headline = f"{count_text(len(value), 'kernel')} of {value.platform} code"
    headline += f": {', '.join(languages)}." if value else "."
    tables = [_code_table(value)] if value else []
    return Sheet("machine code", headline, tables, value.notes, below="".join(map(_code, value)))


def _code_table(value: MachineCode) -> Table:
    facts = [dict(kernel_facts(row, value.platform)) for row in value]
    names = tuple(dict.fromkeys(name for each in facts for name in each))
    rows = [(_kernels(row), *(each.get(name, "") for name in names)) for row, each in zip(value, facts, strict=True)]
    return Table("kernels and what is known of their code", ("kernel", *names), rows)


def _kernels(row: KernelCode) -> str:
    more = f" and {len(row.kernels) - _KERNELS} more" if len(row.kernels) > _KERNELS else ""
    return ", ".join(row.kernels[:_KERNELS]) + more if row.kernels else f"{row.function}, instruction unknown"


def _code(row: KernelCode) -> str:
    summary = escape(f"{row.function}: {LANGUAGES[row.language]}")
    return f"<details><summary>{summary}</summary><pre>{escape(row.texts[row.language])}</pre></details>"


def executable(value: Any) -> Sheet:
    """Return the sheet of an executable's inputs, outputs and programs."""
    info: Columns[tuple[str, Any]] = {"name": lambda pair: pair[0], "what": lambda pair: repr(pair[1])}
    program: Columns[Any] = {
        "inputs": lambda row: ", ".join(f"{name}: {shape}" for name, shape in row.shapes.items()),
        "why": lambda row: row.reason,
        "compiled in": lambda row: duration_text(row.seconds),
    }
    tables = [
        table_of(f"{value.__name__}: what it takes", info, value.input_infos.items()),
        table_of("what it gives", info, value.output_infos.items()),
        table_of("its programs", program, value.specializations),
    ]
    return Sheet(f"executable of {value.__name__}", tables=tables, lines=[repr(value)])


_CHANGE: Columns[Change] = {
    "target": lambda change: change.target,
    "what": lambda change: change.text,
    "where": lambda change: change.where,
}


class CheckView(View[CheckResult]):
    """View of a check: verdict, causes with their lines, and tables of changes."""

    def title(self, value: CheckResult) -> str:
        return f"{value.now.function} beside {value.name}"

    def html(self, value: CheckResult) -> str:
        parts = [f"<p><strong>{escape(value.now.function)}: {escape(verdict(value))}.</strong></p>"]
        parts += [html_table(table_of(cause, _CHANGE, group), is_open=True) for cause, group in _by_cause(value)]
        parts += [f"<p>{escape(note)}</p>" for note in value.notes]
        return f'<div class="explorer-static">{"".join(parts)}</div>'


def check_text(result: CheckResult) -> str:
    """Return a check as text: the verdict, each cause with its line and changes, and the notes."""
    lines = [f"{result.now.function}: {verdict(result)}"]
    for cause, group in _by_cause(result):
        lines.append(cause)
        for change in group:
            lines.append(f"    {f'{change.target}: ' if change.target else ''}{change.text}")
            lines += [f"        {change.where}"] if change.where else []
    return "\n".join([*lines, *(f"note: {note}" for note in result.notes)])


def _by_cause(result: CheckResult) -> Iterator[tuple[str, Sequence[Change]]]:
    """Yield (text, changes) for each cause of regressions, then of gains: `✗ train.py:12: fusion lost`."""
    for sign, changes in (("✗", result.regressions), ("▼", result.gains)):
        by_cause: dict[str, list[Change]] = {}
        for change in changes:
            place = f"{change.file}:{change.line}:" if change.file else ""
            by_cause.setdefault(" ".join(filter(None, (sign, place, change.cause))), []).append(change)
        yield from by_cause.items()


class AnswerView(View[Answer]):
    """View of an answer as HTML sentences. A notebook would break plain text within words."""

    def title(self, value: Answer) -> str:
        return value.question

    def html(self, value: Answer) -> str:
        sure = "" if value.certainty == "exact" else f" <em>({value.certainty_text})</em>"
        hint = f"<p>{sentence(value.hint)}</p>" if value.hint else ""
        return f'<div class="explorer-static"><p><strong>{sentence(value.text)}</strong>{sure}</p>{hint}</div>'
