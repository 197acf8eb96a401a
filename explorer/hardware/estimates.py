"""What published figures of hardware let one expect of a program: estimates, never measurements."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from explorer.analysis.collectives.collectives import collectives as all_collectives
from explorer.analysis.cost.kernels import running_nodes
from explorer.analysis.cost.least_time import least_times
from explorer.errors import UnknownTargetError
from explorer.hardware.names import parse_target
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.results.estimates import PEAKS, Collectives, Estimate, Estimates
from explorer.model.results.roofline import Peaks
from explorer.model.target import Hardware, Target


def target_of(capture: Capture) -> Target | None:
    """The hardware that a capture was made for; None where that was what is here."""
    try:
        return parse_target(capture.environment["target"])
    except (KeyError, UnknownTargetError):  # of a file: another Explorer may know other hardware
        return None


def collectives(capture: Capture) -> Collectives:
    """What the devices of a program send each other, with the time that its links need for that at the least.

    That is the bytes over the links' bandwidth; their latency, most of the time of a small message, isn't in it.
    """
    rows, target = all_collectives(capture), target_of(capture)
    if target is None or not target.device.links:
        return rows
    return replace(rows, rows=tuple(replace(row, seconds=row.wire / target.device.links) for row in rows))


def estimates(capture: Capture) -> Estimates:
    """What each kernel of a program is expected to take, by its compiler or else by published peaks."""
    target = target_of(capture)
    graph = next((stage.graph for stage in capture.stages if stage.name == "hlo"), None)
    if target is None or graph is None or not target.device.bandwidth:  # of a CPU: its machine's
        return Estimates()
    least = least_times(graph, peaks_of(target.device))
    nodes = [int(node) for node in running_nodes(graph) if not _is_free(graph, int(node))]
    rows = [_estimate(Node(graph, node), target.device.clock, float(least[node])) for node in nodes]
    finite = [row for row in rows if not np.isnan(row.seconds)]
    return Estimates(tuple(sorted(finite, key=lambda row: -row.seconds)), len(rows) - len(finite))


def _is_free(graph: Graph, node: int) -> bool:
    """Whether an instruction only ends what another began, which takes the time."""
    return graph.ops[int(graph.op[node])].endswith("-done")


def _estimate(node: Node, clock: float, least: float) -> Estimate:
    counted = float(node.graph.measures["runs"][node.index])
    runs = 1.0 if np.isnan(counted) else counted
    attributes = node.attributes
    if "estimated_microseconds" in attributes:
        return Estimate(node, float(attributes["estimated_microseconds"]) * 1e-6 * runs, "XLA's cost model", runs)
    if clock and "estimated_cycles" in attributes:
        by = f"the TPU compiler's cycles at {clock:g} GHz"
        return Estimate(node, float(attributes["estimated_cycles"]) / (clock * 1e9) * runs, by, runs)
    return Estimate(node, least, PEAKS, runs)


def peaks_of(device: Hardware) -> Peaks:
    """Published figures as the peaks that a roofline stands under: what no program gets beyond.

    Of functions that take longer than a multiply-add nothing is published, so they count as one.
    """
    note = f"published figures of {device.name}: estimates, not measured, and without the latency of launches"
    return Peaks(device.name, bandwidth=device.bandwidth, matmul=device.flops, fma=device.vector, notes=(note,))
