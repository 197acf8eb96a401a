"""A report of padding in words: how varying sizes are served, what prevents padding, and its cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from explorer.model.results.dynamic_report import DynamicReport, PaddedSizes, PaddingRefusal
from explorer.model.results.sweep import text_table
from explorer.model.text import list_names
from explorer.model.units import count_text, duration_text, share_text

_MAX_NAMED = 3  # refusals in the sentence
_MAX_ROWS = 12  # of sizes, in the text
_GAP = "  "


@dataclass(frozen=True)
class Obstacle:
    """Equations of one line that prevent padding for the same reason: the first, and their number."""

    first: PaddingRefusal
    count: int

    @property
    def reason(self) -> str:
        return self.first.reason.partition("  at  ")[0]

    @property
    def place(self) -> str:
        return self.first.place or self.first.reason.partition("  at  ")[2]

    @property
    def name(self) -> str:
        named = f"`{self.first.primitive}`" if self.first.primitive else self.reason
        return f"{named} at {self.first.place}" if self.first.place else named


def obstacles(report: DynamicReport) -> list[Obstacle]:
    """Return the obstacles to padding in program order; equal refusals of one line are one obstacle.

    Example:
        >>> svd = PaddingRefusal("f32[b] = svd f32[b,b]", "svd", "/m.py", 12, "`svd` has no rule", "", "m.py")
        >>> report = DynamicReport("f", {"b": (1, 8, 64)}, "auto", "specialised", "", (svd, svd))
        >>> [(each.name, each.count) for each in obstacles(report)]
        [('`svd` at m.py, line 12', 2)]
    """
    together: dict[tuple[str, int, str, str], list[PaddingRefusal]] = {}
    for refusal in report.refusals:
        together.setdefault((refusal.file, refusal.line, refusal.primitive, refusal.reason), []).append(refusal)
    return [Obstacle(refusals[0], len(refusals)) for refusals in together.values()]


def headline(report: DynamicReport) -> str:
    """Return in one line how sizes are served and the share of padding, or what prevents padding."""
    if report.verdict == "static":
        return "Static: no size varies"
    if report.verdict == "specialised":
        return f"Specialised: {_not_padded(report)}"
    return "; ".join(["Padded: " + _served(report), *_wasted(report)])


def _not_padded(report: DynamicReport) -> str:
    blocking = obstacles(report)
    if not blocking:
        return report.why
    if not report.refusals[0].equation:
        return blocking[0].name
    count = len(report.refusals)
    names = [each.name for each in blocking[:_MAX_NAMED]]
    if len(blocking) > _MAX_NAMED:
        names.append(f"{len(blocking) - _MAX_NAMED} more")
    return f"{count_text(count, 'equation')} prevent{'s' * (count == 1)} padding: {list_names(names)}"


def _served(report: DynamicReport) -> str:
    padded = sum(binary.is_padded for binary in report.binaries)
    serve = f"{padded:,} binar{'ies serve' if padded != 1 else 'y serves'}"
    # A size of 0 has its own binary, but isn't among the sizes that can be padded.
    own = sum(not binary.is_padded and 0 not in binary.sizes.values() for binary in report.binaries)
    with_own = (
        f", {own:,} of them {'have binaries' if own != 1 else 'has a binary'} of {'their' if own != 1 else 'its'} own"
    )
    count = report.size_count
    sizes = f"all {count:,} sizes" if count > 2 else "both sizes" if count == 2 else "the one size"
    return f"{serve} {sizes}{with_own if own else ''}"


def _wasted(report: DynamicReport) -> list[str]:
    if not report.sizes:
        return ["no call was padded yet"]
    share, what = total_waste(report)
    if not share:
        return [f"no padding in {count_text(report.calls, 'call')}"]
    worst = by_waste(report)[0]
    most = f", most at {sizes_text(worst.sizes)}" if len(report.sizes) > 1 else f" at {sizes_text(worst.sizes)}"
    return [f"{share_text(share)} of the {what} of {count_text(report.calls, 'call')} are padding{most}"]


def total_waste(report: DynamicReport) -> tuple[float, str]:
    """Return the share of padding in all calls, and its measure: FLOPs, or bytes if FLOPs are unknown."""
    wasted = report.wasted_flops
    all_flops = sum(row.calls * (row.padded_flops or 0) for row in report.sizes)
    if wasted is not None and all_flops:
        return wasted / all_flops, "FLOPs"
    all_bytes = sum(row.calls * row.padded_bytes for row in report.sizes)
    return (report.wasted_bytes / all_bytes if all_bytes else 0.0), "bytes"


def waste_of(row: PaddedSizes, what: str) -> float:
    return row.waste if what == "FLOPs" else row.wasted_bytes / row.padded_bytes if row.padded_bytes else 0.0


def by_waste(report: DynamicReport) -> list[PaddedSizes]:
    """Return the sizes by waste in all their calls, largest first."""
    has_flops = total_waste(report)[1] == "FLOPs"
    wasted = [row.calls * ((row.wasted_flops or 0.0) if has_flops else row.wasted_bytes) for row in report.sizes]
    return [report.sizes[at] for at in sorted(range(len(wasted)), key=lambda at: -wasted[at])]


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Return sizes as text: `batch = 37, seq = 50`."""
    return ", ".join(f"{name} = {size:,}" for name, size in sizes.items())


def bucket_text(sizes: Mapping[str, int]) -> str:
    """Return the sizes of a bucket as text: `64 × 64`."""
    return " × ".join(f"{size:,}" for size in sizes.values())


def dimensions_text(report: DynamicReport) -> str:
    """Return the ranges of the named dimensions as text: `batch = 1 … 64, seq = 16`."""
    return ", ".join(
        f"{name} = {least:,}" + f" … {most:,}" * (most > least) for name, (least, _, most) in report.dimensions.items()
    )


def facts(report: DynamicReport) -> Iterator[tuple[str, str]]:
    """Yield (name, text) rows of the report: ranges of dimensions, how sizes are served, and sizes being compiled."""
    if report.dimensions:
        yield "can be", dimensions_text(report)
    if report.verdict == "padded":
        yield from _proof(report)
    elif report.refusals:
        yield "served by", "a binary for each size, compiled at its first call"
    if report.waiting:
        yield "on its way", "; ".join(sizes_text(sizes) for sizes in report.waiting)


def _proof(report: DynamicReport) -> Iterator[tuple[str, str]]:
    rules = report.rules or {}
    equations = count_text(sum(rules.values()), "equation")
    keep = f"{count_text(report.masks, 'mask')} keep{'s' * (report.masks == 1)} padding out of results"
    proven = f"all {equations}" if sum(rules.values()) > 1 else equations
    yield "proven", f"{proven} of padded arrays; {keep if report.masks else 'no mask is needed'}"
    yield "rules", ", ".join(f"{name} {count:,}" for name, count in sorted(rules.items(), key=lambda rule: -rule[1]))
    buckets = (report.buckets or {}).items()
    yield "buckets", "; ".join(f"{name} {', '.join(map(str, sizes))}" for name, sizes in buckets)


def binary_rows(report: DynamicReport) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [("binary", "serves", "calls", "compiled in", "why")]
    for row in report.binaries:
        reason = row.reason.removeprefix("padded, ").partition("  at  ")[0]
        reason += ", in the background" * (row.is_background and "background" not in reason)
        serves = "up to that" if row.is_padded else "that size"
        calls = "not counted" if row.calls is None else f"{row.calls:,}"
        rows.append((sizes_text(row.sizes) or "the only one", serves, calls, duration_text(row.seconds), reason))
    return rows


def size_rows(report: DynamicReport, rows: Sequence[PaddedSizes]) -> list[tuple[str, ...]]:
    has_flops = total_waste(report)[1] == "FLOPs"
    head = ("size", "in the bucket", "calls", "a call took")
    shares = ("padding, of the FLOPs", "of the bytes") if has_flops else ("padding, of the bytes",)
    table: list[tuple[str, ...]] = [(*head, *shares)]
    for row in rows:
        wastes = [share_text(waste_of(row, what)) for what in (("FLOPs", "bytes") if has_flops else ("bytes",))]
        took = duration_text(row.median_seconds)
        table.append((sizes_text(row.sizes), bucket_text(row.bucket), f"{row.calls:,}", took, *wastes))
    return table


def report_text(report: DynamicReport) -> str:
    lines = [f"DynamicReport({report.function}: {headline(report)})"]
    lines += [f"{_GAP}{name.ljust(9)} {text}" for name, text in facts(report)]
    for obstacle in obstacles(report):
        lines += _obstacle_lines(obstacle)
    if report.binaries:
        lines += text_table(binary_rows(report))
    if report.sizes:
        worst = by_waste(report)
        lines += text_table(size_rows(report, worst[:_MAX_ROWS]))
        if len(worst) > _MAX_ROWS:
            lines.append(f"{_GAP}… and {count_text(len(worst) - _MAX_ROWS, 'size')} that waste less")
    return "\n".join([*lines, *(f"{_GAP}fault: {fault}" for fault in report.faults)])


def _obstacle_lines(obstacle: Obstacle) -> Iterator[str]:
    first = obstacle.first
    times = f" ({obstacle.count:,} equations)" if obstacle.count > 1 else ""
    yield f"{_GAP}{obstacle.reason}{times}"
    rows = (
        ("at", obstacle.place + (f":   {first.text}" if first.text else "")),
        ("equation", first.equation),
        ("fix", first.hint),
    )
    yield from (f"{_GAP * 2}{name.ljust(9)} {text}" for name, text in rows if text)
