"""What of each argument was always the same, and what was not, for the functions that compiled more than once."""

from __future__ import annotations

from typing import Any

from explorer.model.events.ledger import Ledger
from explorer.model.events.variations import Variation, Variations

_FUNCTIONS = 12
_CALLS = 500  # the last of each: a live view asks at each change
_CONSTANT = 40  # arguments of one function
_VALUES = 8


def variation_tables(ledger: Ledger) -> list[dict[str, Any]]:
    """A table for each function that compiled again, the most expensive first; for the browser."""
    again = [row for row in ledger.functions() if row.recompiles and not row.eager]
    tables = {row.name: ledger.varying(row.name, calls=_CALLS) for row in again[:_FUNCTIONS]}
    return [
        {"function": name, "rows": _rows(variations)} for name, variations in tables.items() if variations.calls > 1
    ]


def _rows(variations: Variations) -> list[dict[str, Any]]:
    rows = [_row(row.leaf or "the call", row.aspect, row) for row in variations.varying]
    constant: dict[str, list[Variation]] = {}
    for row in variations.rows:
        if row.leaf and (row.aspect in ("dtype", "value") or row.aspect.startswith("shape[")):
            constant.setdefault(row.leaf, []).append(row)
    settled = [(path, text) for path, rows in constant.items() if (text := _constant(rows))]
    rows += [
        {"path": path, "aspect": "", "values": [[text, variations.calls]], "distinct": 1} for path, text in settled
    ]
    return rows[: len(variations.varying) + _CONSTANT]


def _row(path: str, aspect: str, row: Variation) -> dict[str, Any]:
    most = sorted(row.values, key=lambda value: -value.count)[:_VALUES]
    values = [[value.text or "none", value.count] for value in most]
    return {"path": path, "aspect": aspect, "values": values, "distinct": len(row.values)}


def _constant(rows: list[Variation]) -> str:
    """`float32[*, 128]`: what of an array never changed; a star is what did. Empty if nothing of it is settled."""
    by_aspect = {row.aspect: row.values[0].text if row.is_constant else "*" for row in rows}
    if "value" in by_aspect:
        return by_aspect["value"] if by_aspect["value"] != "*" else ""
    sizes = [text for aspect, text in by_aspect.items() if aspect.startswith("shape[")]
    return f"{by_aspect.get('dtype', '*')}[{', '.join(sizes)}]"
