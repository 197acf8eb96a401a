"""The profile in a terminal: the headline, then the lines and the kernels with their time."""

from __future__ import annotations

from rich.console import Group as Stacked
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from explorer.model.results.profile import Profile
from explorer.model.text import bar
from explorer.model.units import duration_text, fine_share_text
from explorer.view.measure.profile.picture import Sentence, headline, labels_of

_LINES, _KERNELS = 16, 8


def tree(profile: Profile) -> RenderableType:
    """Return the profile as `rich.print(profile)` shows it."""
    top = headline(profile)
    parts: list[RenderableType] = [_styled(top.text, "bold")]
    if top.waits:
        parts.append(_styled(top.waits, "yellow"))
    parts.append(Text(" · ".join(top.facts), "dim"))
    if profile.lines:
        parts += [Text(""), _lines(profile)]
    if profile.ops:
        parts += [Text(""), _kernels(profile)]
    parts += [Text(note, "dim") for note in profile.notes]
    return Stacked(*parts)


def _lines(profile: Profile) -> Table:
    table, labels = _table("line", "source"), labels_of(profile)
    for line in profile.lines[:_LINES]:
        place = f"{labels[line.file]}:{line.line}" if len(labels) > 1 else str(line.line)
        table.add_row(*_times(line.seconds, line.share), Text(place, "dim"), line.text)
    rest = profile.lines[_LINES:]
    if rest:
        table.add_row(duration_text(sum(line.seconds for line in rest)), "", "", "", Text(f"{len(rest):,} more", "dim"))
    if profile.unattributed > 0:
        share = profile.unattributed / (profile.device_seconds or 1.0)
        table.add_row(*_times(profile.unattributed, share), "", Text("no line is known", "dim"))
    return table


def _kernels(profile: Profile) -> Table:
    table = _table("operation", "kernel")
    for op in profile.ops[:_KERNELS]:
        runs = f"  ×{op.count:,.0f}" if op.count > 1 else ""
        table.add_row(
            *_times(op.seconds, op.share), Text(op.computes or op.op, "dim"), Text.assemble(op.name, (runs, "dim"))
        )
    rest = profile.ops[_KERNELS:]
    if rest:
        table.add_row(duration_text(sum(op.seconds for op in rest)), "", "", "", Text(f"{len(rest):,} more", "dim"))
    return table


def _table(place: str, what: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("time", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True, min_width=12)
    table.add_column(place, justify="right", no_wrap=True)
    table.add_column(what, ratio=1, no_wrap=True, overflow="ellipsis")
    return table


def _times(seconds: float, share: float) -> tuple[str, str, Text]:
    return duration_text(seconds), fine_share_text(share), Text(bar(share), "dark_orange")


def _styled(sentence: Sentence, style: str) -> Text:
    return Text.assemble(*((text, f"{style} cyan".strip() if is_code else style) for text, is_code in sentence))
