"""View of a report of hot paths as static HTML, which a script makes live, and the live view in a running cell."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from functools import cache
from html import escape
from math import isfinite
from pathlib import Path
from typing import Any

from explorer.analysis.session_summary import inside_text
from explorer.files.disk import read_text
from explorer.model.results.hot_paths import HotPaths, HotRow, HotState, ProposedFunction, RepeatedSequence
from explorer.model.text import list_names
from explorer.model.units import count_text, duration_text, factor_text
from explorer.view.chart import Table, html_table
from explorer.view.figure import Figure
from explorer.view.findings.text_parts import code_html, text_at
from explorer.view.hotpath.curve import call_table, curve, figure
from explorer.view.interface import FigureView, View
from explorer.view.ledger.link import PolledLink, output_of, show_live
from explorer.view.page import bundle
from explorer.view.session import in_kernel

_STATIC = Path(__file__).parents[1] / "static"
_MAX_WHOLE = 24  # functions with details
_OPEN = 3  # compiled functions, and eager ones, that start unfolded
_MAX_NAMES = 6  # in one list
SIGNS: dict[HotState, tuple[str, str]] = {
    "compiled": ("✓", "compiled"),
    "eager": ("✖", "eager"),
    "compiling": ("…", "compiling"),
    "comparing": ("…", "comparing"),
    "counting": ("·", "not hot yet"),
}


class HotPathsView(FigureView[HotPaths]):
    """View of a report: each hot function with the curve of its calls, or the reason why it stays eager."""

    def title(self, value: HotPaths) -> str:
        return "hot paths"

    def html(self, value: HotPaths) -> str:
        return fragment(value)

    def output(self, value: HotPaths) -> dict[str, Any]:
        return {"text/html": fragment(value)}

    def figure(self, value: HotPaths) -> Figure:
        return figure(value)

    def description(self, value: HotPaths) -> str:
        return value.headline

    def tables(self, value: HotPaths) -> Sequence[Table]:
        return tables(value)


@cache
def style() -> str:
    return read_text(_STATIC / "hotpath.css").strip()


def fragment(paths: HotPaths, name: str = "") -> str:
    return (
        # Keys typed here must not trigger JupyterLab's shortcuts.
        f'<div class="explorer-hot" data-lm-suppress-shortcuts="true" data-explorer-hot="{escape(name)}">'
        f'<style>{style()}</style><div class="hp-live">{content(paths)}</div></div>'
        f'<script type="module">{bundle("hotpath")}</script>'
    )


def content(paths: HotPaths) -> str:
    hot = [row for row in paths.functions if row.state != "counting"]
    cold = [row for row in paths.functions if row.state == "counting"]
    opened = [*_first(hot, "compiled"), *_first(hot, "eager")]
    rows = "".join(_function(row, paths, row.name in opened) for row in hot[:_MAX_WHOLE])
    notes = "".join(f'<p class="xf-fault">{code_html(note)}</p>' for note in paths.notes)
    loops = "".join(map(_folded_table, loop_tables(paths)))
    return f'{_head(paths)}<div class="xf-list">{rows}{_rest(hot[_MAX_WHOLE:], cold, paths)}{loops}</div>{notes}'


def _first(rows: Sequence[HotRow], state: HotState) -> list[str]:
    return [row.name for row in rows if row.state == state][:_OPEN]


def _head(paths: HotPaths) -> str:
    now = '<span class="hp-on"><b aria-hidden="true">●</b> on</span>' if paths.is_on else ""
    facts = [
        f"{'on for' if paths.is_on else 'was on for'} {duration_text(paths.seconds)}" * isfinite(paths.seconds),
        f"compiled from {paths.threshold:,} calls on",
        f"mode {paths.mode}" * (paths.mode != "default"),
    ]
    what = "".join(f"<span>{escape(fact)}</span>" for fact in facts if fact)
    headline = f'<p class="hp-headline">{code_html(paths.headline)}</p>'
    return f'<div class="hp-head">{headline}<p class="hp-sub">{now}{what}</p></div>'


def _function(row: HotRow, paths: HotPaths, is_open: bool) -> str:
    sign, state = ("✓", "inside") if row.inside else SIGNS[row.state]
    body = _compiled(row, paths) if row.state != "eager" else _eager(row, paths)
    what = f'<code class="hp-name">{escape(row.name)}</code> {_place(paths, row.file, row.line)}'
    # By `data-key` a script restores the open details when this HTML is replaced.
    return (
        f'<details class="xf-one hp-{row.state}" data-key="{escape(row.name)}"{" open" * is_open}>'
        f'<summary><span class="hp-state"><b aria-hidden="true">{sign}</b> {state}</span> '
        f'<span class="xf-what">{what}</span> '
        f'{_figures(row)}<span class="xf-place"></span></summary><div class="xf-body">{body}</div></details>'
    )


def _figures(row: HotRow) -> str:
    if row.state == "eager":
        cost = f", {duration_text(row.eager_calls * row.eager_seconds)}" if isfinite(row.eager_seconds) else ""
        calls = count_text(row.eager_calls, "call") if row.calls else ""
        return f'<span class="hp-figures">{calls}{cost}</span>'
    if not isfinite(row.speedup):
        return f'<span class="hp-figures">{count_text(row.calls, "call")}</span>'
    saved = f" <span>about {duration_text(row.saved_seconds)} saved</span>" if row.saved_seconds > 0 else ""
    return (
        f'<span class="hp-figures"><b>{factor_text(row.speedup)}</b> '
        f"<span>{duration_text(row.eager_seconds)} → {duration_text(row.compiled_seconds)}</span>{saved}</span>"
    )


def _compiled(row: HotRow, paths: HotPaths) -> str:
    inside = [("inside", inside_text(row))] if row.inside else []
    facts = [*inside, ("calls", _calls_text(row)), *_cost(row), *_guards(row), *_misses(row)]
    # The script adds the button if a kernel is connected.
    act = f'<div class="xf-act" data-capture="{escape(row.name)}"></div><div class="hp-slot"></div>'
    where = fact("where", _place(paths, row.file, row.line)) if row.line else ""
    rows = "".join(fact(name, code_html(text)) for name, text in facts)
    made = proposal(paths, row.name)
    return f'{curve(row, paths.events)}<div class="hp-facts">{rows}{where}</div>{made}' + act + call_table(row)


def _eager(row: HotRow, paths: HotPaths) -> str:
    text = text_at(row.reason_file, row.reason_line).strip() if row.reason_line else ""
    line = f'<pre class="xf-line"><span class="xf-number">{row.reason_line}</span> {escape(text)}</pre>' if text else ""
    where = f" {_place(paths, row.reason_file, row.reason_line)}" if row.reason_line else ""
    cure = fact("fix", code_html(row.cure), " xf-cure") if row.cure else ""
    why = fact("why", f"{code_html(row.reason)}{where}")
    return why + line + cure + fact("calls", code_html(_calls_text(row))) + call_table(row)


def _calls_text(row: HotRow) -> str:
    if not row.calls:
        return "not counted"
    if not row.compiled_calls:
        return f"{row.eager_calls:,}, all of them eager"
    return f"{row.calls:,}: {row.eager_calls:,} eager, {row.compiled_calls:,} compiled"


def _cost(row: HotRow) -> Iterable[tuple[str, str]]:
    if isfinite(row.speedup):
        many = min(row.eager_samples, row.compiled_samples)
        basis = {
            "both ways": f"medians of {count_text(many, 'call')} that waited for the results",
            "before": f"medians of {count_text(many, 'call')} or more, before it was compiled and since",
            "returned": "medians of calls until they returned, whether or not their results were there",
        }
        how = f" ({basis[row.basis]})" if row.basis in basis else ""
        yield "a call", f"{duration_text(row.eager_seconds)} → {duration_text(row.compiled_seconds)}{how}"
        if row.saved_seconds > 0:
            each = duration_text(row.eager_seconds - row.compiled_seconds)
            less = "" if row.is_background else f", less {duration_text(row.compile_seconds)} of compiling"
            least, most = row.saved_interval
            between = f", between {duration_text(max(least, 0.0))} and {duration_text(most)}" if isfinite(most) else ""
            yield "saved", f"about {duration_text(row.saved_seconds)}{between}: {row.compiled_calls:,} × {each}{less}"
    if row.compile_seconds:
        where = ", in the background" if row.is_background else ", while the program waited"
        copies = f", {count_text(row.variants, 'compiled copy').replace('copys', 'copies')}" if row.variants > 1 else ""
        yield "compiled", f"in {duration_text(row.compile_seconds)}{where}{copies}"


def _guards(row: HotRow) -> Iterable[tuple[str, str]]:
    held = _names(row, is_input=False)
    taken = _names(row, is_input=True)
    if held:
        are = "is" if len(held) == 1 else "are"
        yield (
            "guards",
            f"each call checks that {_listed(held)} {are} what it was compiled with".replace(
                "are what it was", "are what they were"
            ),
        )
    if taken:
        yield "takes", f"the current {'value' if len(taken) == 1 else 'values'} of {_listed(taken)} at each call"


def _names(row: HotRow, *, is_input: bool) -> list[str]:
    """Return the names in backticks, once each, of the inputs or of the other values that a function's guards check."""
    names = (value.name for value in row.holds if value.is_input is is_input and value.name != row.name)
    return [f"`{name}`" for name in dict.fromkeys(names)]


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MAX_NAMES
    return list_names(names) if more <= 0 else f"{', '.join(names[:_MAX_NAMES])} and {more} more"


def _misses(row: HotRow) -> Iterable[tuple[str, str]]:
    if row.misses:
        parts = [f"{count_text(count, 'call')} as `{name}` had changed" for name, count in row.misses.items()]
        yield "missed", f"ran eagerly: {'; '.join(parts)}"
    elif row.state == "compiled":
        yield "missed", "no call: the guarded values have not changed"


def _rest(more: Sequence[HotRow], cold: Sequence[HotRow], paths: HotPaths) -> str:
    tables = [
        Table(f"and {count_text(len(more), 'function')} more", _HEAD, [_row(row, paths) for row in more]),
        Table(f"{count_text(len(cold), 'function')} not hot yet", _HEAD, [_row(row, paths) for row in cold]),
    ]
    return "".join(_folded_table(table) for table in tables if table.rows)


def _folded_table(table: Table) -> str:
    return f'<div class="hp-rest">{html_table(table)}</div>'


def tables(paths: HotPaths) -> list[Table]:
    return [Table("the functions", _HEAD, [_row(row, paths) for row in paths.functions]), *loop_tables(paths)]


_HEAD = ("function", "where", "state", "calls at top level", "eager", "compiled", "why")


def _row(row: HotRow, paths: HotPaths) -> tuple[str, ...]:
    took = [duration_text(one) if isfinite(one) else "" for one in (row.eager_seconds, row.compiled_seconds)]
    why = row.reason or inside_text(row) or ("called by other functions alone" if not row.calls else "")
    return (row.name, paths.place(row.file, row.line), SIGNS[row.state][1], f"{row.calls:,}", *took, why)


def fact(name: str, html: str, kind: str = "") -> str:
    return f'<div class="xf-fact{kind}"><b>{name}</b> <span>{html}</span></div>'


def _place(paths: HotPaths, file: str, line: int) -> str:
    place = paths.place(file, line)
    return f'<span class="hp-where" data-line="{line}">{escape(place)}</span>' if place else ""


_ROWS = 24  # repeats, those that cover most operations first


def proposal(paths: HotPaths, name: str) -> str:
    """Return as HTML the source of the function proposed in place of a loop; empty if `name` is no such function."""
    made = next((one for one in paths.proposed if one.name == name), None)
    if made is None:
        return ""
    where = escape(_lines(paths, made))
    made_of = fact("made of", f"the loop at {where}; as a function to paste:")
    return f'{made_of}<pre class="hp-made">{escape(made.text)}</pre>'


def loop_tables(paths: HotPaths) -> list[Table]:
    left = [(paths.place(one.file, one.line), one.reason, one.cure) for one in paths.left]
    repeats = sorted(paths.repeats, key=_covered, reverse=True)
    rows = [(f"{one.count:,} ×", count_text(len(one.operations), "operation"), one.name, _lines(paths, one))
            for one in repeats[:_ROWS]]  # fmt: skip
    share = sum(map(_covered, repeats)) / paths.operations if paths.operations else 0.0
    until = f"the first {count_text(paths.operations, 'single operation')}, before anything ran compiled"
    tables = [
        Table(f"{count_text(len(left), 'statement')} of loops left as written", ("where", "why", "fix"), left),
        Table(f"{until}: {share:.0%} of them are repeats", ("times", "how long", "operations", "where"), rows),
    ]
    return [table for table in tables if table.rows]


def _covered(repeat: RepeatedSequence) -> int:
    return repeat.count * len(repeat.operations)


def _lines(paths: HotPaths, at: RepeatedSequence | ProposedFunction) -> str:
    return paths.place(at.file, at.first_line) + f" to {at.last_line}" * (at.last_line > at.first_line)


class AutoCompileView(View[Any]):
    """View of running hot paths (`AutoCompile`, on a floor above); with a kernel, a click opens a capture."""

    def title(self, value: Any) -> str:
        return "hot paths"

    def html(self, value: Any) -> str:
        return fragment(value.report())

    def output(self, value: Any) -> dict[str, Any]:
        return {"text/html": fragment(value.report(), HotLink.of(value).id if in_kernel() else "")}


class HotLink(PolledLink):
    """Link of hot paths; a click on a page opens a function's capture."""

    PERIOD = 0.4

    def is_on(self) -> bool:
        return self._source.on

    def state(self) -> object:
        with self._lock:
            return self._send_html(content(self._source.report()))

    def answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """Return the capture that a page requests by `{"ask": "capture", "of": name}`; None for other requests."""
        name = request.get("of")
        if request.get("ask") != "capture":
            return None
        return {"of": name, **output_of(lambda: self._source.capture(str(name)), nullcontext())}


def display_live(source: Any) -> None:
    """Display running hot paths; see `show_live`."""
    show_live(HotLink.of, source, source.on)
