"""Reading of captures: the header and the blobs in their container.

A stage's attributes are compressed rows, `attribute_columns`, with the strings `attribute_keys` and
`attribute_values`; `attributes` are the module's own. Files of version 0.1.0 have none and take them from the text.

Each stage but the first has `sets`, the columns of `explorer.model.links` that link it to the first. Exact links are
read from the file; inferred ones are inferred again by today's rules. Formats 1 and 2 had `keys` instead: a number
for each node of each stage, equal for corresponding nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

from explorer.errors import CaptureFileError
from explorer.files.capture_writing import COLUMNS
from explorer.files.container import (
    LARGEST,
    BlobReader,
    Unpacker,
    are_row_starts,
    check_frames,
    dataclass_from,
    floats,
    integer,
    integers,
    read_column,
    read_numbers,
    read_table,
    refusal,
    text,
    texts,
    texts_by_name,
    unpack,
    with_entry,
)
from explorer.files.disk import read_bytes, write_whole
from explorer.files.passes import read_exact_sets, unpack_machine_code, unpack_passes
from explorer.model.attributes import AttributeColumns, Attributes
from explorer.model.bookmark import Bookmark
from explorer.model.capture import Capture
from explorer.model.findings import Findings
from explorer.model.graph import Frame, Graph, Group, Ints
from explorer.model.machine_code import MachineCode
from explorer.model.passes import Passes
from explorer.model.stage import Constant, Durations, Source, Stage
from explorer.model.types import measure_types

_ORDER = ("jaxpr", "stablehlo", "before", "hlo")
_MAX_STAGES = 16  # a capture has three, and up to two more for an opened module


def save(capture: Capture, path: str | PathLike[str]) -> None:
    """Write a capture and its bookmark to a file, whole or not at all."""
    if capture.read_passes is not None:  # a display may skip unread passes, a file may not
        _ = capture.passes
    bookmark = capture.bookmark.to_dict()
    write_whole(path, with_entry(capture.wire, "bookmark", bookmark) if bookmark else capture.wire)


def load(path: str | PathLike[str]) -> Capture:
    """Return the capture in a file.

    Raises:
        CaptureFileError: As `decode`.
        OSError: The file can't be read.
    """
    return decode(read_bytes(path, LARGEST, "a capture", CaptureFileError))


def decode(data: bytes, unpacker: Unpacker | None = None) -> Capture:
    """Return the capture encoded in `data`.

    Args:
        unpacker: Budget of the file that contains `data`; None if `data` is the whole file.

    Raises:
        CaptureFileError: The data is no capture, truncated, altered, too large, or from a newer Explorer.
    """
    version, header, blobs = unpack(data, unpacker)
    with refusal():
        sources = {source["file"]: dataclass_from(Source, source) for source in header["sources"]}
        if len(header["stages"]) > _MAX_STAGES:
            raise ValueError(f"it has {len(header['stages']):,} stages; at most {_MAX_STAGES} are read")
        order = [_ORDER.index(stage["name"]) for stage in header["stages"] if stage["name"] in _ORDER]
        if order != sorted({*order}):
            raise ValueError("its stages are in another order than a program has them")
        # The checksum covers the payload only; an altered version number shows in what the stages have.
        for stage in header["stages"]:
            is_format = 3 if "keys" not in stage else 2 if "measures" in stage else 1
            if version != is_format:
                raise CaptureFileError(
                    f"this capture was altered: it claims format {version}, but has the content of format {is_format}."
                )
        return Capture(
            function=text(header["function"]),
            file=text(header["file"]),
            line=integer(header["line"]),
            signature=text(header["signature"]),
            stages=tuple(_read_stage(stage, blobs) for stage in header["stages"]),
            # Old files don't say what JAX reused.
            durations=replace(
                dataclass_from(Durations, header["durations"]), reused=tuple(texts(header.get("reused", [])))
            ),
            environment=texts_by_name(header["environment"]),
            failure=text(header["failure"]),
            cost=floats(header["cost"]),
            memory=integers(header["memory"]),
            constants=tuple(dataclass_from(Constant, constant) for constant in header["constants"]),
            # The first captures have no findings.
            findings=Findings.from_dict(header["findings"]) if "findings" in header else Findings(()),
            read_source=sources.get,
            read_passes=_read_passes(header.get("passes"), blobs, header["stages"]),
            read_code=_read_code(header.get("machine_code"), blobs),
            recording_note=text(header.get("recording_note", "")),
            exact_sets=read_exact_sets(header["stages"], blobs),
            saved_bookmark=Bookmark.from_dict(header.get("bookmark", {})),
        )


def _read_code(header: dict[str, Any] | None, blobs: BlobReader) -> Callable[[], MachineCode] | None:
    def read() -> MachineCode:
        assert header is not None
        with refusal():
            return unpack_machine_code(header, blobs)

    return None if header is None else read


def _read_passes(
    header: dict[str, Any] | None, blobs: BlobReader, stages: Sequence[dict[str, Any]]
) -> Callable[[], Passes] | None:
    def read() -> Passes:
        assert header is not None
        with refusal():
            return unpack_passes(header, blobs, len(stages[0]["names"]) if stages else 0)

    return None if header is None else read


def _read_node_attributes(header: dict[str, Any], blobs: BlobReader) -> Attributes | None:
    """Return the nodes' attributes; None for a file of version 0.1.0, which lacks them."""
    if "attribute_columns" not in header:
        return None
    places = header["attribute_columns"]
    start, key, value = (read_column(places[f"attribute_{name}"], blobs) for name in ("start", "key", "value"))
    columns = AttributeColumns(start, key, value, texts(header["attribute_keys"]), texts(header["attribute_values"]))
    return Attributes(lambda: columns)


def _read_stage(header: dict[str, Any], blobs: BlobReader) -> Stage:
    def read() -> tuple[str, Graph]:
        with refusal():
            # Format 1 had no measures.
            measures = {name: read_numbers(place, blobs) for name, place in header.get("measures", {}).items()}
            graph = Graph(
                names=texts(header["names"]),
                ops=texts(header["ops"]),
                types=texts(header["types"]),
                scopes=texts(header["scopes"]),
                groups=read_table(header["groups"], blobs, Group),
                frames=read_table(header["frames"], blobs, Frame),
                **{name: read_column(header["columns"][name], blobs) for name in COLUMNS},  # pyright: ignore
                measure=lambda _: measures,
                unread=tuple(read_column(header["unread"], blobs).tolist()) if "unread" in header else (),
                attributes=texts_by_name(header.get("attributes", {})),
                node_attributes=_read_node_attributes(header, blobs),
            )
            _check(graph)
            # The loops around each equation are counted in one pass, callers first.
            if header["name"] == _ORDER[0]:
                _check_callers(graph)
            content = blobs.text(header["text"])
            return content, graph if graph.node_attributes else graph.with_attributes_of(content)

    # Read on first access, because a view of one stage needs no other.
    return Stage(text(header["name"]), read)


def _check(graph: Graph) -> None:
    """Raise ValueError if a column of a graph has a wrong length or an index out of range."""
    size = len(graph.names)
    _check_columns(graph, size)
    if not are_row_starts(graph.operand_start, size, len(graph.operand)) or not _is_within(graph.operand, 0, size):
        raise ValueError("an operand is outside of the graph")
    _check_attributes(graph.attribute_table.columns, size)
    for name, values in graph.measures.items():
        if len(values) != size:
            raise ValueError(f"measure {name} has {len(values):,} values for {size:,} nodes")
    parents = [(group.parent, len(graph.groups)) for group in graph.groups]
    parents += [(group.caller, size) for group in graph.groups]
    parents += [(frame.parent, len(graph.frames)) for frame in graph.frames]
    if not all(-1 <= index < length for index, length in parents):
        raise ValueError("a group or frame refers to something outside of the graph")
    check_frames(graph.frames)
    measure_types(graph.types)  # raises UnreadableTextError for types that no compiler writes


def _check_callers(graph: Graph) -> None:
    """Raise ValueError unless each group of a jaxpr's graph comes after the group of its caller."""
    if any(graph.group[group.caller] >= i for i, group in enumerate(graph.groups) if group.caller >= 0):
        raise ValueError("a part of the jaxpr is before its caller")


def _check_columns(graph: Graph, size: int) -> None:
    limits = {
        "op": (0, len(graph.ops)),
        "type": (0, len(graph.types)),
        "scope": (0, len(graph.scopes)),
        "group": (-1, len(graph.groups)),
        "frame": (-1, len(graph.frames)),
        "line": (-(2**31), 2**31),
    }
    for name, (lowest, end) in limits.items():
        column: Ints = getattr(graph, name)
        if len(column) != size or not _is_within(column, lowest, end):
            raise ValueError(f"column {name} has an index outside of the graph")


def _check_attributes(columns: AttributeColumns, size: int) -> None:
    if len(columns.key) != len(columns.value) or not are_row_starts(columns.start, size, len(columns.key)):
        raise ValueError("the attributes are not those of the graph's nodes")
    for codes, strings in ((columns.key, columns.keys), (columns.value, columns.values)):
        if not _is_within(codes, 0, len(strings)):
            raise ValueError("an attribute has an index outside of its table")


def _is_within(indices: Ints, lowest: int, end: int) -> bool:
    return not len(indices) or bool(lowest <= indices.min() <= indices.max() < end)
