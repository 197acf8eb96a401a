"""The kernels of a program that never ran, under published peaks: the least time of each, and what binds it there."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from explorer.analysis.cost.kernel_kind import KernelKinds, kernel_kinds
from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.cost.least_time import copies_beside, least_times
from explorer.analysis.cost.lines import LineShares, line_parts, shares_by_line
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Graph
from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.model.stage import Stage
from explorer.model.units import count_text, duration_text


def estimated_roofline(capture: Capture, peaks: Peaks, notes: Sequence[str] = ()) -> Roofline:
    """The kernels of a capture, each as long as the peaks let it be at the least; none of it is measured.

    A kernel whose arithmetic or bytes nobody knows, as of a library's, has no time, and a note counts them.

    Args:
        capture: With its optimised program.
        peaks: Of one device of the hardware that it was compiled for.
        notes: What else the reader should know.
    """
    graph = capture.hlo.graph
    times = least_times(graph, peaks)
    lines = _lines(capture, np.nan_to_num(times))
    texts = {(row.file, row.line): row.text for row in capture.lines()}
    running, copies = running_nodes(graph), copies_beside(graph)
    nodes: list[int] = running[~copies[running]].tolist()
    kinds = kernel_kinds(graph)
    points = [_point(graph, kinds, peaks, node, float(times[node]), lines.get(node, ()), texts) for node in nodes]
    points.sort(key=lambda point: -point.seconds)
    unknown = sum(point.bound == "unknown" for point in points)
    text = f"nothing is known of the time of {count_text(unknown, 'kernel')}: a library's, or a loop of unknown length"
    all_notes = (*notes, *([text] if unknown else []), *_beside(times[copies]), *peaks.notes)
    return Roofline(capture.function, capture.signature, peaks, points, tuple(dict.fromkeys(all_notes)), True)


def _point(
    graph: Graph,
    kinds: KernelKinds,
    peaks: Peaks,
    node: int,
    seconds: float,
    lines: LineShares,
    texts: Mapping[tuple[str, int], str],
) -> Point:
    file, line = lines[0][:2] if lines else ("", 0)
    flops, moved = float(graph.measures["flops"][node]), float(graph.measures["bytes"][node])
    dtype, is_matmul, special = kinds.dtype[node], kinds.is_matmul[node], kinds.special.get(node) or {}
    is_unknown = math.isnan(seconds)
    bound = peaks.bound(flops, moved, dtype, is_matmul=is_matmul, seconds=seconds, special=special)
    return Point(
        name=graph.names[node],
        op=graph.ops[int(graph.op[node])],
        module="",
        seconds=0.0 if is_unknown else seconds,
        flops=flops,
        bytes=moved,
        intensity=flops / moved if moved else math.inf if flops > 0 else math.nan,
        rate=flops / seconds if seconds > 0 else math.nan,
        least=seconds,
        bound="unknown" if is_unknown else bound,
        file=file,
        line=line,
        text=texts.get((file, line), ""),
        dtype=dtype,
        is_matmul=is_matmul,
        lines=lines,
        special=special,
        computes=graph.kernel_words.get(node, ""),
    )


def _beside(times: Floats) -> list[str]:
    """What is copied while kernels run, which is no part of their time."""
    seconds = float(np.nansum(times))
    if not seconds:
        return []
    return [f"{count_text(len(times), 'copy').replace('copys', 'copies')} beside the kernels: {duration_text(seconds)}"]


def _lines(capture: Capture, seconds: Floats) -> dict[int, LineShares]:
    """Of each kernel the lines that its time comes from with their share of it, the largest first."""
    stage, graph = capture.hlo, capture.hlo.graph
    text = stage.text

    def measures(_: Graph) -> Mapping[str, Floats]:
        return {**graph.measures, "time": seconds}

    timed = replace(graph, measure=measures)
    timed_stage = Stage("hlo", lambda: (text, timed))
    stages = tuple(timed_stage if each is stage else each for each in capture.stages)
    sums: dict[int, dict[tuple[str, int], float]] = {}
    for node, file, line, part in line_parts(replace(capture, stages=stages)):
        of_node = sums.setdefault(node, {})
        of_node[file, line] = of_node.get((file, line), 0.0) + part
    return {node: shares_by_line(of_node) for node, of_node in sums.items()}
