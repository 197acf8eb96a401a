"""The profile as HTML that upgrades itself: a picture and tables stand there where no script runs."""

from __future__ import annotations

from hashlib import blake2b
from html import escape

from explorer.analysis.profile.recording import host_words
from explorer.model.results.profile import OpTime, Profile
from explorer.model.units import duration_text, fine_share_text
from explorer.view.chart import Table, static_html
from explorer.view.measure.profile.message import message, packed
from explorer.view.measure.profile.picture import described, labels_of, picture
from explorer.view.page import interactive

_MOST = 100  # rows of a table


def fragment(profile: Profile, wire: str | None = None, invites: bool = True) -> str:
    """The HTML of one output; through the wire, a page asks Python for what was compiled."""
    data = packed(message(profile))
    name = wire or blake2b(data, digest_size=8).hexdigest()
    return interactive(name, data, static(profile, invites), "profile")


def static(profile: Profile, invites: bool = True) -> str:
    """An image with its description, and tables: what every sanitiser leaves standing."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in profile.notes)
    shown = static_html(picture(profile, invites), described(profile), tables(profile), notes)
    return f'<div class="explorer-static">{shown}</div>'


def tables(profile: Profile) -> list[Table]:
    """The lines, the kernels, and what the host did, the longest first."""
    return [table for table in (_lines(profile), _kernels(profile), _host(profile)) if table.rows]


def _lines(profile: Profile) -> Table:
    labels = labels_of(profile)
    is_known = any(line.wasted is not None for line in profile.lines)
    head = ("line", "source", "time", "share", "kernels", *(("wasted",) if is_known else ()))
    rows = [
        (
            f"{labels[line.file]}:{line.line}", line.text, duration_text(line.seconds), fine_share_text(line.share),
            f"{line.ops:,}", *((duration_text(line.wasted or 0.0),) if is_known else ()),
        )
        for line in profile.lines[:_MOST]
    ]  # fmt: skip
    if profile.unattributed > 0:
        share = profile.unattributed / (profile.device_seconds or 1.0)
        last = (
            "",
            "no line is known",
            duration_text(profile.unattributed),
            fine_share_text(share),
            "",
            *([""] * is_known),
        )
        rows.append(last)
    return Table("time by source line", head, rows, _rest(len(profile.lines)))


def _kernels(profile: Profile) -> Table:
    is_known = any(op.wasted is not None for op in profile.ops)
    head = ("kernel", "operation", "executable", "time", "share", "with its body", "runs")
    rows = [_kernel(op, is_known) for op in profile.ops[:_MOST]]
    return Table("time by kernel", (*head, *(("wasted",) if is_known else ())), rows, _rest(len(profile.ops)))


def _kernel(op: OpTime, is_known: bool) -> tuple[str, ...]:
    wasted = (duration_text(op.wasted) if op.wasted is not None else "",) if is_known else ()
    times = (duration_text(op.seconds), fine_share_text(op.share), duration_text(op.total))
    return (op.name, op.computes or op.op, op.module, *times, f"{op.count:,.0f}", *wasted)


def _host(profile: Profile) -> Table:
    rows = [(name, duration_text(seconds)) for name, seconds in list(host_words(profile.host).items())[:_MOST]]
    return Table("what the host did", ("what", "time"), rows)


def _rest(count: int) -> str:
    return f"and {count - _MOST:,} more" if count > _MOST else ""
