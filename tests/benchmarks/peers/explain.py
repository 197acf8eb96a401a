"""What the table says in words: each sentence is there only if the figures bear it out."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.benchmarks.peers.figures import OURS, TUNED, ratio
from tests.benchmarks.peers.units import seconds, times

__all__ = ["sentences"]

_LITTLE = 0.8  # of eager's time: a compile that saves less is worth a reason
_WHY_LITTLE = {
    "matmul-relu": "the product is nearly all of the work, and the same either way",
    "matmul-relu-sum": "the product is most of the work, and the same either way",
    "copy-large": "there is nothing to fuse",
    "add": "there is nothing to fuse, only the call",
}
_OTHERS = ("jax", "torch.compile", "mlx.compile")
_TUNED = (
    "*Tuned* is, for torch, `max-autotune`; for Explorer, `optimization_level=4` in a process with JAX's option "
    "`jax_cpu_enable_async_dispatch` off: JAX hands a call of a thousand operations or more to another thread, "
    "which costs more than it gains where each result is waited for, as here."
)
_FIRST = (
    "A *first call* is that of a fresh process after `import`, with no compiled code on disk: what is imported late, "
    "traced, compiled and run."
)


def sentences(figures: Mapping[str, Any]) -> Iterator[str]:
    """Markdown, line by line."""
    rows = {row["name"]: row for row in figures["workloads"]}
    yield (
        "Bold: the fastest, and every time whose interval overlaps it. "
        "Every result was first compared with NumPy's in float64."
    )
    if any(TUNED in row["seconds"] for row in rows.values()):
        yield _TUNED
    if any(name.startswith("first-") for name in rows):
        yield _FIRST
    for paragraph in (_gelu(rows), [*_floor(rows), *_overhead(rows), *_little(rows)], _missing(figures)):
        lines = list(paragraph)
        if lines:
            yield from ("", *lines)


def _gelu(rows: Mapping[str, Any]) -> Iterator[str]:
    """How much compiling gains on the function that MLX's guide shows, and against others who compile it: a table."""
    lines = [
        f"| gelu {row['size']}{', tuned' if ours == TUNED else ''} | {' | '.join(_longer(row, ours, _OTHERS))} |"
        for row in rows.values()
        if row["name"].startswith("gelu")
        for ours in (OURS, TUNED)
        if ours in row["seconds"]
    ]
    if lines:
        yield f"| how many times as long as `{OURS}` | JAX, eager | `torch.compile` | `mlx.compile` |"
        yield f"|---|{'---:|' * len(_OTHERS)}"
        yield from lines


def _longer(row: Mapping[str, Any], ours: str, others: tuple[str, ...]) -> Iterator[str]:
    """`3.4× (3.1×–3.6×)`: how many times as long each of the others takes, and where that lies at 95 %."""
    for other in others:
        found = ratio(row, ours, other)
        yield f"{times(1 / found[0])} ({times(1 / found[2])}–{times(1 / found[1])})" if found else "–"


def _floor(rows: Mapping[str, Any]) -> Iterator[str]:
    """What no gelu can be faster than: a copy, whose output is as new."""
    copy, gelu = rows.get("copy-large"), rows.get("gelu-large")
    if not copy or not gelu or OURS not in gelu["seconds"] or not copy["seconds"]:
        return
    least, by = min((one["median"], name) for name, one in copy["seconds"].items())
    longer = gelu["seconds"][OURS]["median"] / least
    yield f"The large gelu takes {times(longer)} as long as the fastest copy to new memory, `{by}`'s {seconds(least)}."
    if longer < 1.5:
        yield "Memory is its limit: at each call the system allocates the output again, page by page."


def _overhead(rows: Mapping[str, Any]) -> Iterator[str]:
    """What a call costs that computes nearly nothing."""
    row = rows.get("add")
    if row and OURS in row["seconds"]:
        known = [one for one in (OURS, *_OTHERS[1:]) if one in row["seconds"]]
        told = (f"{seconds(row['seconds'][one]['median'])} by `{one}`" for one in known)
        yield f"A call of nearly nothing takes {', '.join(told)}."


def _little(rows: Mapping[str, Any]) -> Iterator[str]:
    """Where compiling gains little, and why."""
    for name, why in _WHY_LITTLE.items():
        found = ratio(rows[name], OURS, "jax") if name in rows else None
        if found and found[0] > _LITTLE:
            yield f"Compiled, *{rows[name]['title']}* takes {times(found[0])} of eager's time: {why}."


def _missing(figures: Mapping[str, Any]) -> Iterator[str]:
    """What was left out, so that no gap in the table goes without its reason."""
    for library, why in figures["skipped"].items():
        yield f"Left out: {library}, because {why}."
    for row in figures["workloads"]:
        for variant, why in row["failed"].items():
            yield f"`{variant}` failed at *{row['title']}, {row['size']}*: {why}."
    if any("copy" in row["name"] and "mlx" not in row["seconds"] for row in figures["workloads"]):
        yield "`mlx` has no copy on a CPU that would not also compute."
