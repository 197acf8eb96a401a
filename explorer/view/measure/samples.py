"""Samples as rows of a table."""

from __future__ import annotations

from collections.abc import Iterable

from explorer.model.results.timing import Samples
from explorer.model.units import duration_text, range_text

SAMPLE_COLUMNS = ("median", "interval", "fastest", "spread", "samples", "calls a sample")


def sample_rows(values: Iterable[tuple[str, Samples]]) -> list[tuple[str, ...]]:
    """A row each: its name, then `SAMPLE_COLUMNS`."""
    return [
        (
            name, duration_text(one.median), _interval(one), duration_text(one.fastest),
            f"±{one.spread * 100:.1f} %", f"{one.count:,}", f"{one.calls:,}",
        )
        for name, one in values
    ]  # fmt: skip


def _interval(samples: Samples) -> str:
    return f"{range_text(samples.low, samples.high)}{', too noisy to tell' * samples.is_too_noisy}"
