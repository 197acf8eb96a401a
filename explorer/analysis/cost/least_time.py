"""Figures of hardware applied to a program that never ran: least times, the roofline of its kernels, occupancy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.cost.kernels import KernelKinds, kernel_kinds, running_nodes
from explorer.analysis.cost.lines import LineShares, line_parts, shares_by_line
from explorer.model.capture import Capture
from explorer.model.graph import Floats, Graph
from explorer.model.results.peaks import Peaks
from explorer.model.results.roofline import Point, Roofline
from explorer.model.stage import Stage
from explorer.model.types import parse_type
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
    seconds = float(np.nansum(times))
    if not seconds:
        return []
    return [f"{count_text(len(times), 'copy').replace('copys', 'copies')} beside the kernels: {duration_text(seconds)}"]


def _lines(capture: Capture, seconds: Floats) -> dict[int, LineShares]:
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


_COPIES = frozenset(("async-start", "copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"))


def least_times(graph: Graph, peaks: Peaks) -> Floats:
    """Seconds for each node of an optimised program, shape `[n]`, all its runs together; 0 for what is no kernel.

    Arithmetic and bytes alone: the latency of launches and of memory is left out, so of many small kernels it is far
    less than what they take. Of a kernel whose arithmetic or bytes nobody knows, as of a library's, it is NaN.
    """
    seconds = np.zeros(len(graph.names))
    kinds, measures = kernel_kinds(graph), graph.measures
    on_chip = np.asarray([_on_chip_bytes(type_) for type_ in graph.types], float)[graph.type]
    nodes: list[int] = running_nodes(graph).tolist()
    for node in nodes:
        counted = float(measures["runs"][node])
        runs = 1.0 if np.isnan(counted) else counted
        start, end = graph.operand_start[node : node + 2].tolist()
        near = float(on_chip[node] + on_chip[graph.operand[start:end]].sum()) * runs
        dtype, is_matmul, special = kinds.dtype[node], kinds.is_matmul[node], kinds.special.get(node)
        moved = max(float(measures["bytes"][node]) - near, 0.0) if near else float(measures["bytes"][node])
        flops = float(measures["flops"][node])
        seconds[node] = peaks.least_seconds(flops, moved, dtype, is_matmul=is_matmul, runs=runs, special=special)
    return seconds


def copies_beside(graph: Graph) -> NDArray[np.bool_]:
    """Which nodes copy while kernels run, as a TPU brings what comes next into the core's own memory, shape `[n]`."""
    wanted = np.asarray([op in _COPIES for op in graph.ops] or [False])
    return wanted[graph.op]


def _on_chip_bytes(type_: str) -> int:
    """Of a type, what lies in no device memory: a TPU's compiler puts it in the core's own, `S(1)`."""
    return sum(array.allocated for array in parse_type(type_).arrays if array.memory_space)


WARP = 32
_REGISTERS_AT_ONCE = 256  # are given to a warp
_RESERVED = 1024  # bytes of shared memory that the system takes of each block, from compute capability 8.0 on


@dataclass(frozen=True)
class GpuLimits:
    """What one multiprocessor has, of NVIDIA's CUDA C++ Programming Guide, "Compute Capabilities".

    Args:
        threads: Resident ones at most.
        blocks: Resident ones at most.
        registers: Of 32 bits.
        shared: Bytes of shared memory.
    """

    threads: int
    blocks: int
    registers: int
    shared: int


def limits_of(figures: Mapping[str, object]) -> GpuLimits | None:
    """Of a device of `figures.toml`; None for what is no GPU of NVIDIA's."""
    capability, shared = figures.get("capability"), figures.get("shared_memory")
    if not isinstance(capability, str) or not capability[:1].isdigit() or not isinstance(shared, dict):
        return None
    blocks = {"8.6": 16, "8.9": 24, "12.0": 24}.get(capability.rstrip("a"), 32)
    return GpuLimits(int(str(figures["threads"])), blocks, 65_536, int(shared["core"]))  # pyright: ignore[reportUnknownArgumentType]


def occupancy(limits: GpuLimits, block: Sequence[int], registers: int | None, shared: int | None) -> float:
    """The share of a multiprocessor's threads that can be resident at most, 0 to 1.

    What isn't known doesn't limit: with `registers` None it is the bound of the others.

    Args:
        limits: Of the device.
        block: Threads of a block, by axis.
        registers: That each thread has.
        shared: Bytes of shared memory of a block.

    Example:
        >>> h100 = GpuLimits(2048, 32, 65_536, 233_472)
        >>> occupancy(h100, (128, 1, 1), 64, 0), occupancy(h100, (64, 1, 1), None, 0)
        (0.5, 1.0)
    """
    warps = math.ceil(math.prod(block) / WARP)
    blocks = min(limits.blocks, limits.threads // (warps * WARP))
    if registers:
        of_warp = math.ceil(registers * WARP / _REGISTERS_AT_ONCE) * _REGISTERS_AT_ONCE
        blocks = min(blocks, limits.registers // of_warp // warps)
    if shared:
        blocks = min(blocks, limits.shared // (shared + _RESERVED))
    return blocks * warps * WARP / limits.threads
