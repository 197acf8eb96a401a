"""What a profile says, in words: where the time of a call went, how much of it the device waited, what has no line."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import basename

from explorer.model.results.profile import Profile
from explorer.model.results.profile_rows import LineTime
from explorer.model.source import Source
from explorer.model.units import duration_text as time_text

__all__ = [
    "Headline",
    "Said",
    "flat",
    "headline",
    "hottest",
    "labels_of",
    "share_text",
    "sources_of",
    "time_text",
]

Said = list[tuple[str, bool]]  # parts of a sentence, each with whether it is code
_WAITS = 0.1  # of a call's time: from there on, that the device waits is worth a sentence
_WIDEST = 64


@dataclass(frozen=True)
class Headline:
    """The most important of a profile: one sentence, one more if the device waited much, and the facts around them."""

    text: Said
    waits: Said
    facts: list[str]


def headline(profile: Profile) -> Headline:
    text: Said = [(profile.function, True), (f": {time_text(profile.wall_seconds)} a call", False)]
    lines = hottest(profile)
    if profile.device_seconds <= 0:
        text.append(("; nothing ran on the device", False))
    elif lines:
        labels = labels_of(profile)
        line = "line" if len(labels) == 1 else f"{labels[lines[0].file]}, line"
        text.append((f"; {share_text(lines[0].share)} of the device's time is {line} {lines[0].line} ", False))
        if lines[0].text:
            text.append((_shortened(lines[0].text), True))
    elif profile.ops:
        longest = max(profile.ops, key=lambda op: op.seconds)
        text += [(f"; {share_text(longest.share)} of the device's time is ", False), (longest.name, True)]
    return Headline(text, _waits(profile), _facts(profile))


def _waits(profile: Profile) -> Said:
    share = profile.gap_seconds / profile.wall_seconds if profile.wall_seconds > 0 else 0.0
    if share < _WAITS:
        return []
    return [(f"the device waited {share_text(share)} of the time: {time_text(profile.gap_seconds)} a call", False)]


def _facts(profile: Profile) -> list[str]:
    device = profile.device_seconds or 1.0
    wasted = [op.wasted for op in profile.ops if op.wasted is not None]
    over = f"wasted {time_text(sum(wasted))} ({share_text(sum(wasted) / device)})"
    return [
        f"device {time_text(profile.device_seconds)}",
        f"waiting {time_text(profile.gap_seconds)}",
        _without_line(profile.unattributed, device),
        *([over] if wasted else []),
        f"mean of {profile.runs:,} calls" if profile.runs > 1 else "one call",
    ]


def _without_line(seconds: float, device: float) -> str:
    share = f"without a line {share_text(seconds / device)}"
    return f"{share}, {time_text(seconds)}" if seconds > 0 else share


def hottest(profile: Profile) -> list[LineTime]:
    """The lines, the longest first, however the profile is sorted."""
    return sorted(profile.lines, key=lambda line: -line.seconds)


def sources_of(profile: Profile) -> dict[str, Source]:
    """By file name, the source of every file that the profiled programs come from."""
    found: dict[str, Source] = {}
    for capture in profile.captures.values():
        found |= {file: source for file, source in capture.sources.items() if file not in found}
    return found


def labels_of(profile: Profile) -> dict[str, str]:
    """What a person calls each file that has time."""
    sources = sources_of(profile)
    files = dict.fromkeys(line.file for line in profile.lines)
    return {file: sources[file].label if file in sources else basename(file) for file in files}


def share_text(share: float) -> str:
    """`62%`; one digit more below ten, and never nothing for something."""
    if share <= 0:
        return "0%"
    if share < 0.001:
        return "<0.1%"
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


def flat(said: Said) -> str:
    return "".join(text for text, _ in said)


def _shortened(text: str) -> str:
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"
