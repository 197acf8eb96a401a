"""Shardings as JSON: by the mesh's shape and the names of its axes, and by device number."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

from explorer.errors import InputInfoError


def sharding_to_json(sharding: jax.sharding.Sharding | PartitionSpec) -> dict[str, Any]:
    """What says the same on another machine with as many devices.

    Raises:
        InputInfoError: It is neither over a mesh of all devices in order, nor on one device.
    """
    if isinstance(sharding, SingleDeviceSharding):
        (device,) = cast(set[Any], sharding.device_set)
        return {"device": cast(list[Any], jax.devices()).index(device)}
    if isinstance(sharding, NamedSharding):
        parts = cast(list[Any], sharding.spec)
        spec = [list(cast(tuple[str, ...], part)) if isinstance(part, tuple) else part for part in parts]
        mesh: Any = sharding.mesh
        axes = zip(mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)
        data: dict[str, Any] = {"mesh": [[name, size, kind.name] for name, size, kind in axes], "spec": spec}
        if sharding_from_json(data) == sharding:
            return data
    raise InputInfoError(
        f"{sharding} can't be written down: a NamedSharding over a mesh of the first devices can, and one device.\n"
        "  Hint: jax.NamedSharding(jax.make_mesh((8,), ('x',)), jax.P('x'))."
    )


def sharding_from_json(data: Any) -> jax.sharding.Sharding:
    """The reverse of `sharding_to_json`.

    Raises:
        InputInfoError: It says none, or one over more devices than there are.
    """
    devices = cast(list[Any], jax.devices())
    try:
        if set(cast(Mapping[str, Any], data)) == {"device"} and type(data["device"]) is int and data["device"] >= 0:
            return SingleDeviceSharding(devices[data["device"]])
        names, sizes, kinds = zip(*data["mesh"], strict=True)
        mesh = jax.make_mesh(sizes, names, axis_types=tuple(AxisType[kind] for kind in kinds))
        spec = [tuple(cast(list[Any], part)) if isinstance(part, list) else part for part in data["spec"]]
        return NamedSharding(mesh, PartitionSpec(*spec))
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        raise InputInfoError(
            f"{data!r} is no sharding over the {len(devices)} devices there are: {error}.\n"
            "  Hint: what InputInfo.to_json() gives, on a machine with as many devices."
        ) from None
