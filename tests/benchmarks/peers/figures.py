"""From samples to what is told: medians with their intervals, ratios within a round; as plain data."""

from collections.abc import Mapping, Sequence
from typing import Any

from explorer.model.results.statistics import ratio_interval
from explorer.model.results.timing import Samples
from tests.benchmarks.peers.driver import Measured

__all__ = ["FIELDS", "OURS", "RATIOS", "TUNED", "first_call", "ratio", "workload"]

OURS, TUNED = "ex.compile", "ex.compile, tuned"
FIELDS = (
    *("jax", "jax.jit", "ex.jit", OURS, TUNED),
    *("torch", "torch.compile", "torch.compile, tuned", "mlx", "mlx.compile"),
)
_EAGER = ("jax", "torch", "mlx")
RATIOS = (
    *((OURS, other) for other in FIELDS if other not in (OURS, TUNED)),
    *((TUNED, other) for other in FIELDS if other != TUNED),
    ("torch.compile", "torch"),
    ("mlx.compile", "mlx"),
)


def workload(found: Measured) -> dict[str, Any]:
    """One workload's figures: seconds of a call for each variant, and each ratio of two of them, compared per round."""
    told = _figures(found)
    for variant, one in told["seconds"].items():
        one |= {"calls": found.calls[variant], "error": _short(found.errors[variant])}
    return told


def first_call(found: Measured) -> dict[str, Any]:
    """The same of first calls; each sample is a process."""
    told = _figures(found)
    return told | {"name": f"first-{told['name']}", "title": f"first call: {told['title']}"}


def ratio(figures: Mapping[str, Any], one: str, other: str) -> tuple[float, float, float] | None:
    """`(ratio, low, high)` of a workload's figures, if both were measured."""
    found = figures["ratios"].get(f"{one} / {other}")
    return (found["median"], *found["interval"]) if found else None


def _figures(found: Measured) -> dict[str, Any]:
    samples = {variant: found.samples[variant] for variant in FIELDS if found.samples.get(variant)}
    return {
        "name": found.workload.name,
        "title": found.workload.title,
        "size": found.workload.size,
        "seconds": {variant: _told(taken) for variant, taken in samples.items()},
        "ratios": _ratios(samples),
        "failed": found.failed,
    }


def _ratios(samples: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one, other in RATIOS:
        if one in samples and other in samples:
            middle, low, high = ratio_interval(samples[one], samples[other])
            found[f"{one} / {other}"] = {"median": _short(middle), "interval": [_short(low), _short(high)]}
    return found


def _told(taken: Sequence[float]) -> dict[str, Any]:
    samples = Samples(tuple(taken))
    return {
        "median": _short(samples.median),
        "interval": [_short(one) for one in samples.interval],
        "samples": [_short(one) for one in taken],
    }


def _short(value: float) -> float:
    """Four digits: more would be noise, and a JSON file that nobody can read."""
    return float(f"{value:.4g}")
