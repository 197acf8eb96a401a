"""A capture in a terminal: its stages, and the last one's groups with their share of the kernels."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from rich.tree import Tree

from explorer.model.capture import Capture
from explorer.model.units import duration_text
from explorer.view.capture.summary import Part, StageSummary, summarize
from explorer.view.rich_text import bar

_DEEPEST = 4
_MOST = 8  # groups of one group
_LEAST = 0.01  # share of the whole


def tree(capture: Capture) -> Tree:
    """What `rich.print(capture)` shows."""
    summary, durations = summarize(capture), capture.durations
    total = durations.trace + durations.lower + durations.compile
    environment = [duration_text(total)] if total else []
    environment += [f"jax {capture.environment['jax']}"] if "jax" in capture.environment else []
    environment += [capture.environment["backend"]] if "backend" in capture.environment else []
    head = Text.assemble((capture.function, "bold"), capture.signature, "  ", (" · ".join(environment), "dim"))
    root = Tree(head, guide_style="dim")
    for warning in filter(None, (capture.failure, summary.findings)):
        root.add(Text(warning, "yellow"))
    branches = [root.add(_stage(stage, summary.peak)) for stage in summary.stages]
    if summary.groups is not None:
        last = summary.stages[-1]
        _grow(branches[-1], summary.groups, summary.groups.size, last.unit if last.kernels is None else "kernels", 1)
    return root


def _stage(stage: StageSummary, peak: str) -> Text:
    label = Text.assemble((stage.title, "bold cyan"), f"  {stage.nodes:,} {stage.unit}")
    if stage.kernels is not None:
        label.append(f" · {stage.kernels:,} kernels" + (f" · {peak}" if peak else ""))
    label.append(f" · linked {stage.linked}", "dim")
    return label


def _grow(branch: Tree, part: Part, whole: int, unit: str, depth: int, times: int = 1) -> None:
    """The parts of a part, in program order; what is small is counted together.

    Iterations that are equal are shown once: what is in one runs `times` times.
    """
    children = part.children
    if part.repeats:
        children, times = part.children[0].children, times * len(part.children)
    large = _large(children, times, _LEAST * whole)
    if not large:
        return
    for child in large:
        below = branch.add(_label(child, whole, unit, times))
        if depth < _DEEPEST:
            _grow(below, child, whole, unit, depth + 1, times)
    small = len(children) - len(large)
    if small:
        size = sum(child.size for child in children) - sum(child.size for child in large)
        branch.add(Text(f"and {small:,} more: {_count(size, unit)}", "dim"))


def _large(parts: Sequence[Part], times: int, least: float) -> Sequence[Part]:
    """The largest parts, in program order; all of them if only one would be left out, as a line says that too."""
    indices = sorted(range(len(parts)), key=lambda i: -parts[i].size)[:_MOST]
    large = [parts[i] for i in sorted(indices) if parts[i].size * times >= least]
    return parts if len(parts) - len(large) == 1 else large


def _label(part: Part, whole: int, unit: str, times: int) -> Text:
    share = part.size * times / max(whole, 1)
    name = f"{part.name} ×{len(part.children)}" if part.repeats else part.name
    count = _count(part.size, unit) + (" each" if times > 1 else "")
    return Text.assemble(name, (f"  {count} ", "dim"), (bar(share), "cyan"), (f" {share:.0%}", "dim"))


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"
