"""Container of captures, diffs and other messages: written by `save`, read by the viewer in the browser.

    magic "EXPLORER" · version u32 · unpacked size u64 · payload size u64 · blake2b-16 of the payload · payload

Numbers are little-endian. The payload is gzip, because every browser unpacks it natively. It holds

    header size u32 · header (JSON) · blobs, each starting at a multiple of 4

The header names each blob by offset and size. Text is UTF-8. Integer columns are stored as differences split into
byte planes, which packs 100,000 rows into a few kilobytes. Nothing in the file is executed or unpickled.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from hashlib import blake2b
from itertools import accumulate, count
from operator import attrgetter
from typing import Any, TypeVar, cast

import numpy as np

from explorer.errors import CaptureFileError
from explorer.files.disk import parse_json
from explorer.model.graph import Floats, Frame, Ints

MEBIBYTE = 2**20
LARGEST = 768 * MEBIBYTE  # bytes unpacked: a step of 110,000 nodes in three stages takes 25 MB
_RATIO = 100  # unpacked bytes for each packed one: such a step has 14
_ALWAYS = 16 * MEBIBYTE  # always allowed: a small program, repeated, packs better than a large one
_PIECE = MEBIBYTE
GZIP, ZLIB = 31, 15  # zlib's `wbits` for each wrapping


class UnpackingError(ValueError):
    """Packed data is damaged or too large, or its size differs from the stated one; callers add the file name."""


class Unpacker:
    """Decompressor with one size budget for all pieces of a file.

    Args:
        size: Size of the file in bytes.
        largest: Limit in bytes for everything unpacked from the file.
    """

    def __init__(self, size: int, largest: int = LARGEST) -> None:
        self.size = size
        self.most = self.left = min(largest, max(_ALWAYS, _RATIO * size))

    def unpack(self, packed: bytes, wrapping: int, claimed: int | None = None) -> bytes:
        """Return the unpacked bytes of `packed`, and subtract their number from the budget.

        Args:
            wrapping: `GZIP` or `ZLIB`.
            claimed: Unpacked size that the file states; None if it states none.

        Raises:
            UnpackingError: The data is damaged, has another size than stated, or is too large.
        """
        if claimed is not None:
            self._check(claimed)
        most = self.left if claimed is None else claimed
        stream = zlib.decompressobj(wbits=wrapping)
        unpacked = bytearray()
        try:
            # In pieces, because a file of a few kilobytes may unpack to terabytes.
            while not stream.eof and len(unpacked) <= most:
                piece = stream.decompress(packed, min(_PIECE, most + 1 - len(unpacked)))
                packed = stream.unconsumed_tail
                unpacked += piece
                if not piece and not packed:
                    break
        except zlib.error as error:
            raise UnpackingError(f"it is damaged: {error}") from error
        if claimed is None:
            self._check(len(unpacked))
        elif len(unpacked) != claimed:
            raise UnpackingError("its unpacked size differs from the stated one")
        if not stream.eof:
            raise UnpackingError("it is truncated")
        self.left -= len(unpacked)
        return bytes(unpacked)

    def _check(self, size: int) -> None:
        if not 0 <= size <= self.left:
            says = f"{size:,}" if size < 1 << 63 else "more than 2**63"
            raise UnpackingError(
                f"its {self.size:,} bytes would unpack to {says} or more; the limit for a file of this size is "
                f"{self.most:,} bytes"
            )


_MAX_STACK_FRAMES = 5_000_000  # of all stacks together: a minute of work; 24 layers, written plainly, have 69

_Row = TypeVar("_Row")


def text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text was expected, not {type(value).__name__}")
    return value


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false was expected, not {type(value).__name__}")
    return value


def integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"an integer was expected, not {type(value).__name__}")
    return value


def number(value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise TypeError(f"a number was expected, not {type(value).__name__}")
    return value


def texts(values: Sequence[Any]) -> list[str]:
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise TypeError("a list of texts was expected")
    return values


def json_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"a list was expected, not {type(value).__name__}")
    return cast("list[Any]", value)


def json_object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"an object was expected, not {type(value).__name__}")
    return cast("dict[str, Any]", value)


def texts_by_name(values: dict[str, Any]) -> dict[str, str]:
    return {name: text(value) for name, value in values.items()}


def integers(values: dict[str, Any]) -> dict[str, int]:
    return {name: integer(value) for name, value in values.items()}


def floats(values: dict[str, Any]) -> dict[str, float]:
    return {name: number(value) for name, value in values.items()}


def dataclass_from(kind: type[_Row], values: dict[str, Any]) -> _Row:
    """Build a dataclass of texts and numbers; TypeError if a value has another type than its field."""
    # A dataclass takes any value, and a file may have any.
    checks = {"str": text, "int": integer, "float": number}
    for field in fields(kind):  # pyright: ignore[reportArgumentType]
        if field.name in values and str(field.type) in checks:
            checks[str(field.type)](values[field.name])
    return kind(**values)


def check_frames(frames: Sequence[Frame]) -> None:
    """Raise ValueError if a frame's parent is out of range, or all stacks together are too long to walk."""
    parent = np.asarray([frame.parent for frame in frames], np.int64)
    if len(parent) and not -1 <= parent.min() <= parent.max() < len(parent):
        raise ValueError("a frame's parent is outside of its table")
    if (total := int(_stack_sizes(parent).sum())) > _MAX_STACK_FRAMES:
        raise ValueError(f"its stacks have {total:,} frames; at most {_MAX_STACK_FRAMES:,} are read")


def _stack_sizes(parent: np.ndarray[Any, np.dtype[np.int64]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the number of callers of each frame, from the frames' parents; in a cycle, the table's length."""
    # Pointer doubling: each turn looks twice as far out, so a cycle ends after log2(n) turns.
    size, outer = (parent >= 0).astype(np.int64), parent.copy()
    for _ in range(len(parent).bit_length() + 1):
        inner = np.flatnonzero(outer >= 0)
        if not len(inner):
            break
        at = outer[inner]
        size[inner], outer[inner] = np.minimum(size[inner] + size[at], len(parent)), outer[at]
    return size


def are_row_starts(starts: Ints, rows: int, entries: int) -> bool:
    """Return True if `starts` are offsets of compressed rows (CSR): from 0, ascending, one per row, then `entries`."""
    is_whole = len(starts) == rows + 1 and starts[0] == 0 and starts[-1] == entries
    return is_whole and bool((np.diff(starts) >= 0).all())


VERSION = 3  # 3: stages have `sets` of equations; 2 had `keys`, and 1 no measures
_MAGIC = b"EXPLORER"
_PREFIX = struct.Struct("<8sIQQ16s")
_LEVEL = 6  # gzip's own default: level 9 takes twice the time for 2 % of the size
_READ_AGAIN = 8  # limit for the bytes read, in sizes of all blobs: each blob is read once or twice


def pack(header: dict[str, Any], blobs: Blobs) -> bytes:
    """Return the bytes of a file with a header and the blobs that it refers to."""
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )
    # Blobs begin at multiples of 4 bytes, so that a page can read them as typed arrays.
    head += b" " * (-(4 + len(head)) % 4)
    raw = b"".join([struct.pack("<I", len(head)), head, *blobs.parts])
    # Without a time, so that equal content gives equal bytes.
    payload = gzip.compress(raw, _LEVEL, mtime=0)
    return _PREFIX.pack(_MAGIC, VERSION, len(raw), len(payload), _digest(payload)) + payload


def with_entry(data: bytes, name: str, value: Any) -> bytes:
    """Return the bytes of the file `data` with the entry `name` added to its header or replaced."""
    raw = gzip.decompress(data[_PREFIX.size :])
    (size,) = struct.unpack_from("<I", raw)
    blobs = Blobs()
    # All blobs as one part keep their offsets.
    blobs.parts.append(raw[4 + size :])
    return pack({**json.loads(raw[4 : 4 + size]), name: value}, blobs)


def _check_prefix(data: bytes) -> None:
    """Raise CaptureFileError unless `data` begins as a capture of a known format does."""
    # A truncated file may have only the beginning of the prefix.
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


def unpack(data: bytes, unpacker: Unpacker | None = None) -> tuple[int, dict[str, Any], BlobReader]:
    """Return the version, the header and the blobs of a file.

    Args:
        unpacker: Budget of the file that contains `data`; None if `data` is the whole file.

    Raises:
        CaptureFileError: The data is no capture, truncated, altered, too large, or from a newer Explorer.
    """
    _check_prefix(data)
    _, version, unpacked, size, digest = _PREFIX.unpack_from(data)
    payload = data[_PREFIX.size :]
    if len(payload) < size:
        raise CaptureFileError(f"this capture is truncated: {len(payload):,} of {size:,} bytes are there.")
    if version < 1 or len(payload) > size or _digest(payload) != digest:
        raise CaptureFileError("this capture was altered: its checksum does not match. Hint: copy or save it again.")
    try:
        raw = (unpacker or Unpacker(len(data))).unpack(payload, GZIP, unpacked)
    except UnpackingError as error:
        raise CaptureFileError(
            f"this capture is refused: {error}. Hint: captures are what Capture.save(path) writes."
        ) from error
    with refusal():
        (head,) = struct.unpack_from("<I", raw)
        header = parse_json(raw[4 : 4 + head])
        if not isinstance(header, dict):
            raise TypeError("its header is no object")
        return version, cast("dict[str, Any]", header), BlobReader(memoryview(raw)[4 + head :])


def _digest(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).digest()


# Raised by Python and NumPy for values of a wrong type or range.
_WRONG = (KeyError, TypeError, ValueError, struct.error, IndexError, AttributeError, OverflowError, RecursionError)


@contextmanager
def refusal() -> Generator[None]:
    """Raise CaptureFileError in place of an error that malformed content causes within the `with` block."""
    try:
        yield
    except CaptureFileError:
        raise
    except _WRONG as error:
        raise CaptureFileError(f"this capture's content does not fit its format: {error!s:.300}.") from error


class Blobs:
    """Byte strings in sequence, each at a multiple of 4; `add` returns each one's offset and size."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.size = 0

    def add(self, *data: bytes) -> list[int]:
        """Add byte strings; return the offset of the first one, then the size of each, in one list."""
        places = [self.size, *map(len, data)]
        for each in data:
            self.parts.append(each + b"\0" * (-len(each) % 4))
            self.size += len(self.parts[-1])
        return places

    def column(self, values: Sequence[int] | Ints) -> list[int]:
        return self.columns({"": values})[""]

    def columns(self, columns: Mapping[str, Sequence[int] | Ints]) -> dict[str, list[int]]:
        """Add columns of integers as differences of neighbors in byte planes; return each one's `[offset, size]`."""
        planes: list[bytes] = []
        for values in columns.values():
            row: Ints = np.asarray(values, np.int32)
            # Zigzag keeps small negatives small; the arithmetic wraps, and wraps back.
            delta = np.diff(row, prepend=np.int32(0)).astype(np.int32)
            zigzag = ((delta << 1) ^ (delta >> 31)).astype("<u4")
            planes.append(zigzag.view(np.uint8).reshape(-1, 4).T.tobytes())
        offset, *sizes = self.add(*planes)
        starts = accumulate(sizes, initial=offset)  # each size is a multiple of 4
        return dict(zip(columns, map(list, zip(starts, sizes, strict=False)), strict=True))

    def numbers(self, values: Floats) -> list[int]:
        """Add values in single precision, enough for display, and return their place, `[offset, size]`."""
        return self.add(np.asarray(values, "<f4").view(np.uint8).reshape(-1, 4).T.tobytes())


class BlobReader:
    """Reader of a file's blobs; limits the total bytes read, since a header may name one place many times."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self._left = _READ_AGAIN * len(data)

    def read(self, place: Sequence[int]) -> memoryview:
        """Return the bytes at a place, `[offset, size]`.

        Raises:
            TypeError, ValueError: The place is malformed or out of range, or the blobs were read too often.
        """
        offset, size = map(integer, place)
        if not 0 <= offset <= offset + size <= len(self.data):
            raise ValueError(f"{size:,} bytes from {offset:,} on are outside of its {len(self.data):,} bytes")
        self._left -= size
        if self._left < 0:
            raise ValueError("the file refers to the same bytes too often")
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
    """Add dataclass rows as columns to the blobs; return a dict from field to place, `[offset, size]`.

    A field of strings gives `{"strings": distinct strings, "codes": place of the indices into them}`.
    """
    columns: dict[str, Sequence[int]] = {}
    strings: dict[str, list[str]] = {}
    for field in fields(kind):
        values = [*map(attrgetter(field.name), rows)]
        if field.type == "str":
            codes = dict(zip(dict.fromkeys(values), count(), strict=False))
            strings[field.name], values = list(codes), [*map(codes.__getitem__, values)]
        columns[field.name] = values
    places = blobs.columns(columns).items()
    return {name: {"strings": strings[name], "codes": at} if name in strings else at for name, at in places}


def read_table(table: dict[str, Any], blobs: BlobReader, kind: type[Any]) -> list[Any]:
    columns: list[list[Any]] = []
    for field in fields(kind):
        column = table[field.name]
        if field.type == "str":
            strings = texts(column["strings"])
            codes = read_column(column["codes"], blobs)
            if len(codes) and codes.min() < 0:
                raise ValueError("a text has an index outside of its table")
            columns.append([strings[code] for code in codes.tolist()])
        else:
            columns.append(read_column(column, blobs).tolist())
    return [kind(*row) for row in zip(*columns, strict=True)]
