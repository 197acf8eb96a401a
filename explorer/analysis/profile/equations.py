"""The time of kernels → the equations of the jaxpr that they were made of."""

from __future__ import annotations

import numpy as np

from explorer.analysis.cost.lines import split_by_line
from explorer.model.capture import Capture
from explorer.model.results.profile import EquationTime, Profile


def equation_times(profile: Profile) -> list[EquationTime]:
    """What each equation has of the kernels whose instructions are linked to it; those that have nothing are left out.

    An instruction that may be of several equations is shared equally. One that is linked to none has no part here:
    what the compiler made itself, copies and layout.
    """
    modules = {op.program: op.module for op in profile.ops}
    rows = [
        row
        for number, capture in profile.captures.items()
        if any(stage.name == "jaxpr" for stage in capture.stages)
        for row in _of(capture, number, modules.get(number, ""), profile.device_seconds)
    ]
    return sorted(rows, key=lambda row: (-row.seconds, row.program, row.name))


def _of(capture: Capture, number: int, module: str, device: float) -> list[EquationTime]:
    jaxpr = capture.jaxpr.graph
    linked = capture.links.table("hlo", "jaxpr")
    seconds = np.zeros(len(jaxpr.names))
    split = split_by_line(capture)
    times = split.times()
    if times is None:
        return []
    of_node = np.bincount(times[1], times[2], len(capture.hlo.graph.names))
    for node in np.flatnonzero(of_node > 0).tolist():
        row = split.origin(node)[1] if split.origin(node)[0] == node else -1
        rows = [row] if row >= 0 else linked.get(node, ())
        for row in rows:
            seconds[row] += of_node[node] / len(rows)
    times_of_equations: list[EquationTime] = []
    for equation in np.flatnonzero(seconds > 0).tolist():
        place = jaxpr.attribution.place(equation)
        times_of_equations.append(
            EquationTime(
                jaxpr.names[equation],
                jaxpr.ops[int(jaxpr.op[equation])],
                module,
                number,
                float(seconds[equation]),
                float(seconds[equation]) / device if device else 0.0,
                place.file if place is not None else "",
                place.line if place is not None else 0,
            )
        )
    return times_of_equations
