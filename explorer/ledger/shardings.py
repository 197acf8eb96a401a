"""How an array is spread over devices, in parts, as the ledger keeps it."""

from __future__ import annotations

from typing import Any, cast

from jax.sharding import NamedSharding

from explorer.ledger.functions import clean
from explorer.model.events.event import spread_text

Parts = tuple[str, str, str]


def sharding_parts(sharding: Any, memory: str = "") -> Parts:
    """The partition (`P('data', None)`), the mesh (`data=4`) and the memory, where that isn't the device's usual one.

    Empty is what it has not: a single device has neither of the first two.
    """
    if not isinstance(sharding, NamedSharding):
        return "", "", memory
    mesh = cast("Any", sharding.mesh)
    axes = ", ".join(f"{name}={size}" for name, size in mesh.shape.items())
    return _spec_text(sharding.spec), axes, memory


def _spec_text(spec: Any) -> str:
    if getattr(spec, "unreduced", None) or getattr(spec, "reduced", None):
        return str(spec)
    return f"P({', '.join(map(repr, spec))})"


def sharding_text(sharding: Any) -> str:
    """In one line, for a setting of `jax.jit`."""
    return spread_text(sharding_parts(sharding)) or clean(str(sharding))
