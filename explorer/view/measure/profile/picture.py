"""The profile's static picture: the lines that took longest, each with a bar as long as its share of the time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from explorer.model.results.profile import LineTime, Profile
from explorer.model.text import cut_end
from explorer.model.units import duration_text, fine_share_text
from explorer.view.drawing import box, canvas, text
from explorer.view.measure.profile.headline import headline, labels_of, plain

WIDTH = 960
_COOL = 0.1  # of the device's time: where no line takes as much, none is hot
_HOT = (236, 122, 28)
_ROW = 24
_MOST = 12
_NUMBER, _BAR, _SOURCE = 60, 150, 370  # pixels
_LETTER = 7.3


def hot(part: float) -> str:
    """The colour of a part of the hottest, 0 to 1, as the interactive view has it: small ones are told apart too."""
    strength = 0.12 + 0.88 * min(max(part, 0.0), 1.0) ** 0.5
    return "#" + "".join(f"{round(255 + strength * (value - 255)):02x}" for value in _HOT)


def picture(profile: Profile, invites: bool = False) -> str:
    """The picture as SVG; `invites` says that there is more to see where scripts run."""
    top = headline(profile)
    parts = [text(16, 28, cut_end(plain(top.text), 126), "b")]
    y = 50.0
    if top.waits:
        parts.append(text(16, y, cut_end(plain(top.waits), 126), "f"))
        y += 21
    parts.append(text(16, y, cut_end(" · ".join(top.facts), 126), "m"))
    y += 16
    labels = labels_of(profile)
    most = max([_COOL * profile.device_seconds, *(line.seconds for line in profile.lines)]) or 1.0
    for file, lines in groupby(profile.lines[:_MOST], key=attrgetter("file")):
        if len(labels) > 1:
            parts.append(text(16, y + 16, labels[file], "m"))
            y += 20
        for line in lines:
            parts += _row(line, y, line.seconds / most)
            y += _ROW
    rest = profile.lines[_MOST:]
    if rest:
        parts.append(text(_SOURCE, y + 16, _more_text(rest), "m"))
        y += _ROW
    if profile.unattributed > 0:
        share = profile.unattributed / (profile.device_seconds or 1.0)
        parts += _bar(share, profile.unattributed, y, profile.unattributed / most, "#9aa1ab")
        parts.append(text(_SOURCE, y + 16, "no line is known", "m"))
        y += _ROW
    if invites:
        parts.append(text(16, y + 18, "trust the notebook for the interactive view", "m"))
        y += 20
    return canvas(WIDTH, y + 14, parts)


def _row(line: LineTime, y: float, part: float) -> list[str]:
    source = cut_end(line.text or "(its source is not known)", int((WIDTH - 16 - _SOURCE) / _LETTER))
    bar = _bar(line.share, line.seconds, y, part, hot(part))
    return [_right(8 + _NUMBER, y + 16, str(line.line), "m"), *bar, text(_SOURCE, y + 16, source)]


def _bar(share: float, seconds: float, y: float, part: float, colour: str) -> list[str]:
    """A bar, whole for the hottest line, with the time and the share beside it: colour never tells alone."""
    left = 16 + _NUMBER
    return [
        box(left, y + 4, _BAR, 15, "#f1f2f3", 2),
        box(left, y + 4, max(_BAR * min(part, 1.0), 1.5), 15, colour, 2),
        _right(left + _BAR + 72, y + 16, duration_text(seconds)),
        _right(left + _BAR + 122, y + 16, fine_share_text(share), "m"),
    ]


def _right(x: float, y: float, content: str, kind: str = "") -> str:
    """Text that ends at `x`."""
    return text(x - _LETTER * len(content), y, content, kind)


def described(profile: Profile) -> str:
    """The picture in words."""
    top = headline(profile)
    lines = "; ".join(
        f"line {line.line} {line.text}: {duration_text(line.seconds)}, {fine_share_text(line.share)}"
        for line in profile.lines[:_MOST]
    )
    return ". ".join(filter(None, (plain(top.text), plain(top.waits), ", ".join(top.facts), lines)))


def _more_text(lines: Sequence[LineTime]) -> str:
    seconds = duration_text(sum(line.seconds for line in lines))
    return f"and {len(lines):,} more {'line' if len(lines) == 1 else 'lines'}: {seconds}"
