"""Diffs as bytes for the viewer: each stage's change in the form of a compiler pass, with the facts."""

from __future__ import annotations

from typing import Any

from explorer.analysis.diff.diff import Diff, Fusion, Value
from explorer.files.container import Blobs, pack
from explorer.files.passes import pack_passes


def encode_diff(diff: Diff) -> bytes:
    """Return everything that the view of a diff shows as bytes."""
    blobs = Blobs()
    kept = [_fusion(diff, old, f"{old.holds} → {new.holds}") for old, new in diff.fusions_changed]
    header = {
        "diff": {
            "titles": [f"{one.function}{one.signature}" for one in (diff.a, diff.b)],
            "headline": diff.headline,
            "functions": [diff.a.function, diff.b.function],
            "values": [_value(value) for value in diff.values],
            "durations": [_value(value) for value in diff.durations],
            "fusions": {
                "gained": [_fusion(diff, one, one.holds) for one in diff.fusions_gained],
                "lost": [_fusion(diff, one, one.holds) for one in diff.fusions_lost],
                "changed": kept,
            },
            "stages": [pack_passes(stage.passes, blobs) for stage in diff.stages.values()],
        }
    }
    return pack(header, blobs)


def _value(value: Value) -> list[Any]:
    return [value.name, value.a, value.b, value.ratio]


def _fusion(diff: Diff, fusion: Fusion, holds: str) -> list[str]:
    return [diff.hlo.name_of(fusion.node), holds, ", ".join(fusion.lines)]
