"""Names of hardware: `"8xh100"`, `"8x8xh100"`, `"v5e:4x4"`, `"2xv5e:4x4"`; estimates by its published figures."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from explorer.analysis.collectives import collectives as all_collectives
from explorer.analysis.graphs import graph_of
from explorer.analysis.kernel_costs import running_nodes
from explorer.analysis.least_time import least_times
from explorer.errors import UnknownTargetError
from explorer.files.disk import parse_toml, read_text
from explorer.hardware.cpu_features import ARM
from explorer.hardware.links import least_seconds
from explorer.model.capture import Capture
from explorer.model.graph import Node
from explorer.model.results.estimates import PEAKS, Collectives, Estimate, Estimates
from explorer.model.results.roofline import Peaks
from explorer.model.target import Hardware, Target, sides_of

_FILE = Path(__file__).with_name("figures.toml")


@cache
def all_hardware() -> Mapping[str, Hardware]:
    """Return all devices by key, in the order of `figures.toml`."""
    return {key: _hardware(key, table) for key, table in _tables().items()}


@cache
def aliases() -> Mapping[str, str]:
    """Return a dict from each alias to the key of its device."""
    return {alias: key for key, table in _tables().items() for alias in table.get("aliases", ())}


def _tables() -> Mapping[str, Mapping[str, Any]]:
    return {key: table for key, table in _contents().items() if key != "source"}


@cache
def _contents() -> Mapping[str, Any]:
    return parse_toml(read_text(_FILE))


def _hardware(key: str, table: Mapping[str, Any]) -> Hardware:
    sources = {source["id"]: source["text"] for source in _contents()["source"]}
    values = {name: value for name, value in table.items() if name not in ("aliases", "sources")}
    return Hardware(key, sources=tuple(sources[number] for number in table.get("sources", ())), **values)


_MAX_DEVICES = 1 << 16  # eight times the largest pod
_ARM = {"arm", "arm64", "aarch64", "neoverse", "neoverse-n1", "neoverse-v1", "neoverse-v2", "graviton", "grace", "sve"}
_NAME = re.compile(
    r"(?:(?P<nodes>\d+)\s*[x×]\s*(?=\d+\s*[x×]))?(?:(?P<count>\d+)\s*[x×]\s*)?"
    r"(?P<key>[a-z][\w.\-]*?|\d[\w.\-]*?)(?:\s*:\s*(?P<sides>[\dx×]+))?"
)


def parse_target(text: str | Target) -> Target:
    """Return the target that a name stands for.

    Args:
        text: A device of `explorer.targets()`; several as `8xh100`; nodes of several as `4x8xh100`; a TPU slice with
            its topology as `v5e:4x4`; several slices as `2xv5e:4x4`.

    Raises:
        UnknownTargetError: There is no such device, or no such number or topology of it.

    Example:
        >>> target = parse_target("v5e:4x4")
        >>> target.device.name, target.count, str(target)
        ('TPU v5e', 16, 'v5e:4x4')
        >>> parse_target("4x8xh100").nodes
        4
    """
    __tracebackhide__ = True
    if isinstance(text, Target):
        return text
    match = _NAME.fullmatch(text.strip().lower()) if isinstance(text, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if match is None:
        raise UnknownTargetError(
            f"{text!r} names no hardware.\n"
            "  Hint: a device, 'h100'; several, '8xh100', 'v5e:4x4'; nodes or slices, '4x8xh100', '2xv5e:4x4'."
        )
    device = _device(match["key"], text)
    nodes, count = (int(match[name] or 1) for name in ("nodes", "count"))
    if match["sides"] is None:
        return _counted(device, nodes, count, text)
    if match["nodes"] is not None:
        raise UnknownTargetError(
            f"{text!r} has two numbers and a topology.\n  Hint: slices and their topology, as '2x{device.key}:4x4'."
        )
    return _arranged(device, count, [int(side) for side in re.split("[x×]", match["sides"]) if side], text)


def _device(key: str, text: str) -> Hardware:
    __tracebackhide__ = True
    devices = all_hardware()
    if (device := devices.get(aliases().get(key, key))) is not None:
        return device
    if key in _ARM:
        raise UnknownTargetError(f"{text!r}: {ARM}.")
    near = get_close_matches(key, [*devices, *aliases()], n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    raise UnknownTargetError(f"{text!r} names no hardware that is known.{meant}\n  There are: {', '.join(devices)}.")


def _counted(device: Hardware, nodes: int, each: int, text: str) -> Target:
    __tracebackhide__ = True
    count = nodes * each
    if not 0 < count <= _MAX_DEVICES:
        raise UnknownTargetError(f"{text!r} is no number of devices; allowed are 1 to {_MAX_DEVICES:,}.")
    if device.platform == "tpu" and count > 1:
        raise UnknownTargetError(
            f"{text!r}: the program depends on the topology of TPUs.\n"
            f"  Hint: a topology, as '{device.key}:{device.topology}' of {prod(sides_of(device.topology))} chips."
        )
    if device.platform == "cpu" and nodes > 1:
        raise UnknownTargetError(f"{text!r}: only GPUs have nodes, and TPUs slices.\n  Hint: '{count}x{device.key}'.")
    return Target(device, count, nodes=nodes)


def _arranged(device: Hardware, slices: int, sides: list[int], text: str) -> Target:
    __tracebackhide__ = True
    if device.platform != "tpu":
        raise UnknownTargetError(f"{text!r}: only TPUs have a topology.\n  Hint: '{prod(sides)}x{device.key}'.")
    needed = len(sides_of(device.topology))
    if len(sides) != needed or not 0 < prod(sides) <= _MAX_DEVICES:
        raise UnknownTargetError(
            f"{text!r}: a {device.name}'s topology has {needed} sides, as '{device.key}:{device.topology}'."
        )
    count = slices * prod(sides) * device.per_chip
    if not 0 < count <= _MAX_DEVICES:
        raise UnknownTargetError(f"{text!r} is no number of devices; allowed are 1 to {_MAX_DEVICES:,}.")
    return Target(device, count, "x".join(map(str, sides)), nodes=slices)


def target_of(capture: Capture) -> Target | None:
    """Return the hardware that a capture was compiled for; None for this machine, or if the name is unknown."""
    try:
        return parse_target(capture.environment["target"])
    except (KeyError, UnknownTargetError):  # a file from another Explorer may name other hardware
        return None


def collectives(capture: Capture) -> Collectives:
    """Return a program's collectives; for a target with their least time, bytes over bandwidth, without latency."""
    rows, target = all_collectives(capture), target_of(capture)
    if target is None:
        return rows
    return replace(rows, rows=tuple(replace(row, seconds=least_seconds(row, target)) for row in rows))


def estimates(capture: Capture) -> Estimates:
    """Return each kernel's expected time by its compiler, else by published peaks; empty for this machine and CPUs."""
    target = target_of(capture)
    graph = graph_of(capture, "hlo")
    if target is None or graph is None or not target.device.bandwidth:  # a CPU's depends on its machine
        return Estimates()
    least = least_times(graph, peaks_of(target.device))
    # The "-start" instruction of a pair takes the time.
    nodes = [node for node in running_nodes(graph).tolist() if not graph.ops[int(graph.op[node])].endswith("-done")]
    rows = [_estimate(Node(graph, node), target.device.clock, float(least[node])) for node in nodes]
    finite = [row for row in rows if not np.isnan(row.seconds)]
    return Estimates(tuple(sorted(finite, key=lambda row: -row.seconds)), len(rows) - len(finite))


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
    """Return a device's published figures as `Peaks`, with a note that they are estimates."""
    # Nothing is published about functions slower than a multiply-add, so they count as one.
    note = f"published figures of {device.name}: estimates, not measured, and without the latency of launches"
    return Peaks(device.name, bandwidth=device.bandwidth, matmul=device.flops, fma=device.vector, notes=(note,))
