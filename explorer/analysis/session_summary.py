"""A session in a few sentences: what compiling cost, what was compiled again and why, and what isn't known."""

from __future__ import annotations

from math import isfinite

from explorer.model.results.session import SessionReport, SessionRow
from explorer.model.text import list_names
from explorer.model.units import count_text, duration_text

_NAMED = 3  # functions that a sentence names


def summary(report: SessionReport) -> tuple[str, ...]:
    """See `SessionReport.summary`."""
    seen = [row for row in report.rows if row.basis != "before"]
    sentences = [_cost(report, seen), *_again(seen), *_findings(report), *_unknown(report)]
    return tuple(sentence for sentence in sentences if sentence)


def _cost(report: SessionReport, seen: list[SessionRow]) -> str:
    if not seen:
        return "Nothing has compiled yet." if not report.rows else ""
    compiles = sum(row.compiles for row in seen)
    seconds = sum(row.seconds for row in seen if isfinite(row.seconds))
    text = f"{count_text(len(seen), 'function')} compiled {_times(compiles)}, {duration_text(seconds)}"
    first = seen[0]
    if len(seen) > 1 and isfinite(first.seconds) and first.seconds > seconds / 2:
        text += f", most of it `{first.name}`"
    if report.operations:
        operations = count_text(report.operations, "single operation")
        text += f"; and {operations} outside of any `jit`, {duration_text(report.operation_seconds)}"
    return text + "."


def _again(seen: list[SessionRow]) -> list[str]:
    again = sorted((row for row in seen if row.recompiles), key=lambda row: -row.recompiles)
    sentences: list[str] = []
    for row in again[:_NAMED]:
        because = f" because `{row.leaf}` varied" if row.leaf else ""
        sentences.append(f"`{row.name}` recompiled {_times(row.recompiles)}{because}.")
    if len(again) > _NAMED:
        sentences.append(f"{count_text(len(again) - _NAMED, 'more function')} recompiled too.")
    return sentences


def _findings(report: SessionReport) -> list[str]:
    errors = [row for row in report.rows if row.errors]
    if not errors:
        return []
    return [f"Errors were found in {list_names([f'`{row.name}`' for row in errors[:_NAMED]])}."]


def _unknown(report: SessionReport) -> list[str]:
    before = [row for row in report.rows if row.basis == "before"]
    sentences: list[str] = []
    if before:
        names = list_names([f"`{row.name}`" for row in before[:_NAMED]])
        more = f" and {len(before) - _NAMED:,} more" if len(before) > _NAMED else ""
        sentences.append(f"{names}{more} had compiled before anybody watched: what that took isn't known.")
    if report.watching == "never":
        sentences.append("Nothing is watched: `%explorer` or `ex.watch()` sees what compiles from then on, and why.")
    elif report.watching == "once":
        sentences.append("The watch has ended: what compiles since then isn't here.")
    return sentences


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count:,} times")
