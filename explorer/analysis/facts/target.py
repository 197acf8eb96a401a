"""That a program is for hardware which isn't here, and what is not as it would be there."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.model.answers import Fact
from explorer.model.capture import Capture
from explorer.model.units import count_text


def target(capture: Capture) -> Iterator[Fact]:
    """One fact where the capture names a target."""
    environment = capture.environment
    if "target" not in environment:
        return
    caveat = environment.get("caveat", "")
    text = f"Compiled for {_devices(capture)}" + (f" ({environment['target']})" if ":" in environment["target"] else "")
    text = f"{text}; {caveat}." if caveat else f"{text}, with none here."
    yield Fact("target", f"{text}{_estimated(capture)}", 0.0, "hlo", ())


def _devices(capture: Capture) -> str:
    """`8 × NVIDIA H100`; of a program that uses fewer than there are, `1 of 8 × NVIDIA H100`, and why."""
    environment = capture.environment
    device, count = environment.get("device", environment["target"]), int(environment.get("devices", "1"))
    used = int(capture.hlo.graph.attributes.get("num_partitions", "1"))
    if used >= count:
        return f"{count:,} × {device}" if count > 1 else device
    return f"{used:,} of {count:,} × {device}, as {'no argument is' if used == 1 else 'arguments are'} sharded"


def _estimated(capture: Capture) -> str:
    estimates = capture.estimates
    if not estimates:
        return ""
    without = f", without {count_text(estimates.unknown, 'kernel')}" if estimates.unknown else ""
    return f" Estimated {estimates.total}, by {estimates.by}{without}; nothing is measured."
