"""What published figures of hardware let one expect of a program: estimates, never measurements."""

from __future__ import annotations

from dataclasses import replace

from explorer.analysis.collectives.collectives import collectives as all_collectives
from explorer.errors import UnknownTargetError
from explorer.hardware.names import parse_target
from explorer.model.capture import Capture
from explorer.model.results.collectives import Collectives
from explorer.model.results.peaks import Peaks
from explorer.model.target import Hardware, Target


def target_of(capture: Capture) -> Target | None:
    """The hardware that a capture was made for; None where that was what is here."""
    try:
        return parse_target(capture.environment["target"])
    except (KeyError, UnknownTargetError):  # of a file: another Explorer may know other hardware
        return None


def collectives(capture: Capture) -> Collectives:
    """What the devices of a program send each other, with the time that its links need for that at the least."""
    rows, target = all_collectives(capture), target_of(capture)
    if target is None or not target.device.links:
        return rows
    return replace(rows, rows=tuple(replace(row, seconds=row.wire / target.device.links) for row in rows))


def peaks_of(device: Hardware) -> Peaks:
    """Published figures as the peaks that a roofline stands under: what no program gets beyond.

    Of functions that take longer than a multiply-add nothing is published, so they count as one.
    """
    note = f"published figures of {device.name}: estimates, not measured"
    return Peaks(device.name, bandwidth=device.bandwidth, matmul=device.flops, fma=device.vector, notes=(note,))
