"""A session and its hot paths in a few sentences: compile time, recompiles with causes, functions that run compiled."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from explorer.analysis.recompiles.ledger_views import often
from explorer.model.results.hot_paths import HotPaths, HotRow
from explorer.model.results.session import SessionReport, SessionRow
from explorer.model.text import aligned, list_names
from explorer.model.units import count_text, duration_text, factor_text

_MAX_NAMED = 3


def summary(report: SessionReport) -> tuple[str, ...]:
    seen = [row for row in report.rows if row.basis != "before"]
    sentences = [_cost(report, seen), *_recompiled(seen), *_findings(report), *_unknown(report)]
    return tuple(sentence for sentence in sentences if sentence)


def _cost(report: SessionReport, seen: list[SessionRow]) -> str:
    if not seen:
        return "Nothing has compiled yet." if not report.rows else ""
    compiles = sum(row.compiles for row in seen)
    seconds = sum(row.seconds for row in seen if isfinite(row.seconds))
    text = f"{count_text(len(seen), 'function')} compiled {often(compiles)}, {duration_text(seconds)}"
    first = seen[0]
    if len(seen) > 1 and isfinite(first.seconds) and first.seconds > seconds / 2:
        text += f", most of it `{first.name}`"
    if report.operations:
        operations = count_text(report.operations, "single operation")
        text += f"; and {operations} outside of any `jit`, {duration_text(report.operation_seconds)}"
    return text + "."


def _recompiled(seen: list[SessionRow]) -> list[str]:
    again = sorted((row for row in seen if row.recompiles), key=lambda row: -row.recompiles)
    sentences: list[str] = []
    for row in again[:_MAX_NAMED]:
        because = f" because `{row.leaf}` varied" if row.leaf else ""
        sentences.append(f"`{row.name}` recompiled {often(row.recompiles)}{because}.")
    if len(again) > _MAX_NAMED:
        sentences.append(f"{count_text(len(again) - _MAX_NAMED, 'more function')} recompiled too.")
    return sentences


def _findings(report: SessionReport) -> list[str]:
    errors = [row for row in report.rows if row.errors]
    if not errors:
        return []
    return [f"Errors were found in {list_names([f'`{row.name}`' for row in errors[:_MAX_NAMED]])}."]


def _unknown(report: SessionReport) -> list[str]:
    before = [row for row in report.rows if row.basis == "before"]
    sentences: list[str] = []
    if before:
        names = list_names([f"`{row.name}`" for row in before[:_MAX_NAMED]])
        more = f" and {len(before) - _MAX_NAMED:,} more" if len(before) > _MAX_NAMED else ""
        sentences.append(f"{names}{more} compiled before watching began: time unknown.")
    if report.watching == "never":
        sentences.append("Not watching: `%explorer` or `ex.watch()` records later compiles and their reasons.")
    elif report.watching == "once":
        sentences.append("The watch has ended: later compiles are missing here.")
    return sentences


_MAX_ROWS = 12
_GAPS = "  "


def headline(paths: HotPaths) -> str:
    """Return in one line how many hot functions run compiled, the speedup, the time saved, and how many stay eager."""
    rows = [row for row in paths.functions if row.state != "counting"] or list(paths.functions)
    if not rows:
        return f"no function was called often{' so far' if paths.is_on else ''}"
    # A function inside a compiled one is no longer called, so no decision about it is pending.
    rows = [row for row in rows if not row.inside] or rows
    decided = rows if paths.is_on else [row for row in rows if row.state in ("compiled", "eager")] or rows
    parts = [_compiled_share(paths, decided), *_stayed(decided)]
    if len(decided) < len(rows):
        parts.append(f"{len(rows) - len(decided)} undecided when it ended")
    return "; ".join(parts)


def _stayed(rows: Sequence[HotRow]) -> list[str]:
    stayed = sum(row.state == "eager" for row in rows)
    return [f"{stayed} stay{'s' if stayed == 1 else ''} eager"] if stayed else []


def _compiled_share(paths: HotPaths, rows: Sequence[HotRow]) -> str:
    compiled = [row for row in rows if row.state == "compiled"]
    if not compiled:
        undecided = paths.is_on and any(row.state != "eager" for row in paths.functions)
        return f"{count_text(len(rows), 'hot function')}, none compiled" + (" yet" if undecided else "")
    saved = sum(row.saved_seconds for row in rows)
    text = _compiled_text(compiled, len(rows))
    return text + (f"; about {duration_text(saved)} saved, inferred" if saved > 0 else "")


def hot_paths_text(paths: HotPaths) -> str:
    lines = [f"HotPaths({headline(paths)})"]
    cells = [_cells(paths, row) for row in paths.functions[:_MAX_ROWS]]
    name = max((len(row[0]) for row in cells), default=0)
    # Only the first functions have a line.
    for function, line in zip(paths.functions, aligned(cells, indent=_GAPS), strict=False):
        lines.append(line)
        if function.cure:
            lines.append(f"{_GAPS}{' ' * name}{_GAPS}fix: {function.cure}")
    if len(paths.functions) > _MAX_ROWS:
        lines.append(f"{_GAPS}… and {count_text(len(paths.functions) - _MAX_ROWS, 'function')} more")
    return "\n".join([*lines, *(f"{_GAPS}{note}" for note in paths.notes)])


def reason_text(paths: HotPaths, row: HotRow) -> str:
    where = paths.place(row.reason_file, row.reason_line)
    return f"{row.reason} ({where})" if where else row.reason


def inside_text(row: HotRow) -> str:
    """Return as text the compiled program that has the calls of an inlined function; empty for other functions."""
    return f"its calls are in the compiled program of `{row.inside}`, which calls it" if row.inside else ""


def times_text(row: HotRow) -> str:
    """Return the time of a call as text, eager → compiled, or eager alone; empty if neither was measured."""
    if isfinite(row.compiled_seconds):
        return f"{duration_text(row.eager_seconds)} → {duration_text(row.compiled_seconds)}"
    return duration_text(row.eager_seconds) if isfinite(row.eager_seconds) else ""


def _cells(paths: HotPaths, row: HotRow) -> tuple[str, ...]:
    calls = count_text(row.calls, "call")
    if row.misses:
        names = ", ".join(f"`{name}`" for name in row.misses)
        calls += f", {sum(row.misses.values()):,} ran uncompiled, as {names} had changed"
    why = ""
    if row.reason:
        calls, why = f"after {calls}: " * (row.calls > 0), reason_text(paths, row)
    if row.inside:
        return row.name, "inside", times_text(row), "", f"{calls}: {inside_text(row)}"
    factor = factor_text(row.speedup) if isfinite(row.speedup) else ""
    return row.name, row.state, times_text(row), factor, f"{calls}{why}"


def _compiled_text(compiled: Sequence[HotRow], whole: int) -> str:
    measured = [row for row in compiled if isfinite(row.speedup)]
    best = max(measured, key=lambda row: row.saved_seconds, default=None)
    gain = f"{factor_text(best.speedup)} as fast ({times_text(best)})" if best is not None else ""
    if whole == 1:
        return f"`{compiled[0].name}` runs compiled{f', {gain}' if gain else ''}"
    part = len(compiled)
    if part == whole:
        share = f"{'both' if whole == 2 else f'all {whole}'} hot functions run"
    else:
        share = f"{part} of {whole} hot functions run{'s' * (part == 1)}"
    return f"{share} compiled{f': `{best.name}` {gain}' if best is not None else ''}"
