"""How the table of targets is shown: as text, and as a table."""

from __future__ import annotations

from explorer.model.results.targets import TargetRow, Targets
from explorer.model.units import bytes_text, rate_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View

_HEAD = ("target", "hardware", "memory", "bandwidth", "bf16", "f32", "its compiler")


class TargetsView(View[Targets]):
    """A table, and where its figures are from."""

    def title(self, value: Targets) -> str:
        return "targets"

    def html(self, value: Targets) -> str:
        table = html_table(Table("what target= takes", _HEAD, targets_rows(value), more=_note(value)), is_open=True)
        return f'<div class="explorer-static">{table}</div>'


def targets_rows(targets: Targets) -> list[tuple[str, ...]]:
    """One for each kind of device; what isn't known is empty."""
    return [_row(row) for row in targets]


def _row(row: TargetRow) -> tuple[str, ...]:
    device = row.device
    rates = [rate_text(device.flops[dtype]) if dtype in device.flops else "" for dtype in ("bf16", "f32")]
    installed = "installed" if row.is_installed else "not installed"
    hint = f" ({row.hint})" if row.hint else ""
    memory = bytes_text(device.memory) if device.memory else "its machine's"
    bandwidth = rate_text(device.bandwidth, "B") if device.bandwidth else ""
    return (device.key, device.name, memory, bandwidth, *rates, installed + hint)


def targets_text(targets: Targets) -> str:
    """The table as text, a line for each row."""
    rows = [_HEAD, *targets_rows(targets)]
    widths = [max(len(row[at]) for row in rows) for at in range(len(_HEAD) - 1)]
    lines = [
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]) for row in rows
    ]
    return "\n".join([*(line.rstrip() for line in lines), _note(targets)])


def _note(targets: Targets) -> str:
    count = len({source for row in targets for source in row.device.sources})
    figures = "Published figures of one device, matrix products without sparsity"
    return f"{figures}; `.device.sources` names the {count} that they are from."
