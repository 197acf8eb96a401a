"""Programs for hardware that isn't here: what is known of them, and what can't be measured."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from explorer.analysis.cost.least_time import copies_beside, least_times
from explorer.errors import OptionError
from explorer.hardware.limits import capacity_of
from explorer.hardware.names import parse_target, peaks_of
from explorer.model.capture import Capture
from explorer.model.target import Target
from explorer.model.units import bytes_text


def refuse_target(verb: str, target: str | Target | None, instead: str) -> None:
    """Raise OptionError if something is to be measured on hardware that isn't here.

    Args:
        verb: The public function that was called.
        target: Its target; None passes.
        instead: A call that estimates instead.
    """
    __tracebackhide__ = True
    if target is None:
        return
    device = parse_target(target).device.name
    raise OptionError(
        f"{verb} measures a running program, and a program for {device} can't run here.\n"
        f"  Hint: {instead} says what published figures let one expect."
    )


def check_time(verb: str, time: bool | None, target: Target | None) -> bool:
    """Return whether to run the compiled program; raise OptionError if `time` is True with a target."""
    __tracebackhide__ = True
    if time and target is not None:
        refuse_target(f"{verb}(time=True)", target, f"{verb}(…, target={str(target)!r}) without it")
    return target is None if time is None else time


def least_seconds(capture: Capture, target: Target) -> tuple[float, bool]:
    """Return the least seconds of kernels and links by published figures or NaN, and True if all are known."""
    if not target.device.bandwidth:  # a CPU's figures are those of its machine
        return math.nan, False
    graph = capture.hlo.graph
    times = least_times(graph, peaks_of(target.device))
    copies = copies_beside(graph)
    links = [row.seconds * row.runs for row in capture.collectives if row.seconds is not None]
    is_complete = not bool(np.isnan(times).any())
    kernels, beside = float(np.nansum(times[~copies])), float(np.nansum(times[copies]))
    total = max(kernels, beside) + math.fsum(links)
    return (total if total > 0 or is_complete else math.nan), is_complete


def target_notes(target: Target | None) -> Sequence[str]:
    """Return the note that a result was compiled for other hardware; empty without a target."""
    if target is None:
        return ()
    caveat = f"; {target.caveat}" if target.caveat else ""
    return (f"compiled for {target.device.name} ({target}) by its own compiler, with none here{caveat}",)


def capacity_note(target: Target) -> str:
    """Return a note on what decides whether a program fits."""
    capacity = capacity_of(target)
    if not capacity.bytes or capacity.is_compilers:
        return f"whether it fits: {capacity.basis}"
    return f"whether it fits is not said by this compiler: {bytes_text(capacity.bytes)} is {capacity.basis}"
