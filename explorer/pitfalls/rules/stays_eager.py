"""A function that hot paths met and leave as it is written: what keeps it from being compiled."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from explorer.capture.hot_functions import hot_status
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.units import count_text, duration_text
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.rule import Rule


def check(evidence: Evidence) -> Iterator[Finding]:
    status = None if evidence.is_jitted else hot_status(evidence.function)
    if status is None or not status.row.reason:
        return
    row = status.row
    file, line = (row.reason_file, row.reason_line) if row.reason_line else (row.file, row.line)
    cost = f", {duration_text(row.eager_seconds)} each" if isfinite(row.eager_seconds) else ""
    yield RULE.finding(
        f"hot paths leave {evidence.name} as it is written: {row.reason}",
        evidence=f"it was called {count_text(row.eager_calls, 'time')} at top level until that was known{cost}",
        fix=row.cure,
        **span_location(file, Span(line, 0, line, 0)),
    )


RULE = Rule(
    "stays-eager",
    "EX032",
    "note",
    "Hot paths compile what only computes; this function does something else, or wasn't worth it.",
    "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#pure-functions",
    check,
)
