"""An axis of the mesh that nothing is split along: all devices along it do the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.sharded import DOCUMENTATION, along, finding_of, wastes


def check(evidence: Evidence) -> Iterator[Finding]:
    for waste in wastes(evidence, "idle"):
        message = f"nothing is split along {along(waste)} of the mesh: {waste.devices} devices each do the same"
        fix = f"split the batch or the weights along {along(waste)}, or take a mesh without it"
        yield finding_of(RULE, evidence, waste, message, fix, **_head(evidence))


def _head(evidence: Evidence) -> dict[str, Any]:
    capture = evidence.capture
    return {} if capture is None or not capture.line else span_location(capture.file, Span(capture.line, 0, 0, 0))


RULE = Rule(
    "idle-axis",
    "EX036",
    "warning",
    "Nothing is split along an axis of the mesh: all devices along it do the same.",
    DOCUMENTATION,
    check,
    passive=True,
    compiles=True,
)
