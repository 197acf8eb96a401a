"""How the arguments of a program lie on the devices, as it was lowered: not each compiler repeats that in its HLO."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from explorer.model.capture import Capture
from explorer.model.shardings import Axes, DeviceMesh, Spread
from explorer.model.types import ArrayType, parse_type

_DIMENSIONS = re.compile(r"\[((?:\{[^{}]*\}(?:, )?)*)\]")
_DIMENSION = re.compile(r"\{([^{}]*)\}")
_AXIS = re.compile(r'"([^"]+)"(:\(\d+\)\d+)?')


@dataclass(frozen=True)
class GivenArgument:
    """One argument of the lowered program.

    Args:
        array: Its type, of the whole array.
        sharding: As the text has it; empty where nothing was asked for.
    """

    array: ArrayType
    sharding: str


def given_arguments(capture: Capture) -> Sequence[GivenArgument]:
    """The arguments of a capture's lowered program, in order; none where it has no such stage."""
    stage = next((stage for stage in capture.stages if stage.name == "stablehlo"), None)
    nodes = stage.graph.nodes if stage is not None else ()
    parameters = (node for node in nodes if node.op == "parameter" and node.group is not None)
    of_main = (node for node in parameters if node.group is not None and node.group.kind == "entry")
    return [
        GivenArgument(parse_type(node.type).arrays[0], node.attributes.get("sdy.sharding", ""))
        for node in of_main
        if parse_type(node.type).arrays
    ]


def spread_of_argument(mesh: DeviceMesh, given: Sequence[GivenArgument], number: int, part: ArrayType) -> Spread:
    """How an argument lies of which each device has a `part`; anyhow, where that can't be told from the two."""
    if 0 <= number < len(given):  # a damaged text may number it anyhow
        whole = given[number]
        if whole.array.shape == part.shape:
            return Spread(0, ((),) * len(part.shape), number)
        dims = _dims(mesh, whole.sharding)
        if dims is not None and _sizes(mesh, part, dims) == whole.array.shape:
            axes = sum(1 << axis for split in dims for axis in split)
            return Spread(axes, dims, number)
    return Spread(mesh.full, None, number)


def _dims(mesh: DeviceMesh, sharding: str) -> tuple[Axes, ...] | None:
    """`#sdy.sharding<@mesh, [{"data"}, {}]>`: of each dimension the axes; None where parts of axes split one."""
    written = _DIMENSIONS.search(sharding)
    if written is None:
        return None
    axes = [_AXIS.findall(dimension) for dimension in _DIMENSION.findall(written[1])]
    if any(part or name not in mesh.names for dimension in axes for name, part in dimension):
        return None
    return tuple(tuple(mesh.names.index(name) for name, _ in dimension) for dimension in axes)


def _sizes(mesh: DeviceMesh, part: ArrayType, dims: Sequence[Axes]) -> tuple[int, ...]:
    devices = (mesh.devices_along(sum(1 << axis for axis in split)) for split in dims)
    return tuple(size * count for size, count in zip(part.shape, devices, strict=False))
