"""The ledger as HTML: a picture and tables, which the interactive view replaces where scripts run."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from html import escape

from explorer.model.events.ledger import Ledger
from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.chart import Table, static_html
from explorer.view.figure_svg import STEPS, box, canvas, text
from explorer.view.ledger.calls import (
    Call,
    Group,
    cause_of,
    cure_of,
    flat,
    group_by_family,
    plain,
    times,
    verdict_of,
)
from explorer.view.ledger.link import LedgerLink
from explorer.view.ledger.message import encode_message, message, tables_of
from explorer.view.page import interactive

WIDTH = 960
_ROW = 26
_BARS_SHOWN = 12
_NAME, _BARS = 190, 250  # pixels


def picture(calls: Sequence[Call], invites: bool = False) -> str:
    """Return the picture of a ledger's calls as SVG; `invites` adds a hint at the interactive view."""
    groups, verdict = group_by_family(calls), verdict_of(calls)
    parts = [text(16, 28, cut_end(flat(verdict.text), 110), "f" if verdict.kind == "again" else "b")]
    y = 46.0
    if verdict.cause:
        parts.append(text(16, y + 4, cut_end(flat(verdict.cause), 120)))
        y += 22
    if verdict.cure:
        parts.append(text(16, y + 4, cut_end(f"fix: {verdict.cure.splitlines()[0]}", 120), "m"))
        y += 22
    y += 6
    # Calls that missed the cache without a compile may have no seconds, and nothing is divided by 0.
    longest = max((group.seconds for group in groups), default=0) or 1
    for group in groups[:_BARS_SHOWN]:
        parts += _bar(group, y, longest)
        y += _ROW
    if len(groups) > _BARS_SHOWN:
        rest = groups[_BARS_SHOWN:]
        parts.append(text(16, y + 13, f"and {len(rest):,} more: {duration_text(sum(g.seconds for g in rest))}", "m"))
        y += _ROW
    parts += _key(y + 8, invites)
    return canvas(WIDTH, y + 36, parts)


def _bar(group: Group, y: float, longest: float) -> list[str]:
    name = cut_end(group.family.name, 20)
    parts = [text(16, y + 13, name, "b"), text(16 + 7.3 * (len(name) + 1), y + 13, f"×{group.compiles:,}", "m")]
    x = 16.0 + _NAME
    for step, _, colour in STEPS:
        width = _BARS * sum(getattr(call, step) for call in group.calls) / longest
        parts.append(box(x, y + 2, width, 14, colour, 1))
        x += width
    parts.append(text(x + 8, y + 13, duration_text(group.seconds), "m"))
    if cause := flat(cause_of(group)):
        # Right of the bar, which is at most as long as `_BARS`.
        at = 16.0 + _NAME + _BARS + 78
        parts.append(text(at, y + 13, cut_end(cause, int((WIDTH - 16 - at) / 7.3)), "f"))
    return parts


def _key(y: float, invites: bool) -> list[str]:
    parts: list[str] = []
    x = 16.0
    for _, name, colour in STEPS:
        parts += [box(x, y, 12, 10, colour, 2), text(x + 18, y + 9, name, "m")]
        x += 34 + 7.3 * len(name)
    if invites:
        parts.append(text(x + 12, y + 9, "trust the notebook for the interactive view", "m"))
    return parts


def describe_picture(calls: Sequence[Call]) -> str:
    """Return the picture in words: what recompiled most, the cause, and the compiles of the first functions."""
    verdict = verdict_of(calls)
    counts = [f"{group.family.name} compiled {times(group.compiles)}" for group in group_by_family(calls)[:_BARS_SHOWN]]
    return ". ".join(filter(None, (flat(verdict.text), flat(verdict.cause), "; ".join(counts))))


_MOST = 100  # rows of a table


def fragment(ledger: Ledger, link: LedgerLink | None = None, invites: bool = True) -> str:
    """Return the HTML of a ledger's view, without the page around it; with a link, it can send requests to Python."""
    if link is not None:
        data = encode_message(link.data())
        return interactive(link.id, data, static(link.tables.fold.calls, invites), "ledger")
    tables, left_out = tables_of(ledger)
    data = encode_message(message(ledger, tables, None, left_out))
    name = blake2b(data, digest_size=8).hexdigest()
    return interactive(name, data, static(tables.fold.calls, invites), "ledger")


def static(calls: Sequence[Call], invites: bool = True) -> str:
    """Return an image with its description, and tables: HTML that every sanitizer keeps."""
    cure = f"<pre>{escape(cure)}</pre>" if (cure := verdict_of(calls).cure) else ""
    shown = static_html(picture(calls, invites), describe_picture(calls), tables(calls), cure)
    return f'<div class="explorer-static">{shown}</div>'


def tables(calls: Sequence[Call]) -> list[Table]:
    """Return a table of functions with their costs, and one of recompiles if there are any; nothing without calls."""
    groups = group_by_family(calls)
    if not groups:
        return []
    compiles = [_compile(call, calls[0].start) for group in groups for call in group.calls if call.is_again]
    left = len(compiles) - _MOST
    head = ("function", "compiles", "seconds", "trace", "lower", "XLA", "why again", "fix", "first at")
    again = ("compile", "after", "seconds", "what changed", "before", "after", "where", "line")
    tables = [Table("what compiled, by function", head, [_row(group) for group in groups[:_MOST]])]
    if compiles:
        more = f"and {left:,} more" if left > 0 else ""
        tables.append(Table("recompiles", again, compiles[:_MOST], more))
    return tables


def _row(group: Group) -> tuple[str, ...]:
    sums = (sum(getattr(call, step) for call in group.calls) for step in ("trace", "lower", "compile"))
    place = next((str(call.place) for call in group.calls if call.place), "")
    seconds = duration_text(group.seconds)
    why, cure = plain(cause_of(group)), cure_of(group)
    return (group.family.name, f"{group.compiles:,}", seconds, *map(duration_text, sums), why, cure, place)


def _compile(call: Call, start: float) -> tuple[str, ...]:
    place, reason = call.place, call.reason
    what = reason.leaf or reason.text or reason.kind
    where, line = (str(place), place.text) if place else ("", "")
    after = f"+{call.start - start:.1f} s"
    return (
        call.id or call.family.name, after, duration_text(call.seconds), what, reason.before, reason.after, where, line
    )  # fmt: skip
