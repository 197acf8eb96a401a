"""Long values, cut so that what matters of them is seen."""

from __future__ import annotations

__all__ = ["shortened", "two_shortened"]

_WIDTH = 60
_BEFORE = 24  # characters that are left before the first one that differs


def shortened(text: str, width: int = _WIDTH) -> str:
    """In one line, its middle left out where it is long."""
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width // 2]}…{text[len(text) - width // 2 + 1 :]}"


def two_shortened(before: str, after: str, width: int = _WIDTH) -> tuple[str, str]:
    """Each in one line; where they are long, from shortly before the first place in which they differ."""
    before, after = " ".join(before.split()), " ".join(after.split())
    shorter = min(len(before), len(after))
    same = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    if max(len(before), len(after)) <= width or same <= _BEFORE:
        return shortened(before, width), shortened(after, width)
    start = same - _BEFORE
    return _from(before, start, width), _from(after, start, width)


def _from(text: str, start: int, width: int) -> str:
    rest = text[start:]
    return f"…{rest if len(rest) < width else rest[: width - 2] + '…'}"
