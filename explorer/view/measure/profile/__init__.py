"""A profile as text, picture, page, flame chart and live view, with its wire for captures. Imports no JAX."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from html import escape
from math import isfinite
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary, ref

import numpy as np

from explorer.analysis.line_costs import line_parts
from explorer.analysis.profile_recording import host_words
from explorer.model.results.profile import Profile
from explorer.model.results.profile_events import By, Flame
from explorer.model.stage import Source
from explorer.model.units import duration_text, fine_share_text
from explorer.view.chart import Chart, Table, static_html
from explorer.view.interface import View
from explorer.view.measure.profile.chart import flame_chart
from explorer.view.measure.profile.picture import described, headline, hottest, labels_of, picture, sources_of
from explorer.view.page import interactive
from explorer.view.session import in_kernel, open_wire, shown

__all__ = ["ProfileView"]


class ProfileView(View[Profile]):
    """The interactive view; a picture and tables where no script runs."""

    def title(self, value: Profile) -> str:
        return f"{value.function} profiled"

    def html(self, value: Profile) -> str:
        return fragment(value, invites=False)

    def output(self, value: Profile) -> dict[str, str]:
        return {"text/html": fragment(value, linked(value) if in_kernel() else None)}

    def svg(self, value: Profile) -> str:
        return picture(value)

    def chart(self, value: Profile) -> Chart:
        return flame_chart(value)


_MOST = 100  # rows of a table


def fragment(profile: Profile, wire: str | None = None, invites: bool = True) -> str:
    """Return the HTML of a profile's view, without the page around it; with a wire, it can request captures."""
    data = packed(message(profile))
    name = wire or blake2b(data, digest_size=8).hexdigest()
    return interactive(name, data, static(profile, invites), "profile")


def static(profile: Profile, invites: bool = True) -> str:
    """Return an image with its description, and tables: HTML that every sanitizer keeps."""
    notes = "".join(f"<p>{escape(note)}</p>" for note in profile.notes)
    shown = static_html(picture(profile, invites), described(profile), tables(profile), notes)
    return f'<div class="explorer-static">{shown}</div>'


def tables(profile: Profile) -> list[Table]:
    """Return tables of the lines, the kernels and the host's activities, longest first; without empty tables."""
    host = [(name, duration_text(seconds)) for name, seconds in list(host_words(profile.host).items())[:_MOST]]
    tables = (_lines(profile), _kernels(profile), Table("what the host did", ("what", "time"), host))
    return [table for table in tables if table.rows]


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
        share = fine_share_text(profile.unattributed / (profile.device_seconds or 1.0))
        seconds = duration_text(profile.unattributed)
        rows.append(("", "no line is known", seconds, share, "", *([""] * is_known)))
    return Table("time by source line", head, rows, _rest(len(profile.lines)))


def _kernels(profile: Profile) -> Table:
    is_known = any(op.wasted is not None for op in profile.ops)
    head = ("kernel", "operation", "executable", "time", "share", "with its body", "runs")
    rows: list[tuple[str, ...]] = []
    for op in profile.ops[:_MOST]:
        wasted = (duration_text(op.wasted) if op.wasted is not None else "",) if is_known else ()
        times = (duration_text(op.seconds), fine_share_text(op.share), duration_text(op.total))
        rows.append((op.name, op.computes or op.op, op.module, *times, f"{op.count:,.0f}", *wasted))
    return Table("time by kernel", (*head, *(("wasted",) if is_known else ())), rows, _rest(len(profile.ops)))


def _rest(count: int) -> str:
    return f"and {count - _MOST:,} more" if count > _MOST else ""


_wires: WeakKeyDictionary[Profile, Any] = WeakKeyDictionary()


def linked(profile: Profile) -> str:
    """Return the name of the profile's wire, which is opened at the first display."""
    shown_profile = ref(profile)  # ipywidgets keeps open wires alive: they must not keep the profile
    if profile not in _wires:
        wire = open_wire(uuid4().hex[:16])

        def answer(wire: Any, message: Any, _: object) -> None:
            request: dict[str, Any] = message if isinstance(message, dict) else {}  # pyright: ignore[reportUnknownVariableType]
            if request.get("ask") == "capture":
                wire.send({"of": request.get("of"), **html_of_program(shown_profile(), request.get("program"))})

        wire.on_msg(answer)
        _wires[profile] = wire
    wire = _wires[profile]

    def disconnect() -> None:  # no cell shows the profile any more; a later display opens a new wire
        live = shown_profile()
        if live is not None:
            _wires.pop(live, None)
        wire.close()

    shown.add(wire.capture, disconnect)
    return wire.capture


def html_of_program(profile: Profile | None, program: object) -> dict[str, str]:
    """Return `{"html": …}` with the view of a profiled program's capture, or `{"failed": reason}`."""
    if profile is None:
        return {"failed": "This profile is gone: run its cell again."}
    capture = profile.captures.get(program) if isinstance(program, int) else None
    if capture is None:
        return {"failed": "This program was not kept with the profile."}
    try:
        return {"html": capture._repr_mimebundle_()["text/html"]}  # pyright: ignore[reportPrivateUsage]
    except Exception as error:
        return {"failed": f"{type(error).__name__}: {error}"}


VERSION = 1
_KERNELS = 1_000  # the longest
_LINES = 400
_BOXES = 1_500  # of a flame graph
_HOST = 20
_STRETCHES = 4_000
_AROUND = 3  # lines of context
_WIDEST = 400  # letters of a line
_LEAST = 1e-3  # of a kernel: a line that has less of it is not named


def message(profile: Profile) -> dict[str, Any]:
    order = sorted(range(len(profile.ops)), key=lambda i: -profile.ops[i].seconds)
    shown, rest = order[:_KERNELS], order[_KERNELS:]
    place = {op: i for i, op in enumerate(shown)}
    summary = headline(profile)
    kernels: list[list[Any]] = []
    for op in (profile.ops[i] for i in shown):
        numbers = map(_number, (op.seconds, op.total, op.count, op.flops, op.bytes, op.wasted))
        kernels.append([op.name, op.op, op.module, op.program, *numbers, op.scope, op.computes])
    flames: dict[By, Flame] = {"stack": profile.flame("stack").pruned(_BOXES)}
    by_scope = profile.flame("scope").pruned(_BOXES)
    # Without named scopes, this flame graph would be a single box.
    if any(node.kind == "scope" for node in by_scope.nodes):
        flames["scope"] = by_scope
    return {
        "version": VERSION,
        "function": profile.function,
        "signature": profile.signature,
        "headline": {"text": summary.text, "waits": summary.waits, "facts": summary.facts},
        "runs": profile.runs,
        "wall": profile.wall_seconds,
        "device": profile.device_seconds,
        "gap": profile.gap_seconds,
        "unattributed": profile.unattributed,
        **_line_columns(profile),
        "kernels": kernels,
        "moreKernels": [len(rest), sum(profile.ops[i].seconds for i in rest)],
        "parts": _parts(profile, shown),
        "flames": {by: _boxes(flame, place) for by, flame in flames.items()},
        "host": [[name, _number(seconds)] for name, seconds in list(host_words(profile.host).items())[:_HOST]],
        "notes": list(profile.notes),
        "timeline": _timeline(profile, place),
        "captures": [[program, capture.function] for program, capture in profile.captures.items()],
    }


def packed(said: Mapping[str, Any]) -> bytes:
    """Return a message as an output contains it: compressed JSON."""
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # Without a time, because a view is named by a hash of its data.
    # Names from a file may have surrogates, which UTF-8 can't encode.
    return gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)


def _number(value: float | None) -> float | None:
    # JSON has no NaN, and five digits are more than was measured.
    return None if value is None or not isfinite(value) else float(f"{value:.5g}")


# Lines ----------------------------------------------------------------------------------------------------------------


def _line_columns(profile: Profile) -> dict[str, Any]:
    sources, labels = sources_of(profile), labels_of(profile)
    files = list(labels)
    shown, rest = hottest(profile)[:_LINES], hottest(profile)[_LINES:]
    hot: dict[str, set[int]] = defaultdict(set)
    for line in shown:
        hot[line.file].add(line.line)
    return {
        "files": [{"file": file, "label": labels[file], "rows": _rows(sources.get(file), hot[file])} for file in files],
        "lines": [
            [files.index(one.file), one.line, one.text[:_WIDEST], *map(_number, (one.seconds, one.wasted)), one.ops]
            for one in shown
        ],
        "moreLines": [len(rest), sum(line.seconds for line in rest)],
    }


def _rows(source: Source | None, hot: set[int]) -> list[tuple[int, str]]:
    """Return (line number, text) of the lines with time, some around them, and their `def` and `class` lines."""
    if source is None:
        return []
    texts = source.text.splitlines()
    shown: set[int] = set()
    for line in hot:
        shown.update((line, *_around(texts, line, -1), *_around(texts, line, 1), *_heads(texts, line)))
    return [(line, texts[line - 1][:_WIDEST]) for line in sorted(shown) if 1 <= line <= len(texts)]


def _around(texts: Sequence[str], line: int, step: int) -> list[int]:
    """Return the numbers of up to three context lines before (`step` -1) or after a line.

    They end at the end of its function; blank lines at the end are left out.
    """
    numbers: list[int] = []
    for at in range(line + step, line + step * (_AROUND + 1), step):
        text = texts[at - 1] if 1 <= at <= len(texts) else ""
        # A line without indent is outside of the function.
        if text.strip() and not text[0].isspace() and line <= len(texts) and _indent(texts[line - 1]):
            break
        numbers.append(at)
    while numbers and not (1 <= numbers[-1] <= len(texts) and texts[numbers[-1] - 1].strip()):
        numbers.pop()
    return numbers


def _heads(texts: Sequence[str], line: int) -> Iterator[int]:
    """Yield the numbers of the `def` and `class` lines that contain a line, innermost first."""
    depth = _indent(texts[line - 1]) if line <= len(texts) else 0
    for at in range(line - 1, 0, -1):
        if depth == 0:
            return
        text = texts[at - 1]
        if text.strip() and _indent(text) < depth:
            depth = _indent(text)
            if text.lstrip().startswith(("def ", "class ", "async def ")):
                yield at


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _parts(profile: Profile, shown: Sequence[int]) -> list[tuple[int, int, float]]:
    """Return (position of kernel, position of line, seconds) for lines' parts of kernels, without tiny parts."""
    lines = {(line.file, line.line): i for i, line in enumerate(hottest(profile)[:_LINES])}
    kernels = {(profile.ops[op].program, profile.ops[op].name): i for i, op in enumerate(shown)}
    parts: list[tuple[int, int, float]] = []
    for program, capture in profile.captures.items():
        names = capture.hlo.graph.names
        for node, file, line, seconds in line_parts(capture):
            kernel, at = kernels.get((program, names[node])), lines.get((file, line))
            if kernel is not None and at is not None and seconds > _LEAST * profile.ops[shown[kernel]].seconds:
                parts.append((kernel, at, float(f"{seconds:.5g}")))
    return parts


# Flames ---------------------------------------------------------------------------------------------------------------


def _boxes(made: Flame, place: Mapping[int, int]) -> dict[str, Any]:
    """Return the flame graph as columns with an entry for each box, and `names`, which `name` indexes.

    `kernel` is an index of the kernels shown, -1 for none; `frame` is `[file, line]`, 0 without one.
    """
    names: dict[str, int] = {}
    nodes = made.nodes
    return {
        "parent": [node.parent for node in nodes],
        "name": [names.setdefault(node.name, len(names)) for node in nodes],
        "kind": [node.kind for node in nodes],
        "seconds": [_number(node.seconds) for node in nodes],
        "kernel": [place.get(node.op, -1) for node in nodes],
        "frame": [[node.frame.file, node.frame.line] if node.frame else 0 for node in nodes],
        "names": list(names),
    }


# Threads --------------------------------------------------------------------------------------------------------------


def _timeline(profile: Profile, place: Mapping[int, int]) -> dict[str, Any] | None:
    """Return the longest stretches of the call, as columns ordered by start; None without a timeline."""
    timeline = profile.timeline
    if timeline is None or not len(timeline) or timeline.seconds <= 0:
        return None
    longest = np.argsort(timeline.start - timeline.end, kind="stable")[:_STRETCHES]
    shown = np.sort(longest)
    return {
        "start": [_number(value) for value in timeline.start[shown].tolist()],
        "end": [_number(value) for value in timeline.end[shown].tolist()],
        "thread": timeline.thread[shown].tolist(),
        "kernel": [place.get(op, -1) for op in timeline.op[shown].tolist()],
        "waits": timeline.waits[shown].astype(int).tolist(),
        "threads": list(timeline.threads),
        "seconds": timeline.seconds,
        "more": len(timeline) - len(shown) + timeline.left_out,
    }
