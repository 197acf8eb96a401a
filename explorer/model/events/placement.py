"""How arrays are spread over devices, as a person would write it."""

from __future__ import annotations

import re

from explorer.model.events.key import Leaf

_SPEC = re.compile(r"spec=(?:PartitionSpec|P)(\(.*\))(?:, memory_kind=|\)$)")
_MESH = re.compile(r"Mesh\((.*?)(?:, axis_types=|\))")


def spreads(before: str, after: str) -> tuple[str, str]:
    """Two shardings as JAX prints them, down to the partition where the meshes are equal."""
    meshes = _mesh(before), _mesh(after)
    if meshes[0] == meshes[1] and spec_of(before) != spec_of(after):
        return spec_of(before), spec_of(after)
    return _spec_and_mesh(before), _spec_and_mesh(after)


def spec_of(sharding: str) -> str:
    """`P('data', None)`; the text itself where it says none."""
    match = _SPEC.search(sharding)
    return f"P{match[1]}" if match else sharding


def _spec_and_mesh(sharding: str) -> str:
    mesh = _mesh(sharding)
    return f"{spec_of(sharding)} over {mesh}" if mesh else sharding


def _mesh(sharding: str) -> str:
    match = _MESH.search(sharding)
    return re.sub(r"'(\w+)': ", r"\1=", match[1]) if match else ""


def placement(leaf: Leaf) -> str:
    """Where an array is: its sharding, its device, or what it is if it is no JAX array."""
    memory = re.fullmatch(r"SingleDeviceSharding\(.*memory_kind=(\w+)\)", leaf.sharding)
    if memory:
        return f"{', '.join(leaf.devices)}, memory {memory[1]}"
    return leaf.sharding or ", ".join(leaf.devices) or leaf.given
