"""The profile as HTML, and the wire by which its page requests captures."""

from __future__ import annotations

from functools import partial
from hashlib import blake2b
from html import escape
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

from explorer.analysis.profile.recording import host_words
from explorer.model.results.profile import OpTime, Profile
from explorer.model.units import duration_text, fine_share_text
from explorer.view.chart import Table, static_html
from explorer.view.measure.profile.message import message, packed
from explorer.view.measure.profile.picture import described, labels_of, picture
from explorer.view.page import interactive
from explorer.view.session import open_wire, shown

_MOST = 100  # rows of a table


def fragment(profile: Profile, wire: str | None = None, invites: bool = True) -> str:
    """Return the HTML of one output; with a wire, its page can request captures from Python."""
    data = packed(message(profile))
    name = wire or blake2b(data, digest_size=8).hexdigest()
    return interactive(name, data, static(profile, invites), "profile")


def static(profile: Profile, invites: bool = True) -> str:
    """Return an image with its description, and tables: HTML that every sanitizer keeps."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in profile.notes)
    shown = static_html(picture(profile, invites), described(profile), tables(profile), notes)
    return f'<div class="explorer-static">{shown}</div>'


def tables(profile: Profile) -> list[Table]:
    """Return the lines, the kernels, and what the host did, the longest first."""
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


_wires: WeakKeyDictionary[Profile, Any] = WeakKeyDictionary()


def linked(profile: Profile) -> str:
    """Return the name of the profile's wire, which is opened at the first display."""
    if profile not in _wires:
        name = uuid4().hex[:16]
        wire = open_wire(name)

        def answer(wire: Any, message: Any, _: object) -> None:
            request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
            if request.get("ask") == "capture":
                wire.send({"of": request.get("of"), **html_of_program(profile, request.get("program"))})

        wire.on_msg(answer)
        _wires[profile] = wire
    wire = _wires[profile]
    shown.add(wire.capture, partial(_disconnect, ref(profile), wire))
    return wire.capture


def _disconnect(profile: ref[Profile], wire: Any) -> None:
    # No cell shows the profile any more. A later display opens a new wire.
    live = profile()
    if live is not None:
        _wires.pop(live, None)
    wire.close()


def html_of_program(profile: Profile, program: object) -> dict[str, str]:
    """Return the capture of a profiled program as HTML, or why there is none."""
    capture = profile.captures.get(program) if isinstance(program, int) else None
    if capture is None:
        return {"failed": "This program was not kept with the profile."}
    try:
        return {"html": capture._repr_mimebundle_()["text/html"]}  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}
