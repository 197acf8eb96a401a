"""How arrays are spread over devices, as a person would write it."""

from __future__ import annotations

from explorer.model.events.key import Leaf


def spreads(before: Leaf, after: Leaf) -> tuple[str, str]:
    """Where two arrays are; down to the partition where the meshes are equal."""
    (spec, *mesh), (new_spec, *new_mesh) = before.spread or ("",), after.spread or ("",)
    if mesh == new_mesh and spec and new_spec and spec != new_spec:
        return spec, new_spec
    return placement(before), placement(after)


def spread_text(parts: tuple[str, str, str]) -> str:
    """`P('data') over data=4`; empty of a single device."""
    spec, mesh, memory = parts
    return (f"{spec} over {mesh}" if mesh else spec) + (f", memory {memory}" if memory and spec else "")


def placement(leaf: Leaf) -> str:
    """Where an array is: its sharding, its device, or what it is if it is no JAX array."""
    if leaf.spread:
        text = spread_text(leaf.spread)
        devices = ", ".join(leaf.devices)
        if text or leaf.spread[2]:
            return text or f"{devices}, memory {leaf.spread[2]}"
    return leaf.sharding or ", ".join(leaf.devices) or leaf.given
