"""The profile's headline, and its static picture: the longest lines, with bars of their share."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from os.path import basename

from explorer.model.results.profile import LineTime, Profile
from explorer.model.stage import Source
from explorer.model.text import cut_end
from explorer.model.units import duration_text, fine_share_text
from explorer.view.figure_svg import box, canvas, text

Sentence = list[tuple[str, bool]]  # parts of a sentence, each with whether it is code
_WAITS = 0.1  # of a call's time: from there on, that the device waits is worth a sentence
_WIDEST = 64
_NAMED = 3  # lines of a tie
_LONGER = 1.1  # times as long while it is recorded: worth a word


@dataclass(frozen=True)
class Headline:
    """A profile in one sentence, another one if the device waited much, and the other facts."""

    text: Sentence
    waits: Sentence
    facts: list[str]


def headline(profile: Profile) -> Headline:
    text: Sentence = [(profile.function, True), (f": {duration_text(profile.seconds)} a call", False)]
    if profile.device_seconds <= 0:
        text.append(("; nothing ran on the device", False))
    elif profile.lines:
        text += _hottest(profile)
    elif profile.ops:
        longest = max(profile.ops, key=lambda op: op.seconds)
        text += [(f"; {fine_share_text(longest.share)} of the device's time is ", False), (longest.title, True)]
    share = profile.gap_seconds / profile.wall_seconds if profile.wall_seconds > 0 else 0.0
    waited = f"{fine_share_text(share)} of the time: {duration_text(profile.gap_seconds)} a call"
    return Headline(text, [(f"the device waited {waited}", False)] if share >= _WAITS else [], _facts(profile))


def _hottest(profile: Profile) -> Sentence:
    """Return the end of the headline as pieces `(text, is_code)`: the hottest line and its share, or the lines that
    tie.
    """
    lines, labels = profile.hottest, labels_of(profile)
    first = lines[0]

    def place(line: LineTime) -> str:
        return str(line.line) if len(labels) == 1 else f"{labels[line.file]}, line {line.line}"

    if len(lines) == 1:
        line = "line " if len(labels) == 1 else ""
        text: Sentence = [(f"; {fine_share_text(first.share)} of the device's time is {line}{place(first)} ", False)]
        return [*text, (cut_end(first.text, _WIDEST), True)] if first.text else text
    shares = sorted(line.share for line in lines)
    each = fine_share_text(shares[-1])
    if fine_share_text(shares[0]) != each:
        each = f"{fine_share_text(shares[0])} to {each}"
    if len(lines) > _NAMED:
        return [(f"; no line dominates: {len(lines):,} take {each} of the device's time each", False)]
    names = [place(line) for line in lines]
    word = "lines " if len(labels) == 1 else ""
    return [(f"; a tie: {word}{', '.join(names[:-1])} and {names[-1]} take {each} of the device's time each", False)]


def _facts(profile: Profile) -> list[str]:
    device = profile.device_seconds or 1.0
    wasted = [op.wasted for op in profile.ops if op.wasted is not None]
    over = f"wasted {duration_text(sum(wasted))} ({fine_share_text(sum(wasted) / device)})"
    unattributed = f", {duration_text(profile.unattributed)}" if profile.unattributed > 0 else ""
    is_slowed = profile.wall_seconds > _LONGER * profile.plain_seconds
    recorded = f"{duration_text(profile.wall_seconds)} a call while recorded, split into these parts"
    return [
        f"device {duration_text(profile.device_seconds)}",
        f"waiting {duration_text(profile.gap_seconds)}",
        f"without a line {fine_share_text(profile.unattributed / device)}{unattributed}",
        *([over] if wasted else []),
        f"mean of {profile.runs:,} calls" if profile.runs > 1 else "one call",
        *([recorded] if is_slowed else []),
    ]


def hottest(profile: Profile) -> list[LineTime]:
    """Return the lines, the longest first, however the profile is sorted."""
    return sorted(profile.lines, key=lambda line: -line.seconds)


def sources_of(profile: Profile) -> dict[str, Source]:
    """Return the source of every file of the profiled programs, by file name."""
    sources: dict[str, Source] = {}
    for capture in profile.captures.values():
        sources |= {file: source for file, source in capture.sources.items() if file not in sources}
    return sources


def labels_of(profile: Profile) -> dict[str, str]:
    """Return a short name for each file that has time."""
    sources = sources_of(profile)
    files = dict.fromkeys(line.file for line in profile.lines)
    return {file: sources[file].label if file in sources else basename(file) for file in files}


def plain(sentence: Sentence) -> str:
    return "".join(text for text, _ in sentence)


WIDTH = 960
_COOL = 0.1  # of the device's time: where no line takes as much, none is hot
_HOT = (236, 122, 28)
_ROW = 24
_MOST = 12
_NUMBER, _BAR, _SOURCE = 60, 150, 370  # pixels
_LETTER = 7.3


def hot(part: float) -> str:
    """Return the hex color for a line's time relative to the hottest line, 0 to 1, as in the interactive view."""
    # The root makes small parts, which most are, distinguishable.
    strength = 0.12 + 0.88 * min(max(part, 0.0), 1.0) ** 0.5
    return "#" + "".join(f"{round(255 + strength * (value - 255)):02x}" for value in _HOT)


def picture(profile: Profile, invites: bool = False) -> str:
    """Return a profile's static picture as SVG; `invites` adds a hint at the interactive view."""
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
            source = cut_end(line.text or "(its source is not known)", int((WIDTH - 16 - _SOURCE) / _LETTER))
            part = line.seconds / most
            bar = _bar(line.share, line.seconds, y, part, hot(part))
            parts += [_right(8 + _NUMBER, y + 16, str(line.line), "m"), *bar, text(_SOURCE, y + 16, source)]
            y += _ROW
    rest = profile.lines[_MOST:]
    if rest:
        seconds = duration_text(sum(line.seconds for line in rest))
        more = f"and {len(rest):,} more {'line' if len(rest) == 1 else 'lines'}: {seconds}"
        parts.append(text(_SOURCE, y + 16, more, "m"))
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


def _bar(share: float, seconds: float, y: float, part: float, colour: str) -> list[str]:
    """Return the SVG elements of a bar, full for the hottest line, with its time and share as text, as color alone
    isn't enough.
    """
    left = 16 + _NUMBER
    return [
        box(left, y + 4, _BAR, 15, "#f1f2f3", 2),
        box(left, y + 4, max(_BAR * min(part, 1.0), 1.5), 15, colour, 2),
        _right(left + _BAR + 72, y + 16, duration_text(seconds)),
        _right(left + _BAR + 122, y + 16, fine_share_text(share), "m"),
    ]


def _right(x: float, y: float, content: str, kind: str = "") -> str:
    """Return SVG text that ends at `x`."""
    return text(x - _LETTER * len(content), y, content, kind)


def described(profile: Profile) -> str:
    """Return a profile's static picture in words: the headline, and the longest lines with their time."""
    top = headline(profile)
    lines = "; ".join(
        f"line {line.line} {line.text}: {duration_text(line.seconds)}, {fine_share_text(line.share)}"
        for line in profile.lines[:_MOST]
    )
    return ". ".join(filter(None, (plain(top.text), plain(top.waits), ", ".join(top.facts), lines)))
