"""That a program is for hardware which isn't here, and what is not as it would be there."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.model.capture import Capture
from explorer.model.facts import Fact


def target(capture: Capture) -> Iterator[Fact]:
    """One fact where the capture names a target."""
    environment = capture.environment
    if "target" not in environment:
        return
    device, caveat = environment.get("device", environment["target"]), environment.get("caveat", "")
    text = f"Compiled for {device}" + (f" ({environment['target']})" if ":" in environment["target"] else "")
    yield Fact("target", f"{text}; {caveat}." if caveat else f"{text}, with none here.", 0.0, "hlo", ())
