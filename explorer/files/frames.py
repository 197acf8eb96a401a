"""Rows as a pandas DataFrame: the only module that imports pandas, which is an optional dependency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

from explorer.errors import MissingPackageError
from explorer.model.fates import FateRow, FateTable
from explorer.model.line_table import LineRow, LineTable

if TYPE_CHECKING:
    import pandas as pd


def frame_of(rows: Iterable[object], columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A DataFrame with one row for each of `rows`.

    Args:
        rows: Mappings from column to value, or objects that have an attribute for each column.
        columns: Which columns, in order; a table of no rows has them too. None takes those of the mappings.

    Raises:
        MissingPackageError: pandas is not installed.

    Example:
        >>> frame_of([{"line": 3, "seconds": 0.5}, {"line": 4, "seconds": 0.25}])["seconds"].sum().item()
        0.75
    """
    pandas = import_pandas()
    records = [_record(row, columns or ()) for row in rows]
    return pandas.DataFrame(records, columns=None if columns is None else list(columns))


def line_frame(table: LineTable) -> pd.DataFrame:
    """What each line of the source costs, one row a line."""
    return frame_of(table, [field.name for field in fields(LineRow)])


def fate_frame(table: FateTable) -> pd.DataFrame:
    """What became of each equation, one row an equation."""
    return frame_of(table, [field.name for field in fields(FateRow)])


def import_pandas() -> Any:
    """The module pandas.

    Raises:
        MissingPackageError: It is not installed.
    """
    try:
        import pandas
    except ImportError:
        raise MissingPackageError(
            "to_frame() makes a DataFrame of pandas, which is not installed.\n"
            "  Hint: pip install pandas, or explorer's extra [lab]; the rows themselves need nothing."
        ) from None
    return pandas


def _record(row: object, columns: Sequence[str]) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return cast("Mapping[str, Any]", row)
    return {name: getattr(row, name) for name in columns}
