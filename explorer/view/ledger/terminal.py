"""The ledger in a terminal: the verdict and the fix first, then each function with its cost and reasons."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group as Stacked
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from explorer.model.events.family_counts import Prediction
from explorer.model.events.ledger import Ledger
from explorer.model.text import bar
from explorer.model.units import duration_text
from explorer.view.ledger.calls import Call, Group, Phrase, calls_of, cause_of, group_by_family, verdict_of
from explorer.view.ledger.message import notes_of

_FUNCTIONS = 20
_FORESEEN = 6
_COMPILES = 6  # of one function: the first ones, and the last


def tree(ledger: Ledger) -> RenderableType:
    """Return the ledger as `rich.print(ledger)` shows it."""
    calls = calls_of(ledger.events)
    groups = group_by_family(calls)
    verdict = verdict_of(calls)
    is_storm = any(storm.function == verdict.function for storm in ledger.storms)
    badge = Text("RECOMPILE STORM  ", "bold red") if is_storm else Text("")
    parts: list[RenderableType] = [badge + _styled(verdict.text, "bold")]
    if verdict.cause:
        parts.append(Padding(_styled(verdict.cause), (0, 0, 0, 2)))
    if verdict.cure:
        parts.append(Padding(Text(f"fix: {verdict.cure}", "green"), (0, 0, 0, 2)))
    if groups:
        parts += [Text(""), _functions(groups)]
    rest = groups[_FUNCTIONS:]
    if rest:
        parts.append(Text(f"and {len(rest):,} more: {duration_text(sum(group.seconds for group in rest))}", "dim"))
    parts += [_prediction_text(prediction) for prediction in ledger.predictions[:_FORESEEN]]
    parts += [Text(note, "dim") for note in notes_of(ledger)]
    return Stacked(*parts)


def _prediction_text(prediction: Prediction) -> Text:
    if prediction.came_true:
        return Text.assemble(
            ("predicted, and happened: ", "magenta"), prediction.text, (f"  {prediction.came_true}", "dim")
        )
    return Text.assemble(
        ("predicted: ", "magenta"), prediction.text, (f"\n  fix: {prediction.fix}" if prediction.fix else "", "green")
    )


def _functions(groups: Sequence[Group]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for title, justify in (("function", "left"), ("compiles", "right"), ("seconds", "right")):
        table.add_column(title, justify=justify, no_wrap=title != "function")  # pyright: ignore[reportArgumentType]
    table.add_column("share", no_wrap=True)
    table.add_column("why again", ratio=1)
    table.add_column("where")
    whole = sum(group.seconds for group in groups) or 1
    for group in groups[:_FUNCTIONS]:
        share = group.seconds / whole
        shown = Text.assemble((bar(share), "cyan"), (f" {share:.0%}", "dim"))
        place = next((str(call.place) for call in group.calls if call.place), "")
        name = Text(group.family.name, "bold" if group.reasons else "")
        why = _styled(cause_of(group)) if group.reasons else Text("")
        cells = (name, f"{group.compiles:,}", duration_text(group.seconds), shown, why, Text(place, "dim"))
        table.add_row(*cells)
        for line in _compiles(group):
            table.add_row("", "", "", "", line, "")
    return table


def _compiles(group: Group) -> list[Text]:
    """Return lines on what changed in recompiles, at most the first six and the last; empty for fewer than two."""
    calls = [call for call in group.calls if call.is_again and call.reason.leaf]
    if len(calls) <= 1:
        return []
    shown = [_compile(call) for call in calls[:_COMPILES]]
    left = len(calls) - len(shown) - 1
    if left > 0:
        shown.append(Text(f"… {left:,} more", "dim"))
    if left >= 0:
        shown.append(_compile(calls[-1]))
    return shown


def _compile(call: Call) -> Text:
    reason = call.reason
    return Text.assemble(
        (f"{call.id} " if call.id else "", "dim"), ": ".join(filter(None, (reason.leaf, reason.change)))
    )


def _styled(phrase: Phrase, style: str = "") -> Text:
    return Text.assemble(*((text, f"{style} cyan".strip() if is_code else style) for text, is_code in phrase))
