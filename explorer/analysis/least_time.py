"""Estimates for hardware where a program never ran: least times, roofline of kernels, occupancy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.graphs import is_op
from explorer.analysis.kernel_costs import KernelKinds, kernel_kinds, running_nodes
from explorer.analysis.line_costs import LineShares, line_shares
from explorer.model.capture import Capture, with_measures
from explorer.model.graph import Floats, Graph
from explorer.model.results.roofline import Peaks, Point, Roofline
from explorer.model.types import parse_type
from explorer.model.units import count_text, duration_text


def estimated_roofline(capture: Capture, peaks: Peaks, notes: Sequence[str] = ()) -> Roofline:
    """Return a capture's kernels with their least times on a device's peaks; nothing is measured.

    A kernel with unknown FLOPs or bytes, such as a library's, has no time; a note counts these.
    """
    graph = capture.hlo.graph
    times = least_times(graph, peaks)
    # Unknown times count as 0, so that their kernels have no lines.
    lines = line_shares(with_measures(capture, {**graph.measures, "time": np.nan_to_num(times)}))
    texts = {(row.file, row.line): row.text for row in capture.lines()}
    running, copies = running_nodes(graph), copies_beside(graph)
    nodes: list[int] = running[~copies[running]].tolist()
    kinds = kernel_kinds(graph)
    points = [_point(graph, kinds, peaks, node, float(times[node]), lines.get(node, ()), texts) for node in nodes]
    points.sort(key=lambda point: -point.seconds)
    unknown = sum(point.bound == "unknown" for point in points)
    text = f"the time of {count_text(unknown, 'kernel')} is unknown: calls of libraries, or loops of unknown length"
    all_notes = [*notes, *([text] if unknown else [])]
    if beside := float(np.nansum(times[copies])):
        counted = count_text(len(times[copies]), "copy").replace("copys", "copies")
        all_notes.append(f"{counted} beside the kernels: {duration_text(beside)}")
    all_notes += peaks.notes
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


_COPIES = frozenset(("async-start", "copy-start", "slice-start", "dynamic-slice-start", "dynamic-update-slice-start"))


def least_times(graph: Graph, peaks: Peaks) -> Floats:
    """Return the least seconds of each node of an optimized program over all its runs, shape `[n]`; 0 outside kernels.

    Only FLOPs and bytes count. Latencies of launches and memory are left out, so many small kernels take far longer. A
    kernel with unknown FLOPs or bytes, such as a library's, is NaN.
    """
    seconds = np.zeros(len(graph.names))
    kinds, measures = kernel_kinds(graph), graph.measures
    # Arrays outside of device memory: a TPU's compiler places some in the core's own memory, `S(1)`.
    arrays = [[array for array in parse_type(type_).arrays if array.memory_space] for type_ in graph.types]
    on_chip = np.asarray([sum(array.allocated for array in each) for each in arrays], float)[graph.type]
    nodes: list[int] = running_nodes(graph).tolist()
    for node in nodes:
        counted = float(measures["runs"][node])
        # A loop of unknown length counts as one iteration.
        runs = 1.0 if np.isnan(counted) else counted
        start, end = graph.operand_start[node : node + 2].tolist()
        near = float(on_chip[node] + on_chip[graph.operand[start:end]].sum()) * runs
        dtype, is_matmul, special = kinds.dtype[node], kinds.is_matmul[node], kinds.special.get(node)
        moved = max(float(measures["bytes"][node]) - near, 0.0) if near else float(measures["bytes"][node])
        flops = float(measures["flops"][node])
        seconds[node] = peaks.least_seconds(flops, moved, dtype, is_matmul=is_matmul, runs=runs, special=special)
    return seconds


def copies_beside(graph: Graph) -> NDArray[np.bool_]:
    """Return a mask of the nodes that copy while kernels run, as a TPU prefetches to the core's own memory."""
    return is_op(graph, _COPIES)


WARP = 32
_REGISTERS_AT_ONCE = 256  # unit of allocation for a warp
_RESERVED = 1024  # bytes of each block's shared memory that the system takes, from compute capability 8.0


@dataclass(frozen=True)
class GpuLimits:
    """Limits of one multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities").

    Args:
        threads, blocks: That can be resident.
        registers: Of 32 bits.
        shared: Bytes of shared memory.
    """

    threads: int
    blocks: int
    registers: int
    shared: int


def limits_of(figures: Mapping[str, object]) -> GpuLimits | None:
    """Return the limits of a device of `figures.toml`; None if it isn't an NVIDIA GPU."""
    capability, shared = figures.get("capability"), figures.get("shared_memory")
    if not isinstance(capability, str) or not capability[:1].isdigit() or not isinstance(shared, dict):
        return None
    # CUDA's limits of resident blocks on a multiprocessor; most capabilities have 32.
    blocks = {"8.6": 16, "8.9": 24, "12.0": 24}.get(capability.rstrip("a"), 32)
    return GpuLimits(int(str(figures["threads"])), blocks, 65_536, int(shared["core"]))  # pyright: ignore[reportUnknownArgumentType]


def occupancy(limits: GpuLimits, block: Sequence[int], registers: int | None, shared: int | None) -> float:
    """Return the largest share of a multiprocessor's threads that can be resident, 0 to 1.

    Unknown quantities don't limit: with `registers` None, the result is the bound of the others.

    Args:
        limits: Of the device.
        block: Threads of a block, by axis.
        registers: Registers of each thread.
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
