"""The recorder's own time, taken off what it recorded.

An event is stamped when it begins, before the recorder has written down what it is; so most of what recording costs is
in the event itself, and a loop of small steps seems to spend its time in them. Measured on a CPU with JAX 0.10.2: a
loop of 2,405 events takes 131 µs, and 1,628 µs while it is recorded; its smallest instructions, copies of 8 numbers,
last 0.2 to 2.4 µs then; and 0.06 µs lie between two events.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from explorer.analysis.profile.resolve import CONTROL, Instructions
from explorer.model.graph import Floats
from explorer.model.results.profile_events import THUNK, Events

_MOST = 1.5e-6  # seconds an event: what is over that is not the recorder's
_AROUND = 0.1  # of an event's cost lies around it, in the loop that runs it
_FAST = 0.25  # the quantile of several times that others on the machine don't disturb much
_STEPS = 50  # of a bisection
# Of what an op would keep if all were shortened alike: it keeps as much, as no event costs the same; and of all.
_LEFT, _LEAST = 0.3, 0.1


@dataclass(frozen=True)
class Overhead:
    """What recording costs.

    Args:
        seconds: Of each op a call, without the recorder's, shape `[ops]`.
        each: Taken off for each event.
        total: Taken off altogether.
        events: How many instructions began, a call.
    """

    seconds: Floats
    each: float
    total: float
    events: float


def undisturbed(seconds: Floats) -> float:
    """Of several times of the same the one that others on the machine disturbed little; NaN of none.

    Example:
        >>> float(undisturbed(np.asarray([1.0, 1.01, 5.0, 0.99, 7.0])))
        1.0
    """
    return float(np.quantile(seconds, _FAST, method="lower")) if len(seconds) else float("nan")


def without_overhead(seconds: Floats, weight: Floats, spare: float, others: float = 0.0) -> tuple[Floats, float]:
    """Take as much as `spare` off, equally from each event, and from no op nearly all that it has.

    Args:
        seconds, weight: Of each op, shape `[ops]`: its time, and how many events it stands for.
        spare: How much longer a recorded call takes; NaN where that is not known.
        others: How many events there are that are no op's, such as the host's, and cost as much.

    Returns:
        What is left, and what was taken off for each event.

    Example:
        >>> left, each = without_overhead(np.asarray([1e-3, 2e-4]), np.asarray([10.0, 100.0]), 1.1e-4)
        >>> left.round(6).tolist(), round(each, 9)
        ([0.00099, 0.0001], 1e-06)
    """
    whole = float(seconds.sum())
    if not spare > 0 or not whole > 0:
        return seconds, 0.0
    most = seconds * (1 - _LEFT * max(1 - spare / whole, _LEAST))
    low, high = 0.0, _MOST
    if np.minimum(most, high * weight).sum() + high * others > spare:
        for _ in range(_STEPS):
            each = (low + high) / 2
            is_more = np.minimum(most, each * weight).sum() + each * others > spare
            low, high = (low, each) if is_more else (each, high)
    return seconds - np.minimum(most, high * weight), high


def overhead_of(
    events: Events, programs: Mapping[int, Instructions], seconds: Floats, count: Floats, spare: float
) -> Overhead:
    """The ops' time without the recorder's.

    Args:
        events: What was recorded, its ops resolved.
        programs: By number, those whose text is known.
        seconds, count: Of each op a call, shape `[ops]`: its own time, and how often it began.
        spare: As for `without_overhead`.
    """
    weight = count + _AROUND * _inside(events, programs, count)
    others = (len(events) - float((events.kind == THUNK).sum())) / max(len(events.windows), 1)
    left, each = without_overhead(seconds, weight, spare, others)
    return Overhead(left, each, float((seconds - left).sum()), float(count.sum()))


def _inside(events: Events, programs: Mapping[int, Instructions], count: Floats) -> Floats:
    """For each op that runs others, such as a loop, how many events these are."""
    at = {(op.program, op.name): i for i, op in enumerate(events.ops)}
    inside = np.zeros(len(events.ops))
    for i, op in enumerate(events.ops):
        program = programs.get(op.program)
        node = program.node(op) if program is not None else -1
        if program is None or node < 0:
            continue
        graph = program.graph
        group = int(graph.group[node])
        caller = graph.groups[group].caller if group >= 0 else -1
        if caller >= 0 and program.kind(caller) in CONTROL:
            around = at.get((op.program, graph.names[caller]))
            if around is not None:
                inside[around] += count[i]
    return inside
