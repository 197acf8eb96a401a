"""Rows as a pandas DataFrame: the only module that imports pandas, which is an optional dependency."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from explorer.errors import MissingPackageError
from explorer.model.attribution import MARKS
from explorer.model.capture import Capture
from explorer.model.events.process_ledger import ProcessLedger
from explorer.model.fates import FateRow, FateTable
from explorer.model.line_table import LineRow, LineTable
from explorer.model.links import GRADES
from explorer.model.results.estimates import Collectives
from explorer.model.results.targets import TargetComparison
from explorer.model.text import install_hint

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


def node_frame(capture: Capture, stage: str = "hlo") -> pd.DataFrame:
    """The nodes of a stage of a capture, one row each: what they are, where they belong, and from what they come."""
    pandas = import_pandas()
    graph = capture.stage(stage).graph
    links, attribution = capture.links, graph.attribution
    first = links.graphs[links.first]
    own = [(at,) for at in range(len(graph.names))] if stage == links.first else None
    equations = dict(enumerate(own)) if own is not None else links.table(stage, links.first)
    places = [*((place.file, place.line) for place in attribution.places), ("", 0)]
    files, lines = zip(*places, strict=True)
    columns: dict[str, Sequence[object]] = {
        "name": graph.names,
        "op": _decoded(graph.op, graph.ops),
        "type": _decoded(graph.type, graph.types),
        "group": _decoded(graph.group, [*(group.name for group in graph.groups), ""]),
        "scope": _decoded(graph.scope, graph.scopes),
        "file": _decoded(attribution.line, files),
        "line": _decoded(attribution.line, lines),
        "how": _decoded(attribution.mark, MARKS),
        "equations": [", ".join(first.names[row] for row in equations.get(at, ())) for at in range(len(graph.names))],
        "grade": _decoded(links.grades(stage), GRADES),
    }
    return pandas.DataFrame({**{name: list(column) for name, column in columns.items()}, **graph.measures})


def _decoded(codes: NDArray[np.signedinteger[Any]], values: Sequence[object]) -> list[object]:
    return [values[code] for code in codes.tolist()]


def line_frame(table: LineTable) -> pd.DataFrame:
    """What each line of the source costs, one row a line."""
    return frame_of(table, [field.name for field in fields(LineRow)])


_COLLECTIVE_COLUMNS = ("kind", "axes", "groups", "size", "bytes", "wire", "runs", "file", "line", "text", "seconds")


def collective_frame(table: Collectives) -> pd.DataFrame:
    """What the devices of a program send each other, one row a collective."""
    rows = ({name: getattr(row, name) for name in _COLLECTIVE_COLUMNS} | {"node": row.node.name} for row in table)
    return frame_of(rows, ["node", *_COLLECTIVE_COLUMNS])


_TARGET_COLUMNS = (
    *("target", "device", "fits", "memory", "capacity", "kernels", "flops", "bytes", "wire", "seconds"),
    *("is_complete", "estimated", "estimated_by", "failure"),
)


def target_frame(table: TargetComparison) -> pd.DataFrame:
    """One program for several targets, one row a target."""
    return frame_of(table, _TARGET_COLUMNS)


def process_frame(ledger: ProcessLedger) -> pd.DataFrame:
    """What many processes compiled, one row a program; who compiled it is in words, and how many they are."""
    columns = ("function", "file", "line", "call_site", "is_shared", "eager", "compiles", "seconds", "slowest")
    records = [
        {
            **{name: getattr(row, name) for name in columns},
            "arguments": ", ".join(f"{path}: {kind}" for path, kind in row.arguments),
            "count": row.count,
            "processes": ledger.named(row.processes),
            "slowest_process": ledger.processes[row.slowest_process],
        }
        for row in ledger
    ]
    return frame_of(records, [*columns, "arguments", "count", "processes", "slowest_process"])


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
            f"  Hint: {install_hint('pandas', 'lab')}; the rows themselves need nothing."
        ) from None
    return pandas


def _record(row: object, columns: Sequence[str]) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return cast("Mapping[str, Any]", row)
    return {name: getattr(row, name) for name in columns}
