"""What the devices of a sharded program send each other."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.units import bytes_text, count_text

_SLOWER = 8  # a link than memory: 7.4 times on an H100, 4.1 on a TPU v5e, more between machines


def collectives(capture: Capture) -> Iterator[Fact]:
    """One fact where there is any; that a program of several devices has none is worth a sentence too."""
    rows = capture.collectives
    if rows.devices == 1:
        return
    if not rows:
        yield Fact("collectives", f"Its {rows.devices:,} devices send each other nothing.", 0.0, "hlo", ())
        return
    most = rows[0]
    part = "all of it" if len(rows) == 1 else "most of it"
    where = f", {part} for line {most.line}" if most.line and most.wire * most.runs > rows.wire / 2 else ""
    text = f"{count_text(len(rows), 'collective')} between {rows.devices:,} devices: "
    text += f"each sends {bytes_text(rows.wire)} or more{where}."
    moved = capture.lines().bytes
    share = min(rows.wire * _SLOWER / moved, 1.0) if moved else 1.0
    yield Fact("collectives", text, share, "hlo", tuple(sorted(row.node.index for row in rows)))
