"""The text after an HLO instruction's operands: attributes `key=value`, and metadata with the source.

A module's first line has attributes as well, and its tables hold the stack frames that metadata refers to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from explorer.capture.readers.graph_builder import shorten_value, unescape
from explorer.model.graph import CALL_ROLES, Frame

_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_CLOSED = r"""\"(?:[^"\\]|\\.)*+\"|'[^']*+'"""
_COMMENT = r"/\*[^*]*+\*/"
_SHORT = r'"[^"\\]*+"'


def _bracketed(inner: str) -> str:
    """Return a regular expression of brackets with strings without escapes and `inner` in them."""
    return rf"[({{\[](?:[^\"(){{}}\[\]]++|{_SHORT}{inner})*+[)}}\]]"


# A value without nested brackets, as nearly all; or as deep as a CPU's backend_config.
_PLAIN = re.compile(rf', ([\w.\-]++)=([^,"(){{}}\[\]]++|\{{[^"{{}}]*+\}}|{_SHORT}|{_bracketed("|" + _bracketed(""))})')
_TOKEN = re.compile(rf"{_STRING}|/\*(?:[^*]|\*(?!/))*+\*/|[(){{}}\[\],]|[^\"(){{}}\[\],/]++|/")
_STEP = {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
# In the JSON that cuBLAS is configured by, the contracted dimensions of the left operand.
_CONTRACTED = re.compile(r'"lhs_contracting_dimensions":\[([\d,"]*)')
# The compiler's estimate for an instruction: a GPU's from several named models, a TPU's in cycles.
_MODEL = re.compile(r'"exec_time_us":([\d.eE+-]+)[^{}]*?"name":"([^"]*)"')
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
# The best model first: it uses the tiles that XLA chose. The model without a name counts every
# access of a softmax as uncoalesced: 8.6 ms for 256 × 256 numbers, where the other has 0.6 µs.
_MODELS = ("indexing-cost-model", "")
_HEADER = re.compile(r"HloModule\s+([^\s,]++)")


def read_attributes(text: str) -> list[tuple[str, str]]:
    """Return the pairs of a text such as `, dimensions={0,1}, to_apply=%add`, each key once.

    Strings lose their quotes, computations their `%`. The `backend_config` gives further keys: XLA's `known_trip_count`
    of a loop; `lhs_contracting_dims` of a library's matrix product, as a `dot` has it; the compiler's estimate,
    `estimated_microseconds` on a GPU, `estimated_cycles` on a TPU.
    """
    pairs: list[tuple[str, str]] = _PLAIN.findall(text)
    plain = sum(map(len, chain.from_iterable(pairs))) + 3 * len(pairs)  # `, ` and `=` of each
    if plain != len(text) or "/*" in text:
        pairs = [(key.strip(), value.strip()) for key, sign, value in map(_halves, _pieces(text)) if sign]
    attributes: dict[str, str] = {}
    for key, value in _with_devices(text, pairs):
        if value.startswith('"') and value.endswith('"'):
            value = unescape(value[1:-1])
        elif key in CALL_ROLES:
            value = value.replace("%", "")
        if key == "backend_config":
            attributes |= _estimate(value)
        if key == "backend_config" and (trips := _TRIPS.search(value)):
            attributes["known_trip_count"] = trips[1]
        if key == "backend_config" and (contracted := _CONTRACTED.search(value)):
            attributes["lhs_contracting_dims"] = "{" + contracted[1].replace('"', "") + "}"
        attributes.setdefault(key, shorten_value(value))
    return list(attributes.items())


def _with_devices(text: str, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the pairs with `device_ids` moved into `replica_groups`: `mesh['x'=4], device_ids=(0,2,1,3) {'x'}`."""
    if ", device_ids=" not in text:
        return pairs
    devices = dict(pairs).get("device_ids", "")
    return [
        (key, f"{value}, device_ids={devices}" if key == "replica_groups" and devices else value)
        for key, value in pairs
        if key != "device_ids"
    ]


def _estimate(config: str) -> dict[str, str]:
    """Return the compiler's estimate of an instruction's time, by the name of the attribute.

    The key is `estimated_microseconds` or `estimated_cycles`. Empty if `config` has no estimate.
    """
    if '"exec_time_us"' in config:
        models = {name: microseconds for microseconds, name in _MODEL.findall(config)}
        for name in _MODELS:
            if float(models.get(name, 0)) > 0:
                return {"estimated_microseconds": models[name]}
    cycles = _CYCLES.search(config)
    return {"estimated_cycles": cycles[1]} if cycles and cycles[1] != "0" else {}


def read_header(line: str) -> dict[str, str]:
    """Return `name` and the attributes of the line `HloModule name, key=value, …`; empty for another line."""
    name = _HEADER.match(line)
    if name is None:
        return {}
    pairs = (_halves(piece) for piece in _pieces(line[name.end() :]))
    return {"name": name[1]} | {key.strip(): value.strip().strip('"') for key, sign, value in pairs if sign}


def _halves(piece: str) -> tuple[str, str, str]:
    return piece.partition("=")


def _pieces(text: str) -> list[str]:
    """Return the pieces of a text between commas outside brackets and strings, without comments."""
    pieces, depth = [[""]], 0
    for token in _TOKEN.findall(text):
        if token == "," and depth <= 0:
            pieces.append([])
        elif not token.startswith("/*"):
            depth += _STEP.get(token, 0)
            pieces[-1].append(token)
    return ["".join(piece) for piece in pieces]


def _brackets(depth: int) -> str:
    """Return a regular expression of brackets that hold others, `depth` levels deep."""
    inner = f"|{_brackets(depth - 1)}" if depth else ""
    return rf"[({{\[](?:[^\"'(){{}}\[\]/]++|{_CLOSED}|{_COMMENT}{inner})*+[)}}\]]"


# A text of attributes only. A literal has a space after its type.
_VALUE = rf"[^\"'(){{}}\[\]/,=\s<]++|<=|\ (?=[{{(\d\-]|true|false|nan|inf)|{_CLOSED}|{_brackets(20)}"
_WHOLE = re.compile(rf"(?:,\ [\w.\-]++=(?:{_VALUE})++)*+")
# A computation written out at its call: after a brace, `name =`. A comment there is left to the tokens.
_INSIDE = re.compile(
    rf"\b(?:{'|'.join(CALL_ROLES)})=\{{(?:\s*+\{{)?\s*+(?:ROOT[\s%]|%[\w.\-]++\s*+=|[\w.\-]++\s++=|/(?!\*index=))"
)
_LATER_INSIDE = re.compile(r"branch_computations=\{[^{}]*+\{")


def is_whole(attributes: str) -> bool:
    """Return True if the text is attributes only, and none of them holds instructions."""
    if _WHOLE.fullmatch(attributes) is None or _INSIDE.search(attributes):
        return False
    return "branch_computations" not in attributes or not _LATER_INSIDE.search(attributes)


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


def read_frames(lines: Sequence[str]) -> list[Frame]:
    """Return the FileNames, FunctionNames, FileLocations and StackFrames tables as one table of frames."""
    tables: dict[str, dict[int, str]] = {name: {} for name in TABLES}
    table: dict[int, str] | None = None
    for line in lines:
        if line.rstrip() in tables:
            table = tables[line.rstrip()]
        elif table is not None and (row := _ROW.match(line)):
            table[int(row[1])] = row[2] if row[2] is not None else row[3]
    # Each table's rows as pairs of name and number, which stays text: a name occurs once in a row.
    locations: dict[int, dict[str, str]]
    stack: dict[int, dict[str, str]]
    locations, stack = ({key: dict(_FIELD.findall(row)) for key, row in tables[name].items()} for name in TABLES[2:])
    parents = [int(row.get("parent_frame_id", 0)) for row in stack.values()]
    # Ids count from 1, and most XLAs print a parent one too high, so that it is never 0; their proto has it right.
    shift = 2 if min(parents, default=1) > 0 else 1
    frames: list[Frame] = []
    # A damaged id may be any number: no more rows than the table has.
    for key in range(1, min(max(stack, default=0), 2 * len(stack)) + 1):
        row = stack.get(key, {})
        place = locations.get(int(row.get("file_location_id", 0)), {})
        frames.append(
            Frame(
                file=tables["FileNames"].get(int(place.get("file_name_id", 0)), ""),
                function=tables["FunctionNames"].get(int(place.get("function_name_id", 0)), ""),
                line=int(place.get("line", 0)),
                column=int(place.get("column", 0)),
                end_line=int(place.get("end_line", 0)),
                end_column=int(place.get("end_column", 0)),
                parent=int(row.get("parent_frame_id", 0)) - shift,
            )
        )
    return frames


def read_metadata(rest: str) -> tuple[str, int, Frame | None, str]:
    """Return op_name, row of the frame table, own frame and remaining attributes of the text after the operands.

    A missing op_name is empty. The row counts from 0, and is -1 if missing.
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
    """Return the place of the instruction's own `metadata={`, outside strings and shardings; -1 if missing."""
    start = rest.find("metadata={")
    while start >= 0:
        before = _QUOTES.sub("", rest[:start])
        if '"' not in before and before.count("{") == before.count("}"):
            break
        start = rest.find("metadata={", start + 1)
    return start
