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
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from hashlib import blake2b
from typing import Any

import numpy as np

from explorer.errors import CaptureFileError
from explorer.files.disk import parse_json
from explorer.files.unpacking import GZIP, Unpacker, UnpackingError
from explorer.files.validate import integer, texts
from explorer.model.graph import Floats, Ints

VERSION = 3  # 3: stages have `sets` of equations; 2 had `keys`, and 1 no measures
_MAGIC = b"EXPLORER"
_PREFIX = struct.Struct("<8sIQQ16s")
_LEVEL = 6  # gzip's own default: level 9 takes twice the time for 2 % of the size
_READ_AGAIN = 8  # times the size of all blobs that is read of them: each is read once or twice


def pack(header: dict[str, Any], blobs: Blobs) -> bytes:
    """A header and what it refers to, as one file."""
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )
    head += b" " * (-(4 + len(head)) % 4)
    raw = b"".join([struct.pack("<I", len(head)), head, *blobs.parts])
    payload = gzip.compress(raw, _LEVEL, mtime=0)
    return _PREFIX.pack(_MAGIC, VERSION, len(raw), len(payload), _digest(payload)) + payload


def with_entry(data: bytes, name: str, value: Any) -> bytes:
    """What `pack` wrote, with one more thing in its header."""
    raw = gzip.decompress(data[_PREFIX.size :])
    (size,) = struct.unpack_from("<I", raw)
    blobs = Blobs()
    blobs.parts.append(raw[4 + size :])
    return pack({**json.loads(raw[4 : 4 + size]), name: value}, blobs)


def unpack(data: bytes, unpacker: Unpacker | None = None) -> tuple[int, dict[str, Any], BlobReader]:
    """The version, the header and the blobs of what `pack` wrote.

    Args:
        unpacker: Of the file that the data are a part of; None if they are all of it.

    Raises:
        CaptureFileError: The data is no capture, is truncated or altered, stands for more than is read, or comes from a
            newer Explorer; says which.
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
    try:
        raw = (unpacker or Unpacker(len(data))).unpack(payload, GZIP, unpacked)
    except UnpackingError as error:
        raise CaptureFileError(
            f"this capture is refused: {error}. Hint: captures are what Capture.save(path) writes."
        ) from error
    with refusal():
        (head,) = struct.unpack_from("<I", raw)
        return version, _header(raw[4 : 4 + head]), BlobReader(memoryview(raw)[4 + head :])


def _header(text: bytes) -> dict[str, Any]:
    header = parse_json(text)
    if not isinstance(header, dict):
        raise TypeError("its header is no object")
    return header  # pyright: ignore[reportUnknownVariableType]


def _digest(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).digest()


# What Python and NumPy raise of values that aren't what they should be.
_WRONG = (KeyError, TypeError, ValueError, struct.error, IndexError, AttributeError, OverflowError, RecursionError)


@contextmanager
def refusal() -> Generator[None]:
    """A checksum says that the bytes are as written, not who wrote them: what doesn't fit the format is refused."""
    try:
        yield
    except CaptureFileError:
        raise
    except _WRONG as error:
        raise CaptureFileError(f"this capture's content does not fit its format: {error!s:.300}.") from error


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


class BlobReader:
    """The blobs of a file, of which a header says where each lies.

    A header may name one place any number of times: what is read of all together is bounded.
    """

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self._left = _READ_AGAIN * len(data)

    def read(self, place: Sequence[int]) -> memoryview:
        """The bytes at a place, `[offset, size]`.

        Raises:
            TypeError, ValueError: It is no place, leads out of the blobs, or they were read too often.
        """
        offset, size = map(integer, place)
        if not 0 <= offset <= offset + size <= len(self.data):
            raise ValueError(f"{size:,} bytes from {offset:,} on lead out of its {len(self.data):,}")
        self._left -= size
        if self._left < 0:
            raise ValueError("it names the same bytes again and again")
        return self.data[offset : offset + size]

    def text(self, place: Sequence[int]) -> str:
        return bytes(self.read(place)).decode("utf-8", "surrogatepass")


def read_numbers(place: Sequence[int], blobs: BlobReader) -> Floats:
    planes = np.frombuffer(blobs.read(place), np.uint8).reshape(4, -1)
    return np.ascontiguousarray(planes.T).view("<f4").ravel().astype(np.float64)


def read_column(place: Sequence[int], blobs: BlobReader) -> Ints:
    planes = np.frombuffer(blobs.read(place), np.uint8).reshape(4, -1)
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


def read_table(table: dict[str, Any], blobs: BlobReader, kind: type[Any]) -> list[Any]:
    columns: list[list[Any]] = []
    for field in fields(kind):
        column = table[field.name]
        if field.type == "str":
            strings = texts(column["strings"])
            codes = read_column(column["codes"], blobs)
            if len(codes) and codes.min() < 0:
                raise ValueError("a text of a table leads out of it")
            columns.append([strings[code] for code in codes.tolist()])
        else:
            columns.append(read_column(column, blobs).tolist())
    return [kind(*row) for row in zip(*columns, strict=True)]
