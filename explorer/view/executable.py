"""How an executable is shown: what it takes and gives, and which programs it holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from explorer.model.units import duration_text
from explorer.view.chart import Table, html_table
from explorer.view.interface import View


class ExecutableView(View[Any]):
    """Tables of the inputs, the outputs and the programs; its class, which needs JAX, is above this floor."""

    def title(self, value: Any) -> str:
        return f"executable of {value.__name__}"

    def html(self, value: Any) -> str:
        programs = [
            (
                ", ".join(f"{name}: {shape}" for name, shape in row.shapes.items()),
                row.reason,
                duration_text(row.seconds),
            )
            for row in value.specializations
        ]
        tables = [
            _infos(f"{value.__name__}: what it takes", value.input_infos),
            _infos("what it gives", value.output_infos),
            Table("its programs", ("inputs", "why", "compiled in"), programs),
        ]
        return f'<div class="explorer-static">{"".join(html_table(table, is_open=True) for table in tables)}</div>'


def _infos(title: str, infos: Mapping[str, Any]) -> Table:
    rows: Iterable[tuple[str, str]] = ((name, repr(info)) for name, info in infos.items())
    return Table(title, ("name", "what"), list(rows))
