"""The ledger's static picture: a bar for each function, as long as what it cost, with why it compiled again."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.model.text import cut_end
from explorer.model.units import duration_text
from explorer.view.drawing import STEPS, box, canvas, text
from explorer.view.ledger.calls import Call, Group, group_by_family
from explorer.view.ledger.verdict import Verdict, cause_of, flat, times

WIDTH = 960
_ROW = 26
_MOST = 12
_NAME, _BARS = 190, 250  # pixels


def picture(calls: Sequence[Call], verdict: Verdict, invites: bool = False) -> str:
    """The picture as SVG; `invites` says that there is more to see where scripts run."""
    groups = group_by_family(calls)
    parts = [text(16, 28, cut_end(flat(verdict.text), 110), "f" if verdict.kind == "again" else "b")]
    y = 46.0
    if verdict.cause:
        parts.append(text(16, y + 4, cut_end(flat(verdict.cause), 120)))
        y += 22
    if verdict.cure:
        parts.append(text(16, y + 4, cut_end(f"cure: {verdict.cure.splitlines()[0]}", 120), "m"))
        y += 22
    y += 6
    longest = max((group.seconds for group in groups), default=0) or 1
    for group in groups[:_MOST]:
        parts += _row(group, y, longest)
        y += _ROW
    if len(groups) > _MOST:
        rest = groups[_MOST:]
        parts.append(text(16, y + 13, f"and {len(rest):,} more: {duration_text(sum(g.seconds for g in rest))}", "m"))
        y += _ROW
    parts += _key(y + 8, invites)
    return canvas(WIDTH, y + 36, parts)


def _row(group: Group, y: float, longest: float) -> list[str]:
    name = cut_end(group.family.name, 20)
    parts = [text(16, y + 13, name, "b"), text(16 + 7.3 * (len(name) + 1), y + 13, f"×{group.compiles:,}", "m")]
    x = 16.0 + _NAME
    for step, _, colour in STEPS:
        width = _BARS * sum(getattr(call, step) for call in group.calls) / longest
        parts.append(box(x, y + 2, width, 14, colour, 1))
        x += width
    parts.append(text(x + 8, y + 13, duration_text(group.seconds), "m"))
    if cause := flat(cause_of(group)):
        # Beside the bar, which is as long as all of them at most.
        at = 16.0 + _NAME + _BARS + 78
        parts.append(text(at, y + 13, cut_end(cause, int((WIDTH - 16 - at) / 7.3)), "f"))
    return parts


def _key(y: float, invites: bool) -> list[str]:
    parts: list[str] = []
    x = 16.0
    for _, name, colour in STEPS:
        parts += [box(x, y, 12, 10, colour, 2), text(x + 18, y + 9, name, "m")]
        x += 34 + 7.3 * len(name)
    if invites:
        parts.append(text(x + 12, y + 9, "trust the notebook for the interactive view", "m"))
    return parts


def describe_picture(calls: Sequence[Call], verdict: Verdict) -> str:
    """The picture in words."""
    counts = [f"{group.family.name} compiled {times(group.compiles)}" for group in group_by_family(calls)[:_MOST]]
    return ". ".join(filter(None, (flat(verdict.text), flat(verdict.cause), "; ".join(counts))))
