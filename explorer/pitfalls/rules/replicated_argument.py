"""An argument that each device has whole where a part would do, or where all of its like are split."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.model.findings import Finding
from explorer.pitfalls.arguments import parameter_location
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.sharded import DOCUMENTATION, along, argument_root, finding_of, wastes


def check(evidence: Evidence) -> Iterator[Finding]:
    for waste in wastes(evidence, "argument", "unsplit", "unlike"):
        path = waste.node.scope if waste.node is not None else ""
        whole = f"`{path}` is whole on each of the {waste.devices} devices along {along(waste)}"
        if waste.kind == "argument":
            message = f"{whole}, and each uses its part of it alone"
        elif waste.kind == "unsplit":
            message = f"{whole} where other weights are split, and each computes all of its product"
        else:
            message = f"{whole}; others of its tree and shape are split there"
        spec = waste.spec or "P(…)"
        fix = f"pass it split: jax.device_put({path or 'x'}, NamedSharding(mesh, {spec}))"
        yield finding_of(RULE, evidence, waste, message, fix, **parameter_location(evidence, argument_root(path)))


RULE = Rule(
    "replicated-argument",
    "EX035",
    "warning",
    "An argument is whole on each device where a part of it would do.",
    DOCUMENTATION,
    check,
    passive=True,
    compiles=True,
)
