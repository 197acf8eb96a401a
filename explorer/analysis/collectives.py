"""Collectives of an optimized program: groups, bytes sent, source line, and kernels that run meanwhile.

The bytes sent are those of a ring, the least of any algorithm. For `b` bytes given by each of `n` devices, an
all-reduce sends `2b(n − 1)/n`, a reduce-scatter and an all-to-all `b(n − 1)/n`, and an all-gather `b(n − 1)`. A
permute or a broadcast sends `b` (NCCL tests, doc/PERFORMANCE.md; Patarasuk and Yuan, 2009).

A TPU's module is that of one slice. What crosses slices is written as transfers to the host, each with its kind; where
the text doesn't name the slices of one, two are assumed, the least.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from explorer.analysis.graphs import NO_ENTRY, device_count, graph_of, has_entry, is_op, slice_count
from explorer.errors import NotRecordedError
from explorer.model.capture import Capture
from explorer.model.graph import Graph, Node
from explorer.model.results.estimates import Collective, Collectives
from explorer.model.shardings import Groups, axes_of, axes_of_pairs, parse_groups
from explorer.model.types import parse_type

_SENT: Mapping[str, Callable[[int, int], float]] = {
    "all-reduce": lambda given, n: 2 * given * (n - 1) / n,
    "all-gather": lambda given, n: given * (n - 1),
    "reduce-scatter": lambda given, n: given * (n - 1) / n,
    "all-to-all": lambda given, n: given * (n - 1) / n,
    "ragged-all-to-all": lambda given, n: given * (n - 1) / n,
    "collective-permute": lambda given, n: given,
    "collective-broadcast": lambda given, n: given,
}
_START = "-start"
_TRANSFER = re.compile(r'_xla_megascale_transfer_type="(?P<kind>\w+)"')
_TRANSFERS = {"ONE_TO_ONE": "collective-permute"}
_BETWEEN = re.compile(r'_xla_megascale_target="\{(?P<slices>[\d,]+)\}x')


def collectives(capture: Capture) -> Collectives:
    """Return the collectives of a capture's optimized program, most bytes sent first; see `Capture.collectives`.

    Empty without an `hlo` stage. NotRecordedError if its text has no entry computation.
    """
    if (graph := graph_of(capture, "hlo")) is None:
        return Collectives(())
    if not has_entry(graph):
        raise NotRecordedError(f"{NO_ENTRY}.")
    devices = _device_count(graph)
    nodes: list[int] = np.flatnonzero(is_op(graph, {"send", *_SENT, *(f"{kind}{_START}" for kind in _SENT)})).tolist()
    kinds = {node: kind for node in nodes if (kind := _kind(Node(graph, node))) in _SENT}
    mesh = mesh_of(capture) if kinds or devices > 1 else ()  # reads all of StableHLO
    rows = [_collective(capture, Node(graph, node), kind, devices, mesh) for node, kind in kinds.items()]
    rows.sort(key=lambda row: -row.wire * row.runs)
    return Collectives(tuple(rows), devices, mesh)


def mesh_of(capture: Capture) -> tuple[tuple[str, int], ...]:
    """Return the mesh in StableHLO as (axis, size) pairs; empty if the text has no mesh, as without Shardy."""
    stablehlo = graph_of(capture, "stablehlo")
    text = stablehlo.attributes.get("mesh", "") if stablehlo is not None else ""
    axes = (axis.rpartition("=") for axis in text.split(",") if text)
    return tuple((name, int(size)) for name, _, size in axes)


def _device_count(graph: Graph) -> int:
    replicas = graph.attributes.get("replica_count", "")
    return device_count(graph) * (int(replicas) if replicas.isdecimal() and len(replicas) < 10 else 1)


def _kind(node: Node) -> str:
    """Return the kind of a collective, or of a transfer between slices; any other text for another node."""
    if node.op != "send":
        return node.op.removesuffix(_START)
    transfer = _TRANSFER.search(node.attributes.get("frontend_attributes", ""))
    return _TRANSFERS.get(transfer["kind"], transfer["kind"].lower().replace("_", "-")) if transfer else ""


def _groups(node: Node, is_permuted: bool, devices: int) -> Groups:
    """Return the groups of device numbers that communicate, slice after slice; empty if the text doesn't name them.

    A permute's groups are (source, target) pairs. `devices` is the number of devices of all slices.
    """
    slices = slice_count(node.graph)
    each = devices // slices
    if node.op == "send":
        named = _BETWEEN.search(node.attributes.get("frontend_attributes", ""))
        numbers = [int(number) - 1 for number in named["slices"].split(",")] if named else [*range(slices)]
        # Of more than two slices it may be a part.
        is_clear = len(numbers) == 2 or named is not None
        return tuple(tuple(at * each + device for at in numbers) for device in range(each)) if is_clear else ()
    text = node.attributes.get("source_target_pairs" if is_permuted else "replica_groups", "")
    groups = parse_groups(text)
    if not groups and not is_permuted and not text.strip("{} "):
        groups = (tuple(range(each)),)  # `replica_groups={}` means all devices
    return tuple(tuple(at * each + device for device in group) for at in range(slices) for group in groups)


def _collective(capture: Capture, node: Node, kind: str, devices: int, mesh: Sequence[tuple[str, int]]) -> Collective:
    graph = node.graph
    is_permuted = kind == "collective-permute"
    groups = _groups(node, is_permuted, devices)
    size = len(groups[0]) if groups else 2 if node.op == "send" else 1
    kind = "reduce-scatter" if kind == "all-reduce" and _is_scattered(node, size) else kind
    given = sum(parse_type(operand.type).bytes for operand in node.operands)
    runs = float(graph.measures["runs"][node.index])
    file, line, text = _place(capture, node)
    return Collective(
        node=node,
        kind=kind,
        axes=axes_of_pairs(groups, mesh) if is_permuted else axes_of(groups, mesh),
        groups=groups,
        size=size,
        bytes=given,
        wire=round(_SENT[kind](given, size)),
        # A loop of unknown length counts as one iteration.
        runs=1.0 if np.isnan(runs) else runs,
        file=file,
        line=line,
        text=text,
        overlaps=_overlaps(node),
    )


def _is_scattered(sum_: Node, size: int) -> bool:
    """Return True if the only reader of a fusion's all-reduce is a slice of 1/`size`.

    TPU compilers write a reduce-scatter in this way.
    """
    if sum_.group is None or sum_.group.kind != "fusion" or len(sum_.users) != 1:
        return False
    (user,) = sum_.users
    is_part = parse_type(user.type).elements * size == parse_type(sum_.type).elements
    return is_part and user.op == "dynamic-slice" and user.operands[0] == sum_


def _place(capture: Capture, node: Node) -> tuple[str, int, str]:
    """Return file, line and text of a collective's source, else of its operands' or readers'; "", 0, "" for none."""
    # XLA may leave a collective without a place that its operands and readers have.
    for each in (node, *node.operands, *(user for operand in node.users for user in (operand, *operand.users))):
        if (place := each.place) is not None:
            source = capture.sources.get(place.file)
            lines = source.text.splitlines() if source is not None else []
            return place.file, place.line, lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""
    return "", 0, ""


def _overlaps(start: Node) -> tuple[Node, ...]:
    graph = start.graph
    if not start.op.endswith(_START) or graph.attributes.get("is_scheduled") != "true" or _is_waited_for(start):
        return ()
    ends = [user.index for user in start.users if user.op.endswith("-done")]
    if not ends:
        return ()
    between = np.arange(start.index + 1, min(ends))
    runs = (graph.group[between] == graph.group[start.index]) & (graph.kernel[between] == between)
    nodes = (Node(graph, at) for at in between[runs].tolist())
    return tuple(node for node in nodes if not node.op.endswith(("-start", "-done")))


def _is_waited_for(start: Node) -> bool:
    """Return True if a GPU backend marks the collective as synchronous; False if the text doesn't say it."""
    try:
        config = json.loads(start.attributes.get("backend_config", "{}"))
        return bool(config["collective_backend_config"]["is_sync"])
    # Each backend writes a config of its own, and a damaged text any other.
    except (ValueError, KeyError, TypeError, RecursionError):
        return False


def group_text(groups: Groups, most: int = 2) -> str:
    """Return the first `most` replica groups as text: `{0,1}, {2,3}, …`."""
    shown = ", ".join("{" + ",".join(map(str, group)) + "}" for group in groups[:most])
    return f"{shown}{', …' if len(groups) > most else ''}"
