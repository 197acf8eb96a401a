"""An array that each device makes whole, and uses its part of alone."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.sharded import DOCUMENTATION, along, constraint, finding_of, wastes


def check(evidence: Evidence) -> Iterator[Finding]:
    for waste in wastes(evidence, "made whole"):
        message = f"each of the {waste.devices} devices along {along(waste)} makes this array whole, and uses its part"
        request = constraint(waste.spec)
        fix = (
            f"make it split: {request} on what this line gives"
            if request
            else "make it split, by a sharding constraint"
        )
        yield finding_of(RULE, evidence, waste, message + " alone", fix)


RULE = Rule(
    "replicated-intermediate",
    "EX037",
    "warning",
    "Each device makes an array whole, and uses its part of it alone.",
    DOCUMENTATION,
    check,
    passive=True,
    compiles=True,
)
