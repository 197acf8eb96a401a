"""Profiles of real captures with invented times: what a view needs to be seen, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from explorer.analysis.kernel_costs import kernel_of
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Frame, Graph
from explorer.model.results.profile import LineTime, OpTime, Profile
from explorer.model.stage import Stage

_FLOPS, _BYTES, _LEAST = 40e9, 12e9, 1e-6  # a machine


def timed(capture: Capture, times: Floats | None = None) -> Capture:
    """The capture with the measure `time`, in proportion to what each kernel costs if not given."""
    graph = capture.hlo.graph
    measures = {**graph.measures, "time": _invented(graph) if times is None else times}
    text, known = capture.hlo.text, replace(graph, measure=lambda _: measures)
    stages = [stage if stage.name != "hlo" else Stage("hlo", lambda: (text, known)) for stage in capture.stages]
    return replace(capture, stages=stages)


def _invented(graph: Graph) -> Floats:
    flops, moved = (np.nan_to_num(graph.measures[name]) for name in ("flops", "bytes"))
    runs = np.nan_to_num(graph.measures.get("runs", np.ones(len(graph))), nan=1.0)
    seconds = np.maximum(np.maximum(flops / _FLOPS, moved / _BYTES), _LEAST * runs)
    return np.where(kernel_of(graph) == np.arange(len(graph)), seconds, np.nan)


def profile_of(*captures: Capture, gap: float = 0.1, wasted: bool = False) -> Profile:
    """A profile of calls that ran these captures one after the other, waiting for a share of the time."""
    by_program = {100 + i: timed(capture) for i, capture in enumerate(captures)}
    ops = [op for program, capture in by_program.items() for op in _ops(program, capture, wasted)]
    device = sum(op.seconds for op in ops)
    ops = sorted((replace(op, share=op.seconds / device) for op in ops), key=lambda op: -op.seconds)
    rows = [row for capture in by_program.values() for row in capture.lines() if row.seconds]
    lines = [
        LineTime(
            row.file, row.line, row.text, row.seconds or 0.0, (row.seconds or 0.0) / device, row.kernels,
            0.4 * (row.seconds or 0.0) if wasted else None, row.flops, row.bytes,
        )
        for row in rows
        if row.file
    ]  # fmt: skip
    return Profile(
        function=captures[0].function,
        signature=captures[0].signature,
        runs=20,
        wall_seconds=device / (1 - gap),
        device_seconds=device,
        gap_seconds=device / (1 - gap) - device,
        ops=ops,
        lines=sorted(lines, key=lambda line: -line.seconds),
        unattributed=sum(row.seconds or 0.0 for row in rows if not row.file),
        captures=by_program,
        host={"dispatch": device * gap, "python": device * gap / 3},
    )


def _ops(program: int, capture: Capture, wasted: bool) -> list[OpTime]:
    graph = capture.hlo.graph
    stacks = [graph.stack(i) for i in range(len(graph.frames))]
    none: tuple[Frame, ...] = ()
    made: list[OpTime] = []
    for node in np.flatnonzero(np.nan_to_num(graph.measures["time"]) > 0).tolist():
        seconds, flops, moved, runs = (
            float(graph.measures[name][node]) if name in graph.measures else np.nan
            for name in ("time", "flops", "bytes", "runs")
        )
        frame = int(graph.frame[node])
        scope = "/".join(part for part in graph.scopes[int(graph.scope[node])].split("/")[1:-1] if "(" not in part)
        count = 1.0 if np.isnan(runs) else runs
        name, op = graph.names[node], graph.ops[int(graph.op[node])]
        waste = 0.4 * seconds if wasted else None
        made.append(
            OpTime(name, op, f"jit_{capture.function}", program, seconds, 0.0, seconds, count, flops, moved, waste,
                   stacks[frame] if frame >= 0 else none, scope)
        )  # fmt: skip
    return made


def ops_of(rows: Sequence[tuple[str, float, str, tuple[Frame, ...]]], program: int = 1) -> list[OpTime]:
    """Operations by name, seconds, scope and stack."""
    whole = sum(seconds for _, seconds, _, _ in rows) or 1.0
    return [
        OpTime(name, "fusion", "jit_f", program, seconds, seconds / whole, seconds, 1, 0.0, 0.0, None, stack, scope)
        for name, seconds, scope, stack in rows
    ]
