"""Results written into memory that was not used before: on a CPU that takes several times as long as writing elsewhere.

A call allocates its results, and what is large the system gives page by page as it is first written to. An argument
that is donated has its pages already.
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.results.profile import Profile
from explorer.model.results.roofline import Peaks, Point
from explorer.model.units import bytes_text, rate_text

_LARGE = 32 << 20  # bytes: smaller ones, the C library hands out again (M_MMAP_THRESHOLD_MAX of mallopt(3))
_SLOWER = 1.5  # times
_MUCH = 0.1  # of the time


def first_touch_note(profile: Profile, points: Sequence[Point], peaks: Peaks) -> str:
    """What is to be said of the kernel that most of the time writes such a result; empty if none does."""
    whole = sum(point.seconds for point in points)
    if not 0 < peaks.fresh < peaks.bandwidth / _SLOWER:
        return ""
    for point in points:
        if point.seconds < _MUCH * whole:
            break
        size = _result(profile, point) if point.bytes >= _LARGE else 0
        if size >= _LARGE:
            return (
                f"{point.name} writes a result of {bytes_text(size)} into memory that was not used before, which here "
                f"no kernel does faster than {rate_text(peaks.fresh, 'B')}; a donated argument of the same type would "
                "be written over at full speed"
            )
    return ""


def _result(profile: Profile, point: Point) -> int:
    """Bytes of the results that a kernel writes to memory of their own."""
    for capture in profile.captures.values():
        if point.name in capture.hlo.graph:
            alive = capture.live_memory.buffers
            return sum(one.bytes for one in alive if one.kind == "output" and one.node.name == point.name)
    return 0
