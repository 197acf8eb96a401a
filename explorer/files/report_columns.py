"""Columns of the shell's reports, for `--format json` and its schema."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter, itemgetter
from typing import Any, Literal

from explorer.analysis.diff.diff import Diff, Fusion, Value
from explorer.analysis.graphs import has_entry
from explorer.analysis.kernel_costs import running_nodes
from explorer.files.columns import Column, Columns, of_part, own
from explorer.files.findings import FINDINGS_FORMAT, verdict
from explorer.files.frames import FIGURE, HOT, OP, PROCESS_PROGRAM, figures
from explorer.model.attribution import LineRow, LineTable
from explorer.model.capture import Capture
from explorer.model.events.event import Event, Place, Reason
from explorer.model.events.family_counts import Storm, Summary, Totals
from explorer.model.events.ledger import Ledger
from explorer.model.events.process_ledger import ProcessDifference, ProcessLedger
from explorer.model.findings import SEVERITIES, Finding, Findings, Fix
from explorer.model.golden import Change, Golden, ProgramRecord, Verdict
from explorer.model.live_memory import needed_bytes
from explorer.model.results.dynamic_report import DynamicBinary, DynamicReport, PaddingRefusal
from explorer.model.results.hot_paths import HotPaths, LoggedCompile, OperationTimeline
from explorer.model.results.profile import LineTime, OpTime, Profile
from explorer.model.results.targets import Targets
from explorer.model.results.timing import STEPS, Timing
from explorer.model.stage import Durations
from explorer.model.target import Hardware
from explorer.model.units import amount_text, bytes_text, count_text


@dataclass(frozen=True)
class Report:
    """Description of the JSON report of a verb.

    Args:
        about: Description for the schema.
        columns: Its keys.
        has_files: Whether written files are listed as `files`.
    """

    about: str
    columns: Columns
    has_files: bool = True


def _summary(of: Callable[[Any], Sequence[str]]) -> Column:
    return Column("summary", of, list[str], "Summary sentences, the most important first.")


def _rows(name: str, of: Callable[[Any], Iterable[Any]], columns: Columns, meaning: str = "") -> Column:
    return Column(name, of, [tuple(columns)], meaning)


_MAX_HOTTEST_LINES = 3  # named in a summary
_NOTES = Column("notes", attrgetter("notes"), list[str], "Caveats of the figures.")
_FINDINGS = (
    *own(Finding, "rule"),
    Column("severity", attrgetter("severity"), Literal["error", "warning", "note"]),
    *own(Finding, "message", "file", "line", "evidence"),
    Column("fix", attrgetter("fix"), own(Fix)),
    *own(Finding, "code", "label", "text", "column", "end_line", "end_column", "documentation"),
)
_HARDWARE = ("key", "name", "platform", "memory", "bandwidth", "links", "network", "flops", "sources")
_FUSION = own(Fusion, "name", "holds", "lines", "instructions")
_VERDICT = (
    *own(Verdict, "candidate"),
    Column("outcome", attrgetter("outcome"), Literal["passes", "fails", "can't be checked"]),
    *own(Verdict, "text"),
)


def _table_of(capture: Capture) -> LineTable | None:
    return capture.lines() if any(stage.name == "hlo" for stage in capture.stages) else None


def _kernel_count(capture: Capture) -> int | None:
    graph = capture.hlo.graph
    return len(running_nodes(graph)) if has_entry(graph) else None


def _line_notes(capture: Capture) -> Sequence[str]:
    return getattr(_table_of(capture), "notes", ())


def _of_hlo(of: Callable[[Capture], Any]) -> Callable[[Capture], Any]:
    return lambda capture: None if _table_of(capture) is None else of(capture)


def _capture_summary(capture: Capture) -> list[str]:
    table, facts = _table_of(capture), [fact.text for fact in capture.summary]
    if table is not None:
        facts.extend(_cost_sentences(table, needed_bytes(capture.memory)))
    failed = [f"It failed: {capture.failure}"] if capture.failure else []
    return [*failed, *facts, *(finding.sentence for finding in capture.findings)]


def _cost_sentences(table: LineTable, needed: float) -> list[str]:
    """Return a list with one sentence on FLOPs, bytes and memory; empty if the costs are unknown."""
    if math.isnan(table.flops):
        return []
    cost = f"{amount_text(table.flops)}FLOPs, {bytes_text(table.bytes)} read and written"
    return [f"{cost}; {bytes_text(needed)} of memory at most." if needed > 0 else f"{cost}."]


def _diff_summary(diff: Diff) -> list[str]:
    """Return the headline of a diff, then the rows of its text, each without alignment."""
    first, *rows = repr(diff).splitlines()
    return [first.removeprefix("Diff(").removesuffix(")"), *(" ".join(row.split()) for row in rows)]


def _targets_summary(targets: Targets) -> list[str]:
    there = sorted({row.device.platform for row in targets if row.is_installed})
    head = (
        f"{len(targets)} kinds of hardware to compile for; compilers that are installed: {', '.join(there) or 'none'}."
    )
    kinds = {platform: [row.device.key for row in targets if row.device.platform == platform] for platform in there}
    return [head, *(f"{platform}: {', '.join(keys)}" for platform, keys in kinds.items())]


def _profile_summary(profile: Profile) -> list[str]:
    lines = profile.hottest
    each = [
        f"line {line.line}, {line.share:.0%} of the device's time: {line.text}" for line in lines[:_MAX_HOTTEST_LINES]
    ]
    if len(lines) > 1:
        each.insert(0, f"No single hottest line: {len(lines):,} lines can't be distinguished. The first are:")
    return [repr(profile).partition("\n")[0], *each]


def _record_summary(golden: Golden) -> list[str]:
    programs = [f"{program.target}: {count_text(program.kernels, 'kernel')}" for program in golden.programs]
    return [f"{golden.function} is recorded for {', '.join(programs)}."]


def _lint_summary(findings: Findings) -> list[str]:
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    counted = ", ".join(count_text(count, severity) for severity, count in counts.items() if count)
    failed = [f"it could not be traced: {findings.failure}"] if findings.failure else []
    sentences = [finding.sentence for finding in findings]
    return [f"{findings.subject}: {counted or 'nothing was found'}.", *failed, *sentences]


def _ledger_summary(ledger: Ledger) -> list[str]:
    return [repr(ledger).partition("(")[2].removesuffix(")"), *(storm.text for storm in ledger.storms)]


def _process_rows(rows: str, columns: Columns, meaning: str = "") -> Column:
    """Return a `Column` that lists a ledger's rows by `columns`, each with its `processes` in words.

    `rows` is the column's name, and the attribute with the rows (`rows` for `programs`).
    """
    named = Column("processes", lambda pair: pair[0].named(pair[1].processes), str, "In words.")
    pairs = (*of_part(itemgetter(1), columns), named)
    attribute = {"programs": "rows"}.get(rows, rows)
    return _rows(rows, lambda ledger: [(ledger, row) for row in getattr(ledger, attribute)], pairs, meaning)


REPORTS: Mapping[str, Report] = {
    "explore": Report(
        "A compiled function or an opened module, with costs by line.",
        (
            *own(Capture, "function", "signature", "file", "line", "failure", "environment", "memory"),
            _summary(_capture_summary),
            _rows(
                "stages",
                attrgetter("stages"),
                (Column("name", attrgetter("name")), Column("nodes", lambda stage: len(stage.graph), int)),
                "Stages without a failure, in the compiler's order.",
            ),
            Column("seconds", attrgetter("durations"), own(Durations, *STEPS[:3]), "Duration of each step."),
            Column(
                "kernels",
                _of_hlo(_kernel_count),
                int | None,
                "Null where nothing was compiled, or an opened text has no ENTRY computation.",
            ),
            Column("flops", _of_hlo(lambda capture: capture.lines().flops), float),
            Column("bytes", _of_hlo(lambda capture: capture.lines().bytes), float, "Read and written."),
            _rows("lines", lambda capture: _table_of(capture) or (), own(LineRow), "By source line."),
            Column(
                "constants",
                lambda capture: sum(constant.bytes for constant in capture.constants),
                int,
                "Bytes of arrays that are baked in.",
            ),
            _rows("findings", attrgetter("findings"), _FINDINGS, "Findings from the trace alone; `lint` finds more."),
            replace(_NOTES, value=_line_notes),
        ),
    ),
    "diff": Report(
        "Differences between two compiled functions.",
        (
            Column("functions", lambda diff: [f"{side.function}{side.signature}" for side in (diff.a, diff.b)],
                   list[str], "Both, with their signatures."),
            _summary(_diff_summary),
            Column("same", attrgetter("is_empty"), bool, "True if only times and numbers in names differ."),
            _rows("values", attrgetter("values"), own(Value)),
            Column("fusions", lambda diff: diff, (
                _rows("gained", attrgetter("fusions_gained"), _FUSION),
                _rows("lost", attrgetter("fusions_lost"), _FUSION),
                _rows("changed", attrgetter("fusions_changed"),
                      (Column("a", itemgetter(0), _FUSION), Column("b", itemgetter(1), _FUSION))),
            )),
        ),
    ),
    "recompiles": Report(
        "A ledger: compiles, and the reasons for recompiles.",
        (
            _summary(_ledger_summary),
            Column("totals", attrgetter("totals"),
                   own(Totals, "calls", "recompiles", "functions", "compiles", "cache_hits", "seconds")),
            _rows("functions", lambda ledger: ledger.functions(), (
                *own(Summary, "name", "file", "line", "process", "eager", "compiles", "cache_hits", "recompiles"),
                *own(Summary, "seconds", "share"),
                Column("reasons", lambda row: dict(row.reasons), dict[str, int], "By kind."),
                Column("varying", lambda row: dict(row.varying), dict[str, int], "Number of changes of each property."),
            ), "The most expensive first."),
            _rows("recompiles", lambda ledger: ledger.recompiles(eager=True), (
                *own(Event, "function", "id", "kind", "seconds", "process"),
                Column("reason", attrgetter("reason"), own(Reason), "Reason for the recompile."),
                Column("call_site", attrgetter("call_site"), own(Place, "file", "line", "text"),
                       "Null if no line of the user's code was on the stack.", is_optional=True),
            )),
            _rows("storms", attrgetter("storms"),
                  own(Storm, "function", "compiles", "seconds", "changes", "leaf", "cure", "text"),
                  "Functions compiled too often."),
            Column("dropped", attrgetter("dropped"), int, "Number of events no longer kept."),
            Column("spilled", attrgetter("spilled"), int),
            Column("note", attrgetter("note")),
        ),
    ),
    "processes": Report(
        "One ledger of many processes.",
        (
            _summary(lambda ledger: [each.text for each in ledger.differences]
                     or ["All processes compiled the same programs."]),
            Column("processes", attrgetter("processes"), list[str]),
            *own(ProcessLedger, "events"),
            _process_rows("programs", (
                *PROCESS_PROGRAM, Column("arguments", lambda row: dict(row.arguments), dict[str, str]),
            )),
            _process_rows("differences",
                          own(ProcessDifference, "line", "what", "usual", "here", "is_shared", "text"),
                          "Processes whose program differs from most."),
            _NOTES,
        ),
    ),
    "lint": Report(
        "Pitfalls of a function.",
        (
            Column("explorer_findings", lambda _: FINDINGS_FORMAT, int, "Format version for Findings.from_json."),
            _summary(_lint_summary),
            Column("function", attrgetter("function")),
            _rows("findings", iter, _FINDINGS),
            Column("faults", attrgetter("faults"), list[str], "Rules that failed themselves."),
            Column("failure", attrgetter("failure"), str, "Why the trace failed; empty if it succeeded."),
            Column("asked", attrgetter("rules"), list[str], "The rules that ran."),
            Column("target", lambda findings: findings.target or None, str | None,
                   "Hardware of the compile, as --target names it; null without one."),
        ),
        has_files=False,
    ),
    "padding": Report(
        "Proof that one binary can serve every size, or the reasons against it.",
        (
            *own(DynamicReport, "function", "verdict", "why", "dimensions", "buckets", "masks", "rules"),
            _summary(lambda report: [report.headline]),
            _rows("refusals", attrgetter("refusals"), own(PaddingRefusal), "Equations that prevent padding."),
            _rows("binaries", attrgetter("binaries"), own(DynamicBinary)),
            *own(DynamicReport, "faults"),
        ),
    ),
    "time": Report(
        "Timing of a function.",
        (
            *own(Timing, "function", "signature"),
            _summary(lambda timing: [timing.headline]),
            Column("too_noisy", attrgetter("steady.is_too_noisy"), bool,
                   "True if the samples are too noisy for a confidence interval."),
            *own(Timing, "speedup", "speedup_interval", "break_even"),
            _rows("figures", figures, FIGURE),
            _NOTES,
            *own(Timing, "environment"),
        ),
    ),
    "profile": Report(
        "A function's time by line and instruction; seconds are per call.",
        (
            *own(Profile, "function", "signature", "runs"),
            _summary(_profile_summary),
            *own(Profile, "seconds", "wall_seconds", "device_seconds", "gap_seconds", "unattributed"),
            _rows("hottest", attrgetter("hottest"), own(LineTime, "file", "line"),
                  "The line with the most time, and lines that can't be distinguished from it."),
            _rows("lines", attrgetter("lines"), own(LineTime)),
            _rows("ops", attrgetter("ops"), own(OpTime, *OP, "scope")),
            *own(Profile, "host"),
            _NOTES,
            *own(Profile, "environment"),
        ),
    ),
    "hot": Report(
        "Functions called often, and what happened to each.",
        (
            _summary(lambda paths: [paths.headline]),
            _rows("functions", attrgetter("functions"), HOT),
            *own(HotPaths, "seconds", "threshold", "mode"),
            _NOTES,
            *own(HotPaths, "environment"),
        ),
    ),
    "timeline": Report(
        "Timeline of an instruction log, for `trace` and `visualize`.",
        (
            *own(OperationTimeline, "name", "start", "end"),
            _summary(lambda timeline: [timeline.headline]),
            _rows("operations", lambda timeline: timeline.counts.items(), (
                Column("name", lambda item: item[0][0]),
                Column("compiled", lambda item: item[0][1], bool, "A compiled hot function."),
                Column("count", itemgetter(1), int),
            )),
            _rows("compiles", attrgetter("compiles"), own(LoggedCompile)),
        ),
    ),
    "targets": Report(
        "The hardware that can be compiled for without having it.",
        (
            _summary(_targets_summary),
            _rows("targets", iter, (
                *of_part(attrgetter("device"), own(Hardware, *_HARDWARE)),
                Column("installed", attrgetter("is_installed"), bool, "Its compiler is here."),
                Column("hint", attrgetter("hint"), str, "How to install it."),
            )),
        ),
    ),
    "record": Report(
        "Recorded facts about a compiled function.",
        (
            *own(Golden, "function", "place", "arguments", "jax"),
            _summary(_record_summary),
            _rows("programs", attrgetter("programs"), own(ProgramRecord)),
            *own(Golden, "compiles", "tolerance"),
        ),
    ),
    "check": Report(
        "Comparison of functions with their records.",
        (
            _summary(lambda results: [f"{result.name}: {verdict(result)}" for result in results]),
            Column("passed", lambda results: all(each.passed for each in results), bool, "True if all checks passed."),
            _rows("checks", iter, (
                Column("golden", attrgetter("name")),
                Column("function", attrgetter("now.function")),
                Column("passed", attrgetter("passed"), bool),
                _rows("regressions", attrgetter("regressions"), own(Change), "Growth beyond the tolerance."),
                _rows("gains", attrgetter("gains"), own(Change)),
                Column("notes", attrgetter("notes"), list[str]),
            ), "One for each golden file."),
        ),
        has_files=False,
    ),
    "bisect": Report(
        "The first commit, or release of JAX, at which a check fails.",
        (
            _summary(lambda each: each.to_text().splitlines()[: 1 + bool(each.between)]),
            Column("first_failing", attrgetter("first"), _VERDICT),
            Column("last_passing", attrgetter("last")),
            Column("not_checked", attrgetter("between"), list[str],
                   "Candidates between the two that can't be checked; each may be the first failing one."),
            _rows("tried", attrgetter("tried"), _VERDICT, "In order of the checks."),
        ),
    ),
    "error": Report(
        "Why there is no report; the exit status is not 0.",
        (
            Column("error", lambda error: type(error).__name__, str, "The class of the error."),
            Column("message", str, str, "With what is allowed, and a hint."),
        ),
        has_files=False,
    ),
}  # fmt: skip
