"""How one program for several targets is shown: a sentence, and a table."""

from __future__ import annotations

from html import escape
from math import isnan

from explorer.model.results.targets import TargetComparison, TargetResult
from explorer.model.units import bytes_text, count_text, least_duration_text, rate_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_HEAD = ("target", "hardware", "fits", "memory", "of", "kernels", "FLOPs", "bytes", "sent", "estimated", "at least")
_FITS = {True: "yes", False: "no", None: "not known"}
_NOTE = (
    "Of one device and one run. Nothing is measured: the compiler's own model of the device estimates its time where "
    "it has one, else published figures do; they also give the least that kernels and links can need, "
    "without the latency of launches and links."
)


class TargetComparisonView(View[TargetComparison]):
    """A sentence, and a table."""

    def title(self, value: TargetComparison) -> str:
        return f"{value.function} on {count_text(len(value), 'target')}"

    def html(self, value: TargetComparison) -> str:
        table = html_table(Table(self.title(value), _HEAD, comparison_rows(value), more=_NOTE), is_open=True)
        remarks = "".join(f"<p>{escape(line)}</p>" for line in _remarks(value))
        return f'<div class="explorer-static"><p>{escape(headline(value))}</p>{table}{remarks}</div>'


def headline(comparison: TargetComparison) -> str:
    """Where it fits, and where it would be fastest by published figures."""
    fitting = [row for row in comparison if row.fits]
    first = f"{comparison.function} fits on {len(fitting)} of {count_text(len(comparison), 'target')}"
    unknown = sum(row.fits is None for row in comparison)
    first += f"; of {unknown:,} it isn't known" * bool(unknown)
    if len(fitting) > 1 and all(row.is_complete for row in fitting):
        best = min(fitting, key=lambda row: row.seconds)
        least = least_duration_text(best.seconds)
        return f"{first}; by published figures it needs least on {best.target}, {least} or more."
    return f"{first}."


def comparison_rows(comparison: TargetComparison) -> list[tuple[str, ...]]:
    """One for each target."""
    return [_row(row) for row in comparison]


def _row(row: TargetResult) -> tuple[str, ...]:
    capacity = bytes_text(row.capacity) if row.capacity else "not known"
    if row.failure:
        return (row.target, row.device, _FITS[row.fits], "", capacity, *[""] * 6)
    seconds = f"≥ {least_duration_text(row.seconds)}" + ("" if row.is_complete else ", some kernels not known")
    seconds = "not known" if isnan(row.seconds) else seconds
    sent = bytes_text(row.wire) if row.wire else "none"
    work = str(row.kernels), rate_text(row.flops, "").removesuffix("/s"), bytes_text(row.bytes)
    times = _estimated(row), seconds
    return (row.target, row.device, _FITS[row.fits], bytes_text(row.memory), capacity, *work, sent, *times)


def _estimated(row: TargetResult) -> str:
    """`3.1 s, by XLA's cost model, 2 kernels not known`."""
    if not row.estimates:
        return "not known"
    unknown = f", {count_text(row.estimates.unknown, 'kernel')} not known" if row.estimates.unknown else ""
    return f"{row.estimates.total}, by {row.estimates.by}{unknown}"


def _remarks(comparison: TargetComparison) -> list[str]:
    """Why there is no program for a target, and what of the others differs from those that the hardware would run."""
    failures = [f"{row.target}: {row.failure.removeprefix(f'{row.target}: ')}" for row in comparison if row.failure]
    targets: dict[str, list[str]] = {}
    for row in comparison:
        if row.capture is not None and not row.failure:
            targets.setdefault(row.capture.environment.get("caveat", ""), []).append(row.target)
    return failures + [f"{', '.join(names)}: {caveat}." for caveat, names in targets.items() if caveat]


def comparison_text(comparison: TargetComparison) -> str:
    """The sentence, a line for each target, and what failed."""
    rows = [_HEAD, *comparison_rows(comparison)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([headline(comparison), *lines, *_remarks(comparison), _NOTE])
