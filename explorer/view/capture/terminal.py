"""Tree of a capture for a terminal: its stages, and the groups of the last stage with their share of the cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text
from rich.tree import Tree

from explorer.model.capture import Capture
from explorer.model.text import bar
from explorer.model.units import duration_text, share_text
from explorer.view.capture.summary import Part, StageSummary, summarize

_DEEPEST = 4
_MOST = 8  # groups of one group
_LEAST = 0.01  # share of the cost


def tree(capture: Capture) -> Tree:
    """Return the tree that `rich.print(capture)` shows."""
    summary, total = summarize(capture), sum(capture.durations.done.values())
    environment = [duration_text(total)] if total else []
    environment += ["compiled before"] * ("compile" in capture.durations.reused)
    environment += [f"jax {capture.environment['jax']}"] if "jax" in capture.environment else []
    environment += [capture.environment["backend"]] if "backend" in capture.environment else []
    head = Text.assemble((capture.function, "bold"), capture.signature, "  ", (" · ".join(environment), "dim"))
    if capture.summary:
        head.append(f"\n{capture.summary}")
    root = Tree(head, guide_style="dim")
    for warning in summary.notes:
        root.add(Text(warning, "yellow"))
    branches = [root.add(_stage(stage, summary.peak)) for stage in summary.stages]
    if summary.groups is not None:
        last = summary.stages[-1]
        of = _Whole(summary.groups.cost, summary.measure, last.unit if last.kernels is None else "kernels")
        _grow(branches[-1], summary.groups, of, 1)
        for limit in summary.limits:
            branches[-1].add(Text(limit, "yellow"))
    return root


def _stage(stage: StageSummary, peak: str) -> Text:
    label = Text.assemble((stage.title, "bold cyan"), f"  {stage.nodes:,} {stage.unit}")
    if stage.kernels is not None:
        label.append(f" · {_count(stage.kernels, 'kernels')}" + (f" · {peak}" if peak else ""))
    label.append(f" · {stage.lines} with a source line", "dim")
    if stage.links:
        label.append(f" · source mapping {stage.links}", "dim")
    return label


class _Whole(NamedTuple):
    """Total cost, its measure, and the unit in which the size of a part is counted."""

    cost: float
    measure: str
    unit: str

    def share(self, cost: float) -> float:
        return cost / self.cost if self.cost else 0.0


def _grow(branch: Tree, part: Part, whole: _Whole, depth: int, times: int = 1) -> None:
    """Add the children of `part` in program order; small children are summed in one row.

    Of a repeated part, one iteration is shown; its contents run `times` times.
    """
    children = part.children
    if part.repeats:
        children, times = part.usual.children, times * len(part.children)
    large = _large(children, times, _LEAST * whole.cost)
    if not large:
        return
    for child in large:
        below = branch.add(_label(child, whole, times))
        if depth < _DEEPEST:
            _grow(below, child, whole, depth + 1, times)
    small = len(children) - len(large)
    if small:
        size = sum(child.size for child in children) - sum(child.size for child in large)
        branch.add(Text(f"and {small:,} more: {_count(size, whole.unit)}", "dim"))


def _large(parts: Sequence[Part], times: int, least: float) -> Sequence[Part]:
    """Return at most `_MOST` parts whose cost is at least `least`, in program order; all if that leaves out one."""
    indices = sorted(range(len(parts)), key=lambda i: -parts[i].cost)[:_MOST]
    large = [parts[i] for i in sorted(indices) if parts[i].cost * times >= least]
    return parts if len(parts) - len(large) == 1 else large  # "and 1 more" would take the same line


def _label(part: Part, whole: _Whole, times: int) -> Text:
    share = whole.share(part.cost * times)
    name = f"{part.name} ×{len(part.children)}" if part.repeats else part.name
    count = _count(part.size, whole.unit) + (" each" if times > 1 else "")
    of = f" {share_text(share)} of {whole.measure}"
    return Text.assemble(name, (f"  {count} ", "dim"), (bar(share), "cyan"), (of, "dim"))


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"
