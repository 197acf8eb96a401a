"""An array that was split is gathered whole on each device, though parts would do."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.analysis.sharding.program import Waste
from explorer.model.findings.finding import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.sharded import DOCUMENTATION, along, argument_path, constraint, finding_of, lines_of, wastes


def check(evidence: Evidence) -> Iterator[Finding]:
    for waste in wastes(evidence, "repeated", "contracted", "gathered"):
        message, fix = _TEXTS[waste.kind](evidence, waste)
        yield finding_of(RULE, evidence, waste, message, fix)


def _repeated(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    lines = lines_of(evidence, waste)
    of = f" of {lines}" if lines else ""
    return (
        f"an array that is split along {along(waste)} is gathered whole here, and each of the {waste.devices} devices "
        f"then computes the same products{of}",
        _keep(waste),
    )


def _contracted(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    weight = argument_path(evidence, waste.number)
    what = f"`{weight}`" if weight else "the other operand"
    return (
        f"an operand of this product is gathered whole along {along(waste)}, because {what} is split along its other "
        "dimension",
        f"give {what} the sharding {waste.spec}: each device then sums over its part, and the sums are added"
        if waste.spec
        else f"split {what} along the dimension that is summed over",
    )


def _gathered(evidence: Evidence, waste: Waste) -> tuple[str, str]:
    op = waste.node.scope.rpartition("/")[2] if waste.node is not None else ""
    what = f" for `{op}`" if op else ""
    return f"an array that is split along {along(waste)} is gathered whole on each device{what}", (
        f"{_keep(waste)}; or split another dimension before this line, of which each part can be computed by itself"
    )


def _keep(waste: Waste) -> str:
    request = constraint(waste.spec)
    return (
        f"keep it split: {request} on what this line gives"
        if request
        else "keep it split by a sharding constraint here"
    )


_TEXTS = {"repeated": _repeated, "contracted": _contracted, "gathered": _gathered}

RULE = Rule(
    "gathered-operand",
    "EX033",
    "warning",
    "An array that is split over devices is gathered whole on each of them, though parts would do.",
    DOCUMENTATION,
    check,
    passive=True,
    compiles=True,
)
