"""Measured results as files: written by `save` of a Timing, a Sweep, a Profile, …, and read by `load`.

    {"explorer": "result", "format": 1, "minor": 1, "kind": "Timing", "value": {…},
     "captures": [{"size": …, "zlib": "…"}, …], "blake2b": "…"}

The file is compact JSON in UTF-8. It ends with the checksum of the bytes before, which files without `minor` lack. A
dataclass is an object of its fields, a sequence a list, a mapping an object with integer keys in decimals. Values
that JSON lacks:

    NaN and infinities    {"float": "nan"}, "inf" or "-inf"
    bytes                 {"size": bytes, "zlib": base64}
    a datetime            ISO 8601
    a column of numbers   as bytes, with its "dtype" and "shape", little-endian
    a capture             {"capture": index into "captures"}, each in the form of `Capture.wire`, stored once

Types come from the annotations of the classes here, never from the file, which names no class but one of `_KINDS`.
A value of another type, an unknown field, or an index out of range is refused before use.
"""

from __future__ import annotations

import base64
import json
import math
import types
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime
from functools import cache
from hashlib import blake2b
from os import PathLike
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ResultFileError
from explorer.files import capture as capture_file
from explorer.files.columns import as_json
from explorer.files.container import LARGEST, ZLIB, Unpacker, boolean, integer, json_list, json_object, number, text
from explorer.files.disk import parse_json, read_bytes, write_whole
from explorer.model.capture import Capture
from explorer.model.declared import Saved
from explorer.model.events.process_ledger import ProcessLedger
from explorer.model.results.dynamic_report import DynamicReport, PaddedSizes
from explorer.model.results.hot_paths import CallTimes, HotPaths
from explorer.model.results.memory_use import MemoryRow, MemoryUse
from explorer.model.results.profile import ProcessProfile, Profile
from explorer.model.results.profile_events import BETWEEN, HOST, THUNK, WAIT, Events, Timeline
from explorer.model.results.roofline import BOUNDS, Peaks, Roofline
from explorer.model.results.statistics import Axis
from explorer.model.results.sweep import Sweep, SweepRow, WhatIf
from explorer.model.results.timing import Comparison, Timing
from explorer.model.text import brief

FORMAT = 1
_MINOR = 1  # 1: the file has a checksum, which readers of 0 skip
# The checksum is the last entry, so that it can be split off the bytes that it covers without parsing them.
_END = b',"blake2b":"'
_START = b'{"explorer":"result",'
_KINDS: Mapping[str, type[Saved]] = {
    kind.__name__: kind
    for kind in (
        *(Comparison, DynamicReport, HotPaths, MemoryUse, Peaks, ProcessLedger, ProcessProfile, Profile, Roofline),
        *(Sweep, Timing, WhatIf),
    )
}
_TOP_LEVEL = ("HotPaths", "Peaks", "Profile", "Sweep", "Timing")  # others are in `explorer.types`
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DTYPES = ("<f4", "<f8", "<i4", "<i8", "|b1")

_Result = TypeVar("_Result", bound=Saved)


@dataclass(frozen=True)
class _File:
    """Captures that the values of a file refer to, and the file's unpacking budget."""

    captures: Sequence[Capture]
    unpacker: Unpacker


_Reader = Callable[[Any, _File], Any]  # makes a value of its JSON


def save(result: Saved, path: str | PathLike[str]) -> None:
    """Write a result to a file, whole or not at all."""
    write_whole(path, encode(result))


def load(kind: type[_Result], path: str | PathLike[str]) -> _Result:
    """Return the result of this kind in a file; ResultFileError as for `decode`."""
    # Twice the limit: incompressible data grows in base64.
    return decode(kind, read_bytes(path, 2 * LARGEST, "a result", ResultFileError))


def encode(result: Saved) -> bytes:
    """Return a result as the bytes of its file, with all its captures."""
    captures: list[Capture] = []
    content = {
        "explorer": "result",
        "format": FORMAT,
        "minor": _MINOR,
        "kind": type(result).__name__,
        "value": _as_json(result, captures),
        "captures": [_packed(capture.wire) for capture in captures],
    }
    written = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    data = written.encode("utf-8", "surrogatepass")[:-1]  # without the brace that closes it
    return data + _END + _digest(data) + b'"}'


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).hexdigest().encode()


def decode(kind: type[_Result], data: bytes) -> _Result:
    """Return the result encoded in `data`.

    Raises:
        ResultFileError: The data is no result or one of another kind, truncated, altered, or from a newer Explorer.
    """
    content = _content(data)
    if content["format"] > FORMAT:
        raise ResultFileError(
            f"this result has format {content['format']}; this Explorer reads formats up to {FORMAT}. "
            "Hint: upgrade explorer."
        )
    if content["kind"] != kind.__name__:
        place = "explorer" if content["kind"] in _TOP_LEVEL else "explorer.types"
        hint = f" Hint: {place}.{content['kind']}.load(path)." if content["kind"] in _KINDS else ""
        raise ResultFileError(f"this file holds a {content['kind']}, not a {kind.__name__}.{hint}")
    read = _reader(kind)  # outside of `try`: an unsupported field type is a bug, not a bad file
    try:
        unpacker = Unpacker(len(data))
        packed = json_list(content["captures"])
        captures = [capture_file.decode(_unpacked(each, unpacker), unpacker) for each in packed]
        result: _Result = read(content["value"], _File(captures, unpacker))
        _check(result)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, RecursionError, AttributeError) as error:
        raise ResultFileError(f"this {kind.__name__}'s content does not fit its format: {error!s:.300}.") from error
    return result


def _content(data: bytes) -> dict[str, Any]:
    """Return the outermost JSON object of a result's file; ResultFileError for a wrong format, kind or checksum."""
    if not data.startswith(_START):
        hint = "explorer.load(path) opens captures" if data.startswith(b"EXPLORER") else "results are what save writes"
        raise ResultFileError(f"this is no saved result: it starts with {bytes(data[:8])!r}. Hint: {hint}.")
    try:
        content: dict[str, Any] = parse_json(data)
        text(content["kind"])
        if integer(content["format"]) < 1 or integer(content.get("minor", 0)) < 0:
            raise ValueError("there is no format before 1")
        if content["format"] == FORMAT and ("minor" in content or "blake2b" in content):
            written, _, checksum = data.rpartition(_END)
            if checksum != _digest(written) + b'"}':
                raise ValueError("its checksum does not match")
    except (KeyError, TypeError, ValueError) as error:
        problem = f"this result is truncated or was altered: {error!s:.300}"
        raise ResultFileError(f"{problem}. Hint: save it again.") from error
    return content


def _as_json(value: Any, captures: list[Capture]) -> Any:
    """Return a value as JSON, in the module's form for each type; new captures are appended to `captures`."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(float(value))}
    if isinstance(value, bytes):
        return _packed(value)
    if isinstance(value, np.ndarray):
        column = cast("NDArray[Any]", value)
        ordered = np.asarray(column, column.dtype.newbyteorder("<"))
        return {"dtype": ordered.dtype.str, "shape": list(ordered.shape), **_packed(ordered.tobytes())}
    if isinstance(value, Capture):
        # Several rows may have the same capture, which is written once.
        index = next((i for i, capture in enumerate(captures) if capture is value), len(captures))
        captures[index:] = captures[index:] or [value]
        return {"capture": index}
    return as_json(value, lambda each: _as_json(each, captures))


def _packed(data: bytes) -> dict[str, Any]:
    return {"size": len(data), "zlib": base64.b64encode(zlib.compress(data)).decode("ascii")}


def _unpacked(value: object, unpacker: Unpacker) -> bytes:
    packed = json_object(value)
    return unpacker.unpack(base64.b64decode(text(packed["zlib"]), validate=True), ZLIB, integer(packed["size"]))


@cache
def _reader(kind: Any) -> _Reader:
    """Return a function from JSON to a checked value of an annotated type; NotImplementedError if unsupported."""
    simple: dict[Any, _Reader] = {
        str: lambda value, _: text(value),
        int: lambda value, _: integer(value),
        float: lambda value, _: _float(value),
        bool: lambda value, _: boolean(value),
        bytes: lambda value, file: _unpacked(value, file.unpacker),
        datetime: lambda value, _: datetime.fromisoformat(text(value)),
        Capture: _read_capture,
    }
    if kind in simple:
        return simple[kind]
    if is_dataclass(kind):
        return _dataclass_reader(cast("type[Any]", kind))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _union_reader(arguments)
    if origin is Literal:
        return lambda value, _: _among(value, arguments)
    if origin in (np.ndarray, NDArray):  # NumPy before 2.5 resolves the alias
        scalar = arguments[0] if origin is NDArray else get_args(arguments[1])[0]
        return lambda value, file: _column(value, np.dtype(scalar), file.unpacker)
    if origin is Mapping:
        return _mapping_reader(*arguments)
    if origin not in (Sequence, tuple):
        raise NotImplementedError(f"a field of type {kind} can't be read from a file")
    if origin is Sequence or arguments[-1] is Ellipsis:
        read = _reader(arguments[0])
        return lambda value, file: tuple(read(each, file) for each in json_list(value))
    readers = [_reader(argument) for argument in arguments]
    return lambda value, file: tuple(read(each, file) for read, each in zip(readers, json_list(value), strict=True))


def _dataclass_reader(kind: type[Any]) -> _Reader:
    hints = get_type_hints(kind)
    readers = {field.name: _reader(hints[field.name]) for field in fields(kind)}

    def read(value: object, file: _File) -> Any:
        values = json_object(value)
        if unknown := values.keys() - readers.keys():
            raise ValueError(f"a {kind.__name__} has no {', '.join(sorted(unknown))}")
        return kind(**{name: readers[name](each, file) for name, each in values.items()})

    return read


def _union_reader(arguments: tuple[Any, ...]) -> _Reader:
    readers = [_reader(argument) for argument in arguments if argument is not types.NoneType]

    def read(value: object, file: _File) -> Any:
        if value is None and types.NoneType in arguments:
            return None
        for read_option in readers[:-1]:
            # The types of a union differ in JSON, so that the wrong one raises.
            with suppress(TypeError):
                return read_option(value, file)
        return readers[-1](value, file)

    return read


def _mapping_reader(key_type: type, value_type: Any) -> _Reader:
    read = _reader(value_type)

    def key_of(key: str) -> str | int:
        if key_type is str:
            return key
        # `int` also takes " 1" and "1_0", with which one key could come twice.
        if str(int(key)) != key:
            raise ValueError(f"{key!r} is no number as save writes it")
        return int(key)

    return lambda value, file: {key_of(key): read(each, file) for key, each in json_object(value).items()}


def _read_capture(value: object, file: _File) -> Capture:
    index = integer(json_object(value)["capture"])
    _in_range("a capture", index, len(file.captures))
    return file.captures[index]


def _among(value: object, allowed: tuple[object, ...]) -> object:
    if value not in allowed:
        raise ValueError(f"{brief(value)} is none of {', '.join(map(repr, allowed))}")
    return value


def _float(value: object) -> float:
    if isinstance(value, dict):
        return _NOT_FINITE[text(cast("dict[str, object]", value)["float"])]
    float(number(value))  # raises OverflowError for a huge integer
    return cast("float", value)


def _column(value: object, dtype: np.dtype[Any], unpacker: Unpacker) -> NDArray[Any]:
    column = json_object(value)
    stored = text(column["dtype"])
    if stored not in _DTYPES or np.dtype(stored).kind != dtype.kind:
        raise TypeError(f"a column of {dtype} was expected, not of {stored}")
    shape = [integer(size) for size in json_list(column["shape"])]
    if any(size < 0 for size in shape):
        raise ValueError("a shape is negative")
    # `astype` copies, so the column can be written to.
    return np.frombuffer(_unpacked(column, unpacker), stored).reshape(shape).astype(dtype)


def _check(result: object) -> None:
    """Raise ValueError if parts of a result don't fit together, such as columns of different lengths."""
    match result:
        case Comparison():
            lengths = {samples.count for samples in result.samples.values()}
            if result.baseline not in result.samples or len(lengths) != 1:
                raise ValueError("the baseline is not among the samples, or these are not of the same rounds")
        case MemoryUse() | Sweep():
            _check_axes(result.axes, result.rows)
            if isinstance(result, Sweep) and not result.axes:
                raise ValueError("nothing was varied")
        case Roofline():
            if any(point.bound not in BOUNDS for point in result.points):
                raise ValueError("a kernel has an unknown limit")
        case WhatIf():
            if not result.rows:
                raise ValueError("the plain function is missing")
        case HotPaths():
            for row in result.functions:
                _check_calls(row.times)
        case DynamicReport():
            _check_sizes(result.sizes)
        case Profile():
            if result.timeline is not None:
                _check_timeline(result.timeline, len(result.ops))
            if result.events is not None:
                _check_events(result.events)
        case _:
            pass


def _check_calls(times: CallTimes) -> None:
    if len({len(times), len(times.starts), len(times.seconds), len(times.ways)}) != 1:
        raise ValueError("the columns of a function's calls differ in length")


def _check_sizes(rows: Sequence[PaddedSizes]) -> None:
    if any(not row.seconds or row.sizes.keys() != row.bucket.keys() for row in rows):
        raise ValueError("sizes have no time, or a bucket of other dimensions")


def _check_axes(axes: Sequence[Axis], rows: Sequence[SweepRow | MemoryRow]) -> None:
    if any(axis.numbers is not None and len(axis.numbers) != len(axis) for axis in axes):
        raise ValueError("an axis has not as many numbers as labels")
    for row in rows:
        if row.at and len(row.at) != len(axes):
            raise ValueError("a row needs one value per axis")
        for at, axis in zip(row.at, axes, strict=False):
            _in_range("a row", at, len(axis))


def _check_timeline(timeline: Timeline, ops: int) -> None:
    columns = (timeline.start, timeline.end, timeline.thread, timeline.op, timeline.waits)
    if any(column.shape != (len(timeline),) for column in columns):
        raise ValueError("the columns of the timeline differ in length")
    _in_range("a thread", timeline.thread, len(timeline.threads))
    _in_range("an op", timeline.op, ops)


def _check_events(events: Events) -> None:
    columns = (events.start, events.end, events.thread, events.kind, events.what)
    if any(column.shape != (len(events),) for column in columns) or events.windows.shape[1:] != (2,):
        raise ValueError("the columns of the events differ in length")
    _in_range("a thread", events.thread, len(events.threads))
    _in_range("a kind", events.kind, HOST + 1)
    _in_range("an op", events.what[events.kind == THUNK], len(events.ops))
    # `what` of a record or a region is no index.
    _in_range("a name", events.what[np.isin(events.kind, (WAIT, BETWEEN, HOST))], len(events.names))
    _in_range("the caller's thread", events.python + 1, len(events.threads) + 1)


def _in_range(what: str, index: int | NDArray[Any], size: int) -> None:
    if np.any(np.less(index, 0) | np.greater_equal(index, size)):
        raise ValueError(f"{what} has an index out of range: there are {size:,}")
