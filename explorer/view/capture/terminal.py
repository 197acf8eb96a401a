"""A capture in a terminal: its stages, and the last one's groups with their share of the kernels."""

from __future__ import annotations

from rich.text import Text
from rich.tree import Tree

from explorer.analysis.cost.kernels import running_nodes
from explorer.model.capture import Capture
from explorer.model.stage import Stage
from explorer.model.units import brief_duration
from explorer.view.capture.group_sizes import TITLES, Part, parts_of, peak_text
from explorer.view.findings.text_parts import summarize_rules
from explorer.view.rich_text import bar

__all__ = ["tree"]

_DEEPEST = 4
_MOST = 8  # groups of one group
_LEAST = 0.01  # share of the whole
_UNITS = {"jaxpr": "equations", "stablehlo": "operations", "before": "instructions", "hlo": "instructions"}


def tree(capture: Capture) -> Tree:
    """What `rich.print(capture)` shows."""
    durations = capture.durations
    total = durations.trace + durations.lower + durations.compile
    known = [brief_duration(total)] if total else []
    known += [f"jax {capture.environment['jax']}"] if "jax" in capture.environment else []
    known += [capture.environment["backend"]] if "backend" in capture.environment else []
    head = Text.assemble((capture.function, "bold"), capture.signature, "  ", (" · ".join(known), "dim"))
    root = Tree(head, guide_style="dim")
    if capture.failure:
        root.add(Text(capture.failure, "yellow"))
    if capture.findings:
        root.add(Text(summarize_rules(capture.findings), "yellow"))
    for stage in capture.stages:
        branch = root.add(_stage(capture, stage))
        if stage is capture.stages[-1]:
            whole = parts_of(stage)
            _grow(branch, whole, whole.size, "kernels" if stage.name == "hlo" else _UNITS.get(stage.name, "nodes"), 1)
    return root


def _stage(capture: Capture, stage: Stage) -> Text:
    title, unit = TITLES.get(stage.name, stage.name), _UNITS.get(stage.name, "nodes")
    label = Text.assemble((title, "bold cyan"), f"  {len(stage.graph):,} {unit}")
    if stage.name == "hlo":
        label.append(f" · {len(running_nodes(stage.graph)):,} kernels")
        label.append(f" · {peak}" if (peak := peak_text(capture)) else "")
    label.append(f" · linked {int(100 * capture.coverage(stage.name))}%", "dim")
    return label


def _grow(branch: Tree, part: Part, whole: int, unit: str, depth: int, times: int = 1) -> None:
    """The parts of a part, in program order; what is small is told together.

    Iterations that are equal are told once: what is in one runs `times` times.
    """
    children = part.children
    if part.repeats:
        children, times = part.children[0].children, times * len(part.children)
    shown = sorted(children, key=lambda child: -child.size)[:_MOST]
    shown = [child for child in shown if child.size * times >= _LEAST * whole]
    others = [child for child in children if child not in shown]
    if len(others) == 1:
        shown, others = children, []
    for child in children if shown else ():
        if child in shown:
            below = branch.add(_label(child, whole, unit, times))
            if depth < _DEEPEST:
                _grow(below, child, whole, unit, depth + 1, times)
    if others and shown:
        branch.add(Text(f"and {len(others):,} more: {_count(sum(child.size for child in others), unit)}", "dim"))


def _label(part: Part, whole: int, unit: str, times: int) -> Text:
    share = part.size * times / max(whole, 1)
    name = f"{part.name} ×{len(part.children)}" if part.repeats else part.name
    count = _count(part.size, unit) + (" each" if times > 1 else "")
    return Text.assemble(name, (f"  {count} ", "dim"), (bar(share), "cyan"), (f" {share:.0%}", "dim"))


def _count(number: int, unit: str) -> str:
    return f"{number:,} {unit.removesuffix('s') if number == 1 else unit}"
