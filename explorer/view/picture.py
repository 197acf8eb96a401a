"""The static picture: what runs, by phase and function, where no script can show more.

An icicle: each row is a level of calls, each width the number of kernels (of operations, before HLO) below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from explorer.model.capture import Capture, Stage
from explorer.model.graph import Graph, Group
from explorer.model.hierarchy import nest

__all__ = ["picture", "summary"]

_WIDTH = 960
_ROW = 30
_LEVELS = 5
_COLOURS = ("#0068a3", "#c25200", "#00805f", "#a8457f", "#7d6100", "#5b50b8")
_TITLES = {"jaxpr": "jaxpr", "stablehlo": "StableHLO", "hlo": "HLO"}
# Plumbing that runs no kernel of its own.
_NO_KERNEL = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast"),
    *("while", "conditional", "call", "after-all", "opt-barrier"),
}
_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1d2129}.m{fill:#656d78}.w{fill:#fff}"
    ".f{fill:#b45309;font-weight:600}.b{font-weight:600}"
)


@dataclass
class _Part:
    """One group of the picture and how much runs in it."""

    name: str
    order: float  # where it stands among its siblings
    size: int = 0
    children: list[_Part] = field(default_factory=list["_Part"])


def summary(capture: Capture) -> list[tuple[str, ...]]:
    """The same as a table: a head, the stages, then the groups of the last stage, outermost first."""
    rows: list[tuple[str, ...]] = [("what", "nodes", "kernels", "linked to a line")]
    for stage in capture.stages:
        kernels = f"{len(_running(stage.graph)):,}" if stage.name == "hlo" else ""
        linked = f"{int(100 * capture.coverage(stage.name))}%"  # not rounded up: 100% is all
        rows.append((_TITLES.get(stage.name, stage.name), f"{len(stage.graph):,}", kernels, linked))
    if capture.stages:
        root = _parts(capture.stages[-1])
        rows += [(name, "", f"{size:,}", "") for name, size in _flat(root, 0)]
    return rows


def _flat(part: _Part, depth: int) -> list[tuple[str, int]]:
    rows: list[tuple[str, int]] = []
    for child in part.children:
        rows.append(("\u2003" * (depth + 1) + child.name, child.size))
        if depth < _LEVELS:
            rows += _flat(child, depth + 1)
    return rows


def picture(capture: Capture) -> str:
    """The picture as SVG, on its own light ground so that it reads on any page."""
    parts: list[str] = []
    parts.append(_text(16, 26, capture.function, "b"))
    parts.append(_text(16 + 7.3 * len(capture.function), 26, _cut(capture.signature, 70), "m"))
    x = 16.0
    for stage in capture.stages:
        kernels = f" · {len(_running(stage.graph)):,} kernels" if stage.name == "hlo" else ""
        label = f"{_TITLES.get(stage.name, stage.name)} {len(stage.graph):,}{kernels}"
        width = 7.3 * len(label) + 20
        last = stage is capture.stages[-1]
        parts.append(_box(x, 40, width, 24, "#0b62c4" if last else "#eef0f2"))
        parts.append(_text(x + 10, 56, label, "w" if last else ""))
        x += width + 8
    if capture.failure:
        parts.append(_text(x, 56, capture.failure, "f"))
    y = 80
    if capture.stages:
        root = _parts(capture.stages[-1])
        levels = min(_depth(root), _LEVELS)
        _icicle(root, 16, _WIDTH - 32, y, levels, parts, 0)
        y += levels * _ROW
    y += 12
    parts += _times(capture, y)
    height = y + 34
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}">'
        f'<style>{_STYLE}</style><rect x=".5" y=".5" width="{_WIDTH - 1}" height="{height - 1}" rx="8" fill="#fff" '
        f'stroke="#e4e5e7"/>{"".join(parts)}</svg>'
    )


def _times(capture: Capture, y: float) -> list[str]:
    durations = capture.durations
    steps = (
        ("trace", durations.trace, "#2f8f6d"),
        ("lower", durations.lower, "#7c5cbf"),
        ("XLA", durations.compile, "#3d6ea8"),
    )
    total = sum(seconds for _, seconds, _ in steps) or 1
    parts: list[str] = []
    x = 16.0
    for name, seconds, colour in steps:
        width = max(300 * seconds / total, 2)
        parts.append(_box(x, y, width, 16, colour, 2))
        if width > 80:
            parts.append(_text(x + 6, y + 12.5, f"{name} {_seconds(seconds)}", "w"))
        x += width
    known = capture.environment
    note = f"jax {known.get('jax', '?')} · {known.get('backend', '?')}"
    note += "" if capture.failure else " · run the cell to explore it"
    parts.append(_text(x + 14, y + 12.5, note, "m"))
    return parts


def _seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _running(graph: Graph) -> Sequence[int]:
    """The nodes that run as kernels of their own: neither inside one, nor plumbing."""
    plumbing = {code for code, op in enumerate(graph.ops) if op in _NO_KERNEL}
    inside = {i for i, group in enumerate(graph.groups) if group.kind in ("fusion", "apply")}
    return [
        i
        for i, (op, group) in enumerate(zip(graph.op.tolist(), graph.group.tolist(), strict=True))
        if op not in plumbing and group not in inside
    ]


def _parts(stage: Stage) -> _Part:
    """The stage's groups, in program order, with what runs in each."""
    graph, tree = stage.graph, nest(stage.graph)
    counted = _running(graph) if stage.name == "hlo" else range(len(graph))
    nodes: list[list[int]] = [[] for _ in tree.groups]
    for node in counted:
        at = int(tree.group[node])
        while at >= 0:
            nodes[at].append(node)
            at = tree.groups[at].parent
    root = _Part("", 0, len(counted))
    parts = [
        _Part(group.name, _order(group, inside), len(inside)) for group, inside in zip(tree.groups, nodes, strict=True)
    ]
    for group, part in zip(tree.groups, parts, strict=True):
        if part.size and group.kind not in ("fusion", "apply", "inputs"):
            (parts[group.parent] if group.parent >= 0 else root).children.append(part)
    for part in (root, *parts):
        part.children.sort(key=lambda child: child.order)
    return root


def _order(group: Group, nodes: Sequence[int]) -> float:
    """A schedule mixes groups, so the middle of their nodes counts; phases have an order of their own."""
    if group.kind == "phase":
        return ("forward", "backward", "update").index(group.name.partition(" ")[0]) - 3
    return sum(nodes) / len(nodes) if nodes else 0


def _depth(part: _Part) -> int:
    return max((1 + _depth(child) for child in part.children), default=0)


def _icicle(part: _Part, x: float, width: float, y: float, levels: int, out: list[str], colour: int) -> None:
    if not levels or not part.size:
        return
    for number, child in enumerate(part.children):
        share = width * child.size / part.size
        # A part keeps its colour all the way down; the top level takes one each.
        own = (colour + number) % len(_COLOURS)
        if share >= 2:
            out.append(_box(x, y, share - 1.5, _ROW - 2, _COLOURS[own], 4, 0.16))
            label = _cut(child.name, int((share - 14) / 7.3))
            if len(label) > 2:
                out.append(_text(x + 7, y + 18.5, label, "b"))
                rest = int((share - 24) / 7.3) - len(label)
                if rest > len(f"{child.size:,}"):
                    out.append(_text(x + 14 + 7.3 * len(label), y + 18.5, f"{child.size:,}", "m"))
            _icicle(child, x, share, y + _ROW, levels - 1, out, own)
        x += share


def _box(x: float, y: float, width: float, height: float, fill: str, radius: float = 5, opacity: float = 1) -> str:
    faint = f' fill-opacity="{opacity}" stroke="{fill}" stroke-opacity=".5"' if opacity < 1 else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" rx="{radius}" fill="{fill}"{faint}/>'


def _text(x: float, y: float, content: str, kind: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}">{escape(content)}</text>'


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: max(longest - 1, 0)] + "…"
