"""An output that comes back whole on each device though nobody asked for that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import jax
from jax.errors import InconclusiveDimensionOperation

from explorer.capture.safe_reading import is_a
from explorer.model.findings import Finding
from explorer.model.units import bytes_text
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.sharded import DOCUMENTATION, along, finding_of, output_path, wastes

_LARGE = 1_000_000  # bytes


def check(evidence: Evidence) -> Iterator[Finding]:
    for waste in wastes(evidence, "output", "made output"):
        path = output_path(evidence, waste.number)
        if waste.kind == "output":
            message = f"`{path}` comes back whole on each of the {waste.devices} devices along {along(waste)}: its "
            message += "parts are gathered, and nobody asked for that"
        else:
            message = f"`{path}` is made of nothing that is split, so each of the {waste.devices} devices has all of it"
        spec = waste.spec or "P(…)"
        fix = f"ask for it: jax.jit(f, out_shardings=NamedSharding(mesh, {spec}))"
        yield finding_of(RULE, evidence, waste, message, fix)
    yield from _on_one_device(evidence)


def _on_one_device(evidence: Evidence) -> Iterator[Finding]:
    """Nothing of what is split is used, so the program is one for a single device: `zeros_like` of sharded weights."""
    if evidence.capture is not None or evidence.traced is None:
        return
    leaves: list[Any] = jax.tree.leaves((tuple(evidence.args), evidence.kwargs))
    devices = max((_devices(leaf) for leaf in leaves), default=1)
    outputs: list[Any] = jax.tree.leaves(evidence.traced.out_info)
    size = sum(_bytes(output) for output in outputs)
    if devices < 2 or size < _LARGE or _uses_any(evidence) or _is_requested(evidence, outputs):
        return
    yield RULE.finding(
        f"nothing that is split over the {devices} devices is used here, so all outputs come back on one device",
        evidence=f"{bytes_text(size)} of outputs, on one device",
        fix="say where they belong: jax.jit(f, out_shardings=jax.tree.map(lambda x: x.sharding, params))",
    )


def _uses_any(evidence: Evidence) -> bool:
    raw = evidence.program.main.raw
    used = {id(operand) for equation in raw.eqns for operand in equation.invars} | set(map(id, raw.outvars))
    return any(id(variable) in used for variable in raw.invars)


def _is_requested(evidence: Evidence, outputs: Sequence[Any]) -> bool:
    """Whether the function or its `jax.jit` names a sharding: then the program has a mesh of its own."""
    lowered = evidence.lowered
    return lowered is None or "sdy.mesh" in lowered.as_text() or "mhlo.sharding" in lowered.as_text()


def _devices(leaf: Any) -> int:
    if not is_a(leaf, jax.Array, jax.ShapeDtypeStruct):
        return 1
    return len(getattr(getattr(leaf, "sharding", None), "device_set", ()))


def _bytes(output: Any) -> int:
    try:
        return int(output.size) * int(output.dtype.itemsize)
    except (AttributeError, TypeError, InconclusiveDimensionOperation):  # a key; a size that has no number yet
        return 0


RULE = Rule(
    "replicated-output",
    "EX034",
    "warning",
    "An output comes back whole on each device, or on one of them, though nobody asked for that.",
    DOCUMENTATION,
    check,
    passive=True,
    compiles=True,
)
