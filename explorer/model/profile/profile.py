"""What a profile says: operations, lines and stacks with their time, the host's part, and the gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from explorer.model.capture import Capture
from explorer.model.profile.rows import LineTime, OpTime

__all__ = ["Profile"]


@dataclass(frozen=True, eq=False)
class Profile:
    """Where the time of a function's calls went. All seconds are of one call: the mean of those profiled.

    Args:
        function, signature: What was profiled.
        runs: How many calls.
        wall_seconds: A call as the caller sees it, until its result is there.
        device_seconds: Of that, while at least one instruction ran. `ops` sum to it, and `lines` with `unattributed`.
        gap_seconds: Of `wall_seconds`, while the device waited: for Python, for dispatch, between executables.
        ops: The instructions that ran, the longest first.
        lines: The source lines, the longest first.
        unattributed: Seconds of instructions that no line is known for.
        captures: What was compiled, by program number, each with the measure `time` in its `hlo` graph.
        host: Seconds of what the host did, by its name, the longest first; they may overlap the device's.
        notes: What the reader should know before trusting the figures.
        environment: Versions, device, cores.
    """

    function: str
    signature: str
    runs: int
    wall_seconds: float
    device_seconds: float
    gap_seconds: float
    ops: Sequence[OpTime]
    lines: Sequence[LineTime]
    unattributed: float
    captures: Mapping[int, Capture] = field(default_factory=dict[int, Capture])
    host: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
