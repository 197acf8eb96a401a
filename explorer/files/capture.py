"""The versioned binary form of a capture: what `save` writes, what the viewer in the browser reads.

    magic "EXPLORER" · version u32 · unpacked size u64 · payload size u64 · blake2b-16 of the payload · payload

little-endian. The payload is gzip, because every browser unpacks it natively, of

    header size u32 · header (JSON) · blobs, each starting at a multiple of 4

The header names each blob by offset and size: text as UTF-8, integer columns as differences split into byte planes,
which is what makes 100,000 rows compress to a few kilobytes. Nothing in it is executed or unpickled.

A stage's attributes are its `attribute_columns` (`attribute_start`, `attribute_key`, `attribute_value`, compressed
rows) with the strings `attribute_keys` and `attribute_values`; `attributes` are the module's own. Files of version
0.1.0 have none, and it reads those that have them. For 100,000 instructions they are 2 % of a file.
"""

from __future__ import annotations

import gzip
import json
import struct
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from explorer.errors import CaptureFileError
from explorer.files.blobs import Blobs, read_column, read_numbers, read_table, table
from explorer.files.passes import pack_passes, unpack_passes
from explorer.files.validate import dataclass_from, floats, integer, integers, text, texts, texts_by_name
from explorer.model.attributes import AttributeColumns, Attributes
from explorer.model.capture import Capture, Constant, Durations
from explorer.model.fates import KINDS as FATES
from explorer.model.fates import Fates
from explorer.model.findings.findings import Findings
from explorer.model.graph import Frame, Graph, Group, Ints
from explorer.model.live_memory import KINDS
from explorer.model.passes import Passes
from explorer.model.source import Source
from explorer.model.stage import Stage

__all__ = ["VERSION", "decode", "encode", "load", "pack"]

VERSION = 2
_MAGIC = b"EXPLORER"
_PREFIX = struct.Struct("<8sIQQ16s")
_COLUMNS = ("op", "type", "scope", "operand_start", "operand", "group", "frame", "line")
_LEVEL = 6  # gzip's own default: level 9 takes twice the time for 2 % of the size


def encode(capture: Capture) -> bytes:
    """Everything of a capture as bytes; reads the stages that were not read yet."""
    blobs = Blobs()
    links = capture.links
    fates: Mapping[str, Fates] = capture.all_fates if any(stage.name == "hlo" for stage in capture.stages) else {}
    header = {
        "function": capture.function,
        "file": capture.file,
        "line": capture.line,
        "signature": capture.signature,
        "durations": asdict(capture.durations),
        "environment": dict(capture.environment),
        "failure": capture.failure,
        "cost": dict(capture.cost),
        "memory": dict(capture.memory),
        "constants": [asdict(constant) for constant in capture.constants],
        "findings": capture.findings.to_dict(),
        "sources": [asdict(source) for source in capture.sources.values()],
        "stages": [
            _stage(blobs, capture, stage, links.keys[stage.name]) | _fates(blobs, fates.get(stage.name))
            for stage in capture.stages
        ],
        "passes": pack_passes(capture.passes, blobs) if capture.has_passes else None,
        "lines": _lines(capture),
    }
    return pack(header, blobs)


def pack(header: dict[str, Any], blobs: Blobs) -> bytes:
    """A header and what it refers to, as one file."""
    head = json.dumps(header, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )
    head += b" " * (-(4 + len(head)) % 4)
    raw = b"".join([struct.pack("<I", len(head)), head, *blobs.parts])
    payload = gzip.compress(raw, _LEVEL, mtime=0)
    return _PREFIX.pack(_MAGIC, VERSION, len(raw), len(payload), _digest(payload)) + payload


def load(path: str | PathLike[str]) -> Capture:
    """The capture in a file that `Capture.save` wrote."""
    return decode(Path(path).read_bytes())


def decode(data: bytes) -> Capture:
    """The capture that `encode` was given.

    Raises:
        CaptureFileError: The data is no capture, is truncated or altered, or comes from a newer Explorer.
    """
    raw = memoryview(_unpack(data))
    with _refusal():
        (size,) = struct.unpack_from("<I", raw)
        header = json.loads(bytes(raw[4 : 4 + size]))
        # The checksum is the payload's: that an altered prefix says another format shows in what only a later one has.
        if data[len(_MAGIC)] == 1 and any("measures" in stage for stage in header["stages"]):
            raise CaptureFileError("this capture was altered: it says format 1, and has what came with format 2.")
        blobs = raw[4 + size :]
        sources = {source["file"]: dataclass_from(Source, source) for source in header["sources"]}
        return Capture(
            function=text(header["function"]),
            file=text(header["file"]),
            line=integer(header["line"]),
            signature=text(header["signature"]),
            stages=tuple(_read_stage(stage, blobs) for stage in header["stages"]),
            durations=dataclass_from(Durations, header["durations"]),
            environment=texts_by_name(header["environment"]),
            failure=text(header["failure"]),
            cost=floats(header["cost"]),
            memory=integers(header["memory"]),
            constants=tuple(dataclass_from(Constant, constant) for constant in header["constants"]),
            # Captures from before there were rules have none.
            findings=Findings.from_dict(header["findings"]) if "findings" in header else Findings(()),
            read_source=sources.get,
            read_passes=_read_passes(header.get("passes"), blobs),
        )


def _read_passes(header: dict[str, Any] | None, blobs: memoryview) -> Callable[[], Passes] | None:
    def read() -> Passes:
        assert header is not None
        with _refusal():
            return unpack_passes(header, blobs)

    return None if header is None else read


@contextmanager
def _refusal() -> Generator[None]:
    """A checksum says that the bytes are as written, not who wrote them: what doesn't fit the format is refused."""
    try:
        yield
    except (KeyError, TypeError, ValueError, struct.error, IndexError, AttributeError) as error:
        raise CaptureFileError(f"this capture's content does not fit its format: {error}.") from error


def _unpack(data: bytes) -> bytes:
    """The payload, unpacked; every way in which the bytes can be wrong is told apart."""
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
        # Never more than was promised: a small file cannot unpack to fill the memory.
        raw = zlib.decompressobj(wbits=31).decompress(payload, unpacked + 1)
    except (zlib.error, OverflowError) as error:  # the second for a size that no memory has
        raise CaptureFileError(f"this capture was altered: {error}.") from error
    if len(raw) != unpacked:
        raise CaptureFileError("this capture was altered: it unpacks to another size than it says.")
    return raw


def _digest(payload: bytes) -> bytes:
    return blake2b(payload, digest_size=16).digest()


def _stage(blobs: Blobs, capture: Capture, stage: Stage, keys: Mapping[str, Ints]) -> dict[str, Any]:
    graph = stage.graph
    tree, placed = graph.hierarchy, graph.placed
    return {
        "name": stage.name,
        "text": blobs.add(stage.text.encode("utf-8", "surrogatepass")),
        "names": list(graph.names),
        "ops": list(graph.ops),
        "types": list(graph.types),
        "scopes": list(graph.scopes),
        "columns": {name: blobs.column(getattr(graph, name)) for name in _COLUMNS},
        "unread": blobs.column(graph.unread),
        "measures": {name: blobs.numbers(values) for name, values in graph.measures.items()},
        "attributes": dict(graph.attributes),
        **_node_attributes(blobs, graph.attribute_table.columns),
        "groups": table(blobs, graph.groups, Group),
        "frames": table(blobs, graph.frames, Frame),
        # For the viewer, which has no reader of its own; a loaded capture makes them anew.
        "coverage": float((placed >= 0).mean()) if len(placed) else 0.0,
        "placed": blobs.column(placed),
        "keys": {name: blobs.column(values) for name, values in keys.items()},
        "tree": table(blobs, tree.groups, Group),
        "tree_of": blobs.column(tree.group),
        "repeat": blobs.column(tree.repeat),
        "differ": blobs.column(tree.differ),
        "twin": blobs.column(tree.twin),
        "memory": _memory(blobs, capture) if stage.name == "hlo" else None,
    }


def _node_attributes(blobs: Blobs, columns: AttributeColumns) -> dict[str, Any]:
    names = ("start", "key", "value")
    return {
        "attribute_keys": list(columns.keys),
        "attribute_values": list(columns.values),
        "attribute_columns": {f"attribute_{name}": blobs.column(getattr(columns, name)) for name in names},
    }


def _read_node_attributes(header: dict[str, Any], blobs: memoryview) -> Attributes | None:
    """None for a file of version 0.1.0, which has no attributes."""
    if "attribute_columns" not in header:
        return None
    places = header["attribute_columns"]
    start, key, value = (read_column(places[f"attribute_{name}"], blobs) for name in ("start", "key", "value"))
    columns = AttributeColumns(start, key, value, texts(header["attribute_keys"]), texts(header["attribute_values"]))
    return Attributes(lambda: columns)


def _fates(blobs: Blobs, fates: Fates | None) -> dict[str, Any]:
    """What became of a stage's equations, for the viewer; a loaded capture infers it anew."""
    if fates is None:
        return {}
    columns = {
        name: blobs.column(getattr(fates, name)) for name in ("kind", "inferred", "why", "kernel_start", "kernel")
    }
    return {"fates": {"kinds": list(FATES), "reasons": fates.reasons, "mapped": fates.mapped, "columns": columns}}


def _lines(capture: Capture) -> list[dict[str, Any]]:
    """What each line costs, for the viewer; without the texts, which it has."""
    if not any(stage.name == "hlo" for stage in capture.stages):
        return []
    return [{name: value for name, value in asdict(row).items() if name != "text"} for row in capture.lines()]


def _memory(blobs: Blobs, capture: Capture) -> dict[str, Any] | None:
    """The live ranges, for the viewer; a loaded capture makes them anew. A text out of order may have none."""
    try:
        memory = capture.live_memory
    except Exception:  # what the text does wrong is no reason not to show the rest of it
        return None
    columns = {name: getattr(memory, name) for name in ("order", "node", "array", "kind", "space", "start", "end")}
    low, high = memory.size & 0xFFFFFF, memory.size >> 24  # a buffer of a GPU may have more bytes than an int32 counts
    columns |= {"low": low.astype(np.int32), "high": high.astype(np.int32)}
    return {
        "kinds": list(KINDS),
        "scheduled": memory.is_scheduled,
        "columns": {name: blobs.column(values) for name, values in columns.items()},
        "donations": blobs.column([donation.argument.index for donation in memory.donations]),
    }


def _read_stage(header: dict[str, Any], blobs: memoryview) -> Stage:
    def read() -> tuple[str, Graph]:
        with _refusal():
            start, size = header["text"]
            # Format 1 had no measures.
            measures = {name: read_numbers(place, blobs) for name, place in header.get("measures", {}).items()}
            graph = Graph(
                names=texts(header["names"]),
                ops=texts(header["ops"]),
                types=texts(header["types"]),
                scopes=texts(header["scopes"]),
                groups=read_table(header["groups"], blobs, Group),
                frames=read_table(header["frames"], blobs, Frame),
                **{name: read_column(place, blobs) for name, place in header["columns"].items()},
                measure=lambda _: measures,
                unread=tuple(read_column(header["unread"], blobs).tolist()) if "unread" in header else (),
                attributes=texts_by_name(header.get("attributes", {})),
                node_attributes=_read_node_attributes(header, blobs),
            )
            _check(graph)
            content = bytes(blobs[start : start + size]).decode("utf-8", "surrogatepass")
            return content, graph if graph.node_attributes else graph.with_attributes_of(content)

    return Stage(text(header["name"]), read)


def _check(graph: Graph) -> None:
    """Raise ValueError if an index of a graph leads out of it."""
    size = len(graph)
    tables = {"op": len(graph.ops), "type": len(graph.types), "scope": len(graph.scopes)}
    optional = {"group": len(graph.groups), "frame": len(graph.frames)}
    for name, length in {**tables, **optional, "line": 2**31}.items():
        column: Ints = getattr(graph, name)
        lowest = -(2**31) if name == "line" else -1 if name in optional else 0
        if len(column) != size or (size and not lowest <= column.min() <= column.max() < length):
            raise ValueError(f"column {name} leads out of the graph")
    starts = graph.operand_start
    is_rising = len(starts) == size + 1 and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
    if not is_rising or starts[-1] != len(graph.operand) or ((graph.operand < 0) | (graph.operand >= size)).any():
        raise ValueError("an operand leads out of the graph")
    _check_attributes(graph.attribute_table.columns, size)
    for name, values in graph.measures.items():
        if len(values) != size:
            raise ValueError(f"measure {name} has {len(values):,} values for {size:,} nodes")
    parents = [(group.parent, len(graph.groups)) for group in graph.groups]
    parents += [(group.caller, size) for group in graph.groups]
    parents += [(frame.parent, len(graph.frames)) for frame in graph.frames]
    if not all(-1 <= index < length for index, length in parents):
        raise ValueError("a group or frame leads out of the graph")


def _check_attributes(columns: AttributeColumns, size: int) -> None:
    starts = columns.start
    is_rising = len(starts) == size + 1 and starts[0] == 0 and bool((np.diff(starts) >= 0).all())
    if not is_rising or not starts[-1] == len(columns.key) == len(columns.value):
        raise ValueError("the attributes are not those of the graph's nodes")
    for codes, strings in ((columns.key, columns.keys), (columns.value, columns.values)):
        if len(codes) and not 0 <= codes.min() <= codes.max() < len(strings):
            raise ValueError("an attribute leads out of its table")
