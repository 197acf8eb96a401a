"""Shardings of inputs: resolved over a mesh of devices, and as JSON.

In JSON a sharding is the mesh's shape and axis names, or a device's number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import jax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from explorer.errors import InputInfoError, OptionError

_AHEAD = "explorer.explore(f, …, target='8xh100') compiles for devices that aren't here"


def checked_mesh(mesh: Any) -> Mesh | None:
    """Return the given mesh, else that of `jax.set_mesh`, else None; raise OptionError for a mesh without devices."""
    __tracebackhide__ = True
    if mesh is None:
        around = jax.sharding.get_mesh()
        return None if around.empty else around
    if isinstance(mesh, Mesh):
        return mesh
    if isinstance(mesh, AbstractMesh):
        shape = ", ".join(f"{name}={size}" for name, size in mesh.shape.items())
        raise OptionError(
            f"mesh is an AbstractMesh ({shape}), which has no devices to run on.\n"
            f"  Hint: jax.make_mesh({mesh.axis_sizes}, {mesh.axis_names}) has those that are here; {_AHEAD}."
        )
    raise OptionError(
        f"mesh is {type(mesh).__name__}; allowed is a jax.sharding.Mesh.\n  Hint: jax.make_mesh((8,), ('data',))."
    )


def on_mesh(sharding: Sharding | PartitionSpec | None, mesh: Mesh | None) -> Sharding | None:
    """Return a `PartitionSpec`, or a sharding over an AbstractMesh, as a sharding over `mesh`; others unchanged."""
    __tracebackhide__ = True
    if isinstance(sharding, PartitionSpec):
        if mesh is None:
            raise InputInfoError(
                f"the sharding is {_spec_text(sharding)}, and no mesh defines the devices of its axes.\n"
                "  Hint: compile(…, mesh=jax.make_mesh((8,), ('data',))), jax.set_mesh(mesh) around the call, or "
                "jax.NamedSharding(mesh, spec)."
            )
        return _named(mesh, sharding)
    if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, AbstractMesh):
        return sharding
    own = sharding.mesh
    if mesh is None:
        raise InputInfoError(
            f"the sharding {_spec_text(sharding.spec)} is over an AbstractMesh, which has no devices to run on.\n"
            f"  Hint: compile(…, mesh=jax.make_mesh({own.axis_sizes}, {own.axis_names})); {_AHEAD}."
        )
    if dict(own.shape) != dict(mesh.shape):
        raise InputInfoError(
            f"the sharding {_spec_text(sharding.spec)} is over a mesh of {_axes(own.shape)}, and mesh= is one of "
            f"{_axes(mesh.shape)}.\n  Hint: give both the same axes, or the input a PartitionSpec alone."
        )
    return _named(mesh, sharding.spec)


def is_spread(sharding: Any) -> bool:
    """Return True if a sharding specifies more than one device. A single device follows from each call's arrays."""
    if isinstance(sharding, PartitionSpec):
        return True
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh):
        return sharding.mesh.size > 1
    return len(getattr(sharding, "device_set", ())) > 1


def check_spec(spec: PartitionSpec, rank: int, shape: str) -> None:
    """Raise InputInfoError if a spec has more dimensions than the shape."""
    if len(_parts(spec)) > rank:
        raise InputInfoError(
            f"the sharding {_spec_text(spec)} has {len(_parts(spec))} dimensions, and the shape {shape} has {rank}.\n"
            "  Hint: one entry for each dimension, None for what isn't split."
        )


def _named(mesh: Mesh, spec: PartitionSpec) -> NamedSharding:
    parts = [cast("tuple[Any, ...]", part) if isinstance(part, tuple) else (part,) for part in _parts(spec)]
    names = [name for part in parts for name in part if isinstance(name, str)]
    missing = [name for name in names if name not in mesh.axis_names]
    if missing:
        raise InputInfoError(
            f"the sharding {_spec_text(spec)} names the axis {missing[0]!r}, and the mesh has {_axes(mesh.shape)}.\n"
            f"  Hint: jax.P({mesh.axis_names[0]!r})."
        )
    return NamedSharding(mesh, spec)


def _spec_text(spec: PartitionSpec) -> str:
    return f"P({', '.join(map(repr, _parts(spec)))})"


def _parts(spec: PartitionSpec) -> list[Any]:
    return list(cast("Sequence[Any]", spec))


def _axes(shape: Mapping[Any, int]) -> str:
    return ", ".join(f"{name}={size}" for name, size in shape.items())


def sharding_to_json(sharding: jax.sharding.Sharding | PartitionSpec) -> dict[str, Any]:
    """Return a description of one of JAX's default devices, or of a NamedSharding over a mesh of the first ones.

    It means the same on another machine with as many devices. Raise InputInfoError for others, also a PartitionSpec.
    """
    devices = cast(list[Any], jax.devices())
    if isinstance(sharding, SingleDeviceSharding) and sharding.device_set <= {*devices}:
        (device,) = cast(set[Any], sharding.device_set)
        return {"device": devices.index(device)}
    if isinstance(sharding, NamedSharding):
        parts = cast(list[Any], sharding.spec)
        spec = [list(cast(tuple[str, ...], part)) if isinstance(part, tuple) else part for part in parts]
        mesh: Any = sharding.mesh
        axes = zip(mesh.axis_names, mesh.axis_sizes, mesh.axis_types, strict=True)
        data: dict[str, Any] = {"mesh": [[name, size, kind.name] for name, size, kind in axes], "spec": spec}
        # The description has no devices: it fits only a mesh of the first ones, in JAX's order.
        if sharding_from_json(data) == sharding:
            return data
    raise InputInfoError(
        f"{sharding} can't be saved; allowed are a NamedSharding over a mesh of the first devices, and one device.\n"
        "  Hint: jax.NamedSharding(jax.make_mesh((8,), ('x',)), jax.P('x'))."
    )


def sharding_from_json(data: Any) -> jax.sharding.Sharding:
    """Return the sharding that `sharding_to_json` described; raise InputInfoError for others and too few devices."""
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
