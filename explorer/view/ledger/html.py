"""The ledger as HTML that upgrades itself: a picture and a table stand there where no script runs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from html import escape

from explorer.model.events.ledger import Ledger
from explorer.model.units import duration_text
from explorer.view.chart import Table, static_html
from explorer.view.ledger.calls import Call, Group, group_by_family
from explorer.view.ledger.link import Link
from explorer.view.ledger.message import encode_message, message, tables_of
from explorer.view.ledger.picture import describe_picture, picture
from explorer.view.ledger.verdict import cause_of, cure_of, plain, verdict_of
from explorer.view.page import interactive

_MOST = 100  # rows of a table


def fragment(ledger: Ledger, link: Link | None = None, invites: bool = True) -> str:
    """The HTML of one output; through the link, a page asks Python."""
    if link is not None:
        data = encode_message(link.data())
        return interactive(link.id, data, static(link.tables.fold.calls, invites), "ledger")
    tables, left_out = tables_of(ledger)
    data = encode_message(message(ledger, tables, None, left_out))
    name = blake2b(data, digest_size=8).hexdigest()
    return interactive(name, data, static(tables.fold.calls, invites), "ledger")


def static(calls: Sequence[Call], invites: bool = True) -> str:
    """An image with its description, and a table: what every sanitiser leaves standing."""
    verdict = verdict_of(calls)
    cure = f"<pre>{escape(verdict.cure)}</pre>" if verdict.cure else ""
    shown = static_html(picture(calls, verdict, invites), describe_picture(calls, verdict), tables(calls), cure)
    return f'<div class="explorer-static">{shown}</div>'


def tables(calls: Sequence[Call]) -> list[Table]:
    """The functions with what they cost, and every compile that was not the first."""
    groups = group_by_family(calls)
    if not groups:
        return []
    compiles = [_compile(call, calls[0].start) for group in groups for call in group.calls if call.is_again]
    left = len(compiles) - _MOST
    head = ("function", "compiles", "seconds", "trace", "lower", "XLA", "why again", "cure", "first at")
    again = ("compile", "after", "seconds", "what changed", "before", "after", "where", "line")
    tables = [Table("what compiled, by function", head, [_row(group) for group in groups[:_MOST]])]
    if compiles:
        more = f"and {left:,} more" if left > 0 else ""
        tables.append(Table("every compile that was not the first", again, compiles[:_MOST], more))
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
