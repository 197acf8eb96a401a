"""Columns and tables as byte strings, one after the other: what the files of captures and of passes are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from explorer.files.validate import texts
from explorer.model.graph import Floats, Ints

__all__ = ["Blobs", "read_column", "read_numbers", "read_table", "table"]


class Blobs:
    """Byte strings one after the other, each at a multiple of 4; knows where each lies."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, data: bytes) -> list[int]:
        place = [self.size, len(data)]
        data += b"\0" * (-len(data) % 4)
        self.parts.append(data)
        self.size += len(data)
        return place

    def column(self, values: Sequence[int] | Ints) -> list[int]:
        """Differences of neighbours, one byte plane after the other: the high planes are nearly all zeros."""
        row: Ints = np.asarray(values, np.int32)
        # Zigzag keeps small negatives small; the arithmetic wraps, and wraps back.
        delta = np.diff(row, prepend=np.int32(0)).astype(np.int32)
        zigzag = ((delta << 1) ^ (delta >> 31)).astype("<u4")
        return self.add(zigzag.view(np.uint8).reshape(-1, 4).T.tobytes())

    def numbers(self, values: Floats) -> list[int]:
        """Single precision is enough to be shown; whole planes of equal bytes pack to nearly nothing."""
        return self.add(np.asarray(values, "<f4").view(np.uint8).reshape(-1, 4).T.tobytes())


def read_numbers(place: list[int], blobs: memoryview) -> Floats:
    planes = np.frombuffer(blobs[place[0] : place[0] + place[1]], np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<f4").ravel().astype(np.float64)


def read_column(place: list[int], blobs: memoryview) -> Ints:
    planes = np.frombuffer(blobs[place[0] : place[0] + place[1]], np.uint8).reshape(4, -1)
    zigzag = np.ascontiguousarray(planes.T).view("<u4").ravel()
    delta = (zigzag >> 1).astype(np.int32) ^ -(zigzag & 1).astype(np.int32)
    return np.cumsum(delta, dtype=np.int32)


def table(blobs: Blobs, rows: Any, kind: type[Any]) -> dict[str, Any]:
    """Dataclass rows column by column: strings as codes into a table, integers as they are."""
    table: dict[str, Any] = {}
    for field in fields(kind):
        values = [getattr(row, field.name) for row in rows]
        if field.type == "str":
            codes: dict[str, int] = {}
            column = [codes.setdefault(value, len(codes)) for value in values]
            table[field.name] = {"strings": list(codes), "codes": blobs.column(column)}
        else:
            table[field.name] = blobs.column(values)
    return table


def read_table(table: dict[str, Any], blobs: memoryview, kind: type[Any]) -> list[Any]:
    columns: list[list[Any]] = []
    for field in fields(kind):
        column = table[field.name]
        if field.type == "str":
            strings = texts(column["strings"])
            columns.append([strings[code] for code in read_column(column["codes"], blobs).tolist()])
        else:
            columns.append(read_column(column, blobs).tolist())
    return [kind(*row) for row in zip(*columns, strict=True)]
