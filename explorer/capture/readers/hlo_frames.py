"""Where an HLO instruction comes from: the module's tables of stack frames, or the place inside its own metadata."""

from __future__ import annotations

import re
from collections.abc import Sequence

from explorer.capture.readers.attribute_values import unescape
from explorer.model.graph import Frame

_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*+)"')
_STACK = re.compile(r"stack_frame_id=(\d{1,9})")
_FILE = re.compile(r'source_file="((?:[^"\\]|\\.)*+)"')
_POSITION = re.compile(r"\b(source_line|source_end_line|source_column|source_end_column)=(\d{1,9})")
# As today's XLA prints it, around it the instruction's attributes.
_USUAL = re.compile(r'([^"]*+)(?<=, metadata=\{op_name=)"([^"\\]*+)"(?: stack_frame_id=(\d{1,9}))?\}(.*)')
_METADATA = re.compile(r'metadata=\{(?:[^"{}]++|"(?:[^"\\]|\\.)*+"|\{[^{}]*+\})*+\}')
_QUOTES = re.compile(r'"(?:[^"\\]|\\.)*+"')
_ROW = re.compile(r"(\d{1,9}) (?:\"(.*)\"|\{(.*)\})\s*$")
_FIELD = re.compile(r"\b(\w++)=(-?\d{1,9})(?!\d)")
TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
# A table's name or a row of it. XLA doesn't escape what is in quotes.
TABLE_ROW = re.compile(
    r'FileNames|FunctionNames|FileLocations|StackFrames|\d++\s*+(?:"[^\n]*"(?=\s*?(?:\n|\Z))|"[^"\n]*+"|\{[^{}\n]*+\})'
)


def read_frames(lines: Sequence[str]) -> list[Frame]:
    """The FileNames, FunctionNames, FileLocations and StackFrames tables, as one table of frames.

    Args:
        lines: A module's text from the first table on, or any part of it.
    """
    tables: dict[str, dict[int, str]] = {name: {} for name in TABLES}
    table: dict[int, str] | None = None
    for line in lines:
        if line.rstrip() in tables:
            table = tables[line.rstrip()]
        elif table is not None and (row := _ROW.match(line)):
            table[int(row[1])] = row[2] if row[2] is not None else row[3]
    locations = {key: _fields(row) for key, row in tables["FileLocations"].items()}
    stack = {key: _fields(row) for key, row in tables["StackFrames"].items()}
    # Ids count from 1, and most XLAs print a parent one too high, so that it is never 0; their proto has it right.
    shift = 2 if all(row.get("parent_frame_id", 0) > 0 for row in stack.values()) else 1
    frames: list[Frame] = []
    # A damaged id may be any number: no more rows than the table has.
    for key in range(1, min(max(stack, default=0), 2 * len(stack)) + 1):
        row = stack.get(key, {})
        place = locations.get(row.get("file_location_id", 0), {})
        frames.append(
            Frame(
                file=tables["FileNames"].get(place.get("file_name_id", 0), ""),
                function=tables["FunctionNames"].get(place.get("function_name_id", 0), ""),
                line=place.get("line", 0),
                column=place.get("column", 0),
                end_line=place.get("end_line", 0),
                end_column=place.get("end_column", 0),
                parent=row.get("parent_frame_id", 0) - shift,
            )
        )
    return frames


def _fields(row: str) -> dict[str, int]:
    return {key: int(value) for key, value in _FIELD.findall(row)}


def read_metadata(rest: str) -> tuple[str, int, Frame | None, str]:
    """What follows an instruction's operands: its op_name, and its row of the frame table or its own frame.

    The op_name is empty where there is none; the row counts from 0 and is -1 where there is none. Last comes what
    follows without the metadata: the instruction's own attributes.
    """
    if usual := _USUAL.fullmatch(rest):
        return usual[2], int(usual[3] or 0) - 1, None, usual[1][: -len(", metadata={op_name=")] + usual[4]
    start = _metadata(rest)
    if start < 0:
        return "", -1, None, rest
    end = metadata.end() if (metadata := _METADATA.match(rest, start)) else len(rest)
    named = _OP_NAME.search(rest, start)
    stacked = _STACK.search(rest, named.end() if named else start)
    file = _FILE.search(rest, start)
    frame = None
    if file is not None and stacked is None:  # XLA before it had tables
        position = {key: int(value) for key, value in _POSITION.findall(rest, start)}
        line = position.get("source_line", 0)
        frame = Frame(
            file=unescape(file[1]),
            function="",
            line=line,
            column=position.get("source_column", 0),
            end_line=position.get("source_end_line", line),
            end_column=position.get("source_end_column", 0),
        )
    attributes = rest[:start].rstrip().removesuffix(",") + rest[end:]
    return unescape(named[1]) if named else "", int(stacked[1]) - 1 if stacked else -1, frame, attributes


def _metadata(rest: str) -> int:
    """Where the instruction's own `metadata={` is, not one in a string or of a sharding; -1 if it isn't there."""
    start = rest.find("metadata={")
    while start >= 0:
        before = _QUOTES.sub("", rest[:start])
        if '"' not in before and before.count("{") == before.count("}"):
            break
        start = rest.find("metadata={", start + 1)
    return start
