"""The container of captures, diffs and other messages: what `save` writes, what the viewer in the browser reads.

    magic "EXPLORER" · version u32 · unpacked size u64 · payload size u64 · blake2b-16 of the payload · payload

little-endian. The payload is gzip, because every browser unpacks it natively, of

    header size u32 · header (JSON) · blobs, each starting at a multiple of 4

The header names each blob by offset and size: text as UTF-8, integer columns as differences split into byte planes,
which is what makes 100,000 rows compress to a few kilobytes. Nothing in it is executed or unpickled.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from hashlib import blake2b
from typing import Any

import numpy as np

from explorer.errors import CaptureFileError
from explorer.files.validate import texts
from explorer.model.graph import Floats, Ints

VERSION = 3  # 3: stages have `sets` of equations; 2 had `keys`, and 1 no measures
_MAGIC = b"EXPLORER"
_PREFIX = struct.Struct("<8sIQQ16s")
_LEVEL = 6  # gzip's own default: level 9 takes twice the time for 2 % of the size


def pack(header: dict[str, Any], blobs: Blobs) -> bytes:
    """A header and what it refers to, as one file."""
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )
    head += b" " * (-(4 + len(head)) % 4)
    raw = b"".join([struct.pack("<I", len(head)), head, *blobs.parts])
    payload = gzip.compress(raw, _LEVEL, mtime=0)
    return _PREFIX.pack(_MAGIC, VERSION, len(raw), len(payload), _digest(payload)) + payload


def unpack(data: bytes) -> tuple[int, dict[str, Any], memoryview]:
    """The version, the header and the blobs of what `pack` wrote.

    Raises:
        CaptureFileError: The data is no capture, is truncated or altered, or comes from a newer Explorer; says which.
    """
    if data[: len(_MAGIC)] != _MAGIC[: len(data)] or not data:
        raise CaptureFileError(
            f"this is no capture: it starts with {bytes(data[:8])!r}, a capture with {_MAGIC!r}. "
            "Hint: captures are what Capture.save(path) writes."
        )
    if len(data) >= 12 and (version := int.from_bytes(data[8:12], "little")) > VERSION:
        raise CaptureFileError(
            f"this capture has format {version}; this Explorer reads formats up to {VERSION}. Hint: upgrade explorer."
        )
    if len(data) < _PREFIX.size:
        raise CaptureFileError(f"this capture is truncated: {len(data):,} bytes, not even its first {_PREFIX.size}.")
    _, version, unpacked, size, digest = _PREFIX.unpack_from(data)
    payload = data[_PREFIX.size :]
    if len(payload) < size:
        raise CaptureFileError(f"this capture is truncated: {len(payload):,} of {size:,} bytes are there.")
    if version < 1 or len(payload) > size or _digest(payload) != digest:
        raise CaptureFileError("this capture was altered: its checksum does not fit. Hint: copy or save it again.")
    raw = _decompressed(payload, unpacked)
    with refusal():
        (head,) = struct.unpack_from("<I", raw)
        return version, json.loads(raw[4 : 4 + head]), memoryview(raw)[4 + head :]


def _decompressed(payload: bytes, unpacked: int) -> bytes:
    try:
        # Never more than was promised: a small file cannot unpack to fill the memory.
        raw = zlib.decompressobj(wbits=31).decompress(payload, unpacked + 1)
    except (zlib.error, OverflowError) as error:  # the second for a size that no memory has
        raise CaptureFileError(f"this capture was altered: {error}.") from error
    if len(raw) != unpacked:
        raise CaptureFileError("this capture was altered: it unpacks to another size than it says.")
    return raw


def _digest(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).digest()


@contextmanager
def refusal() -> Generator[None]:
    """A checksum says that the bytes are as written, not who wrote them: what doesn't fit the format is refused."""
    try:
        yield
    except (KeyError, TypeError, ValueError, struct.error, IndexError, AttributeError) as error:
        raise CaptureFileError(f"this capture's content does not fit its format: {error}.") from error


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
