"""Reader of HLO text into a Graph: before or after optimization, from any backend, of any age, as XLA prints it.

The text is read rather than the proto because the user sees it, a dump holds it, and a capture keeps it; its line
numbers link text and graph. Every computation becomes a group under the node that calls it.

With a hundred thousand lines each step per line costs: one regular expression takes an instruction apart, and the text
after the operands, which repeats often, is read once per distinct text. A pattern takes a line only as a whole; any
other line is unread. `open_hlo` has a text with such lines printed again by XLA's own parser.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import repeat

import numpy as np

from explorer.analysis.cost import cost
from explorer.capture.readers.graph_builder import GraphBuilder, shorten_value, users_frames
from explorer.capture.readers.hlo_attributes import (
    TABLES,
    is_whole,
    read_attributes,
    read_frames,
    read_header,
    read_metadata,
)
from explorer.errors import UnreadableTextError
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import CALL_ROLES, Graph, Group, Ints

# `ROOT %name = type opcode(operands), attributes` with names as operands, or without any `%`: a value, bare names.
_PLAIN = re.compile(
    r"\s*+(ROOT )?%?([\w.\-]+) = (\((?:[^()]++|\([^()]*+\))*+\)|[^ (]\S*+) ([a-z][\w\-]*+)"
    r"\((%[\w.\-]++(?:, (?:/\*index=\d++\*/)?%[\w.\-]++)*+|[^()\"#%]*+)\)(.*)"
)
# The same with parentheses in the operands' types: of tuples, and of layouts as TPUs' are. After a word one would hold
# the operands of an operand.
_TYPED = re.compile(
    r"\s*+(ROOT )?%?([\w.\-]+) = (\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|[^ (]\S*+) ([a-z][\w\-]*+)"
    r"\(((?:[^()\"#]++|(?<![a-z\d\-])\((?:[^()\"#]++|\((?:[^()\"#]++|\([^()\"#]*+\))*+\))*+\))*+)\)(.*)"
)
_OPENING = re.compile(r"\s*+(ENTRY )?%?([\w.\-]++) (?:\(.*\) -> .*)?\{\s*+")
_CLOSING = re.compile(r'\s*+\}(?:, execution_thread="[^"]*+")?\s*+')
_MODULE = re.compile(r"\s*+HloModule\s++[\w.\-]++(.*)")
_NOTHING = re.compile(r"\s*(?://.*|#.*)?")  # XLA has no `#` comments, but hand-written files do
_TABLE = re.compile(r"\s*(?:\d.*)?")
_COMMENT = r"/\*[^*]*+\*/"
_NAMES = re.compile(r"[\w.\-]++(?:,\s?[\w.\-]++)*+")
_BRACKETED = re.compile(rf"\[[^\[\]]*+\]|\{{[^{{}}]*+\}}|{_COMMENT}")
_TUPLE = re.compile(r"\([^()]*+\)")
_OPERAND = re.compile(r"\s?(?:(?:[a-z]\w*+)? )?%?([A-Za-z_][\w.\-]*+)")
_ELEMENT = re.compile(r"%([\w.\-]++)((?:#\d++)++)")  # `%tuple#1`, as newer XLA writes an element of a tuple
_BRACKET = re.compile(r"[(){}\[\],]")
_BLOCK = 1 << 20  # characters; the lines of a large text, as strings of their own, take more than the text
_NO_OPERANDS = ("constant", "parameter", "iota")  # their parentheses hold a value

_CHUNK = 50_000  # rows put into the columns at once: what is read so far and the columns are both in memory
_REFERENCE = re.compile(r"%([\w.\-#]++)")
_NO_NAME = tuple("(){}[]<>/\"'=:")
_CALLED = re.compile(rf"\b({'|'.join(CALL_ROLES)})=(\{{[^{{}}]*+\}}|%?[\w.\-]++)")
_COMMENTS = re.compile(r"/\*.*?\*/")
_KIND = {
    **dict.fromkeys(("to_apply", "comparator", "select", "scatter"), "apply"),
    **dict.fromkeys(("true_computation", "false_computation", "branch_computations"), "branch"),
    "body": "body",
    "condition": "condition",
}
_KIND_OF_OP = {"call": "call", "call-start": "call", "custom-call": "apply"}
_VALUES = {"constant": "literal", "parameter": "parameter_number"}

# Attributes of an instruction: the text after its operands, or the code of such a text with a further key and value.
_Attributes = str | tuple[int, str, str]


def read_hlo(text: str) -> Graph:
    """Read the text of an HLO module, or some lines of one, into a graph.

    There is one node per instruction of every computation, in the text's order. Its `unread` are the lines that should
    be instructions but could not be read.

    Raises:
        UnreadableTextError: The text holds no HLO instruction at all.
    """
    reader = _Reader()
    for block in _blocks(text):
        reader.read(block)
    graph = reader.graph()
    if not graph.names:
        first = text.strip()[:60].partition("\n")[0]
        raise UnreadableTextError(
            f"this text holds no HLO instruction: it starts with {first!r}." if first else "this text is empty."
        )
    return replace(graph, measure=cost)


def _blocks(text: str) -> Iterator[list[str]]:
    """Yield the lines of a text in blocks.

    Not splitlines(): it also splits at characters inside quoted names, and then no line number fits.
    """
    start = 0
    while start <= len(text):
        end = text.find("\n", start + _BLOCK)
        end = end if end >= 0 else len(text)
        yield text[start:end].split("\n")
        start = end + 1


class _Reader:
    def __init__(self) -> None:
        self.rows = _Rows()
        self.first = 0  # number of the block's first line
        self.tables: list[str] = []  # lines of the stack frames read so far

    def read(self, block: Sequence[str]) -> None:
        at = 0
        while at < len(block):
            if self.tables and _TABLE.fullmatch(block[at]):
                self.tables.append(block[at])
                at += 1
                continue
            after = self.instructions(block, at)
            if after == at:
                self.other(block[at], self.first + at)
                after += 1
            at = after
        self.first += len(block)

    def graph(self) -> Graph:
        if self.tables:
            self.end_tables()
        return self.rows.graph()

    def end_tables(self) -> None:
        self.rows.read_tables(self.tables)
        self.tables = []

    def other(self, line: str, number: int) -> None:
        if line.rstrip() in TABLES or (self.tables and _TABLE.fullmatch(line)):
            self.tables.append(line)
            return
        if self.tables:
            self.end_tables()
        if not (_NOTHING.fullmatch(line) or self.is_frame(line) or self.has_elements(line, number)):
            self.rows.unread.add(number)

    def has_elements(self, line: str, number: int) -> bool:
        """Read an instruction with operands such as `%tuple#1`; return False for any other line.

        Each such operand becomes a get-tuple-element where its computation first uses it.
        """
        rows, whole = self.rows, _ELEMENT.sub(r"%\1", line)
        match = _PLAIN.match(whole) or _TYPED.match(whole)
        if whole == line or rows.group < 0 or match is None:
            return False
        after = match[6]
        if not line.endswith(after) or rows.known_rests[after] < 0:
            return False
        operands = line[match.start(5) : len(line) - len(after)]
        for name, indices in _ELEMENT.findall(operands):
            rows.add_elements(name, indices[1:].split("#"), number)
        if not self.instructions([whole], 0, number):
            return False
        rows.operands[-1] = ", ".join(f"%{name}" for name in _REFERENCE.findall(operands))
        return True

    def is_frame(self, line: str) -> bool:
        """Read a module's first line, or a computation's first or last; return True if all of it was read."""
        rows = self.rows
        if "//" not in line and " = " not in line and '"' not in line and (opening := _OPENING.fullmatch(line)):
            if rows.group >= 0:
                rows.close()
            rows.open(opening[2], is_entry=opening[1] is not None)
            return True
        if rows.group >= 0 and _CLOSING.fullmatch(line):
            rows.close()
            return True
        module = _MODULE.fullmatch(line)
        if module is not None:
            rows.begin_module(line.strip())
        return module is not None and is_whole(module[1].rstrip())

    def instructions(self, lines: Sequence[str], at: int, first: int = -1) -> int:
        """Read lines from `at` on while each is a whole instruction; return the index of the first other line.

        `first` is the number of the first line; by default the block's.
        """
        first = self.first if first < 0 else first
        rows, rests, group = self.rows, self.rows.known_rests, self.rows.group
        plain, typed = _PLAIN.match, _TYPED.match
        # Bound once: to look each column up for each of 100,000 lines took a fifth of the time.
        add_name, add_type, add_opcode = rows.names.append, rows.types.append, rows.opcodes.append
        add_operands, add_rest = rows.operands.append, rows.rests.append
        start = at
        while at < len(lines):
            line = lines[at]
            instruction = plain(line)
            if instruction is None:
                instruction = typed(line)
                if instruction is None:
                    break
                root, name, type_, opcode, operands, text = instruction.groups()
                if operands.count("%") != operands.count(",") + 1 and opcode not in _NO_OPERANDS:
                    operands = _named(operands) if operands else operands
            else:
                root, name, type_, opcode, operands, text = instruction.groups()
                if operands and operands[0] != "%" and opcode not in _NO_OPERANDS:
                    operands = _named(operands)
            rest = rests[text]
            if rest < 0 or operands is None:
                break
            if root:
                rows.roots.append(len(rows.names))
            add_name(name)
            add_type(type_)
            add_opcode(opcode)
            add_operands(operands)
            add_rest(rest)
            at += 1
        rows.lines.extend(range(first + start, first + at))
        rows.groups.extend(repeat(group, at - start))
        return at


def _named(operands: str) -> str | None:
    """Return operands written with types, or without `%`, as names with `%`; None if they are anything else."""
    if _NAMES.fullmatch(operands):
        return "%" + operands.replace(",", ",%").replace("% ", " %")
    bare, before = _BRACKETED.sub("", operands), ""
    while bare != before:
        before, bare = bare, _TUPLE.sub("", bare)
    names = [_OPERAND.fullmatch(piece) for piece in bare.split(",")]
    return ", ".join(f"%{name[1]}" for name in names if name) if all(names) else None


# Columns -------------------------------------------------------------------------------------------------------------


class _Rests(dict[str, int]):
    """Codes of the texts after the operands; -1 for a text that holds more than attributes."""

    def __init__(self, rows: _Rows) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, text: str) -> int:
        rest = self[text] = self._rows.rest(text) if is_whole(text) else -1
        return rest


class _Rows:
    """Instructions by column: Python's garbage collector would walk a tuple per instruction again and again.

    `lines` and the lists after it hold rows that aren't in the builder yet. An operand is `%name` in a text without
    other `%`.
    """

    def __init__(self) -> None:
        self.builder = GraphBuilder()
        self.header: dict[str, str] | None = None  # of the first module
        self.unread: set[int] = set()
        self.group = -1  # the computation that is open
        self.lines: list[int] = []
        self.names: list[str] = []
        self.types: list[str] = []
        self.opcodes: list[str] = []
        self.operands: list[str] = []
        self.rests: list[int] = []
        self.groups: list[int] = []
        self.roots: list[int] = []  # rows
        self.known_rests = _Rests(self)  # of this module: each module numbers its stacks from 1
        # By the code of the text after the operands: its attributes, its op_name, its frame.
        self._rest_columns = (array("i"), array("i"), array("i"))
        self._calls: list[tuple[int, str, str]] = []  # node, how it calls, name of the computation
        self._attributes: dict[_Attributes, int] = {"": 0}  # codes of texts after an instruction, without metadata
        self._called: dict[int, list[tuple[str, str]]] = {}  # by such a code
        self._attributes_of: list[Ints] = []  # the codes of the rows of each flush
        self._frame_of: Sequence[int] = ()  # by row of the module's table
        self._first_group = 0  # of this module: a text may hold several
        # Rows by name of the open computation, filled where elements of tuples need it.
        self._row_of: dict[str, int] = {}
        self._indexed = 0  # the first row that isn't in it

    def rest(self, text: str) -> int:
        """Return the number of a text such as `, dimensions={0}, metadata={op_name="f/sum"}`, and keep its parts."""
        scope, stacked, own, attributes = read_metadata(text)
        is_stacked = 0 <= stacked < len(self._frame_of)
        frame = self.builder.add_frame(own) if own is not None else self._frame_of[stacked] if is_stacked else -1
        values = self.code(attributes), self.builder.scope_code(scope), frame
        for column, value in zip(self._rest_columns, values, strict=True):
            column.append(value)
        return len(self._rest_columns[0]) - 1

    def code(self, attributes: str) -> int:
        """Return the number of a text of attributes without metadata, equal for equal texts, and note its callees."""
        code = self._attributes.get(attributes)
        if code is None:
            code = self._attributes[attributes] = len(self._attributes)
            if "=" in attributes and (called := _called(attributes)):
                self._called[code] = called
        return code

    def open(self, name: str, *, is_entry: bool = False) -> None:
        self.group = self.builder.add_group(Group(name, "entry" if is_entry else "computation"))
        self._row_of, self._indexed = {}, len(self.names)

    def add_elements(self, name: str, indices: Sequence[str], line: int) -> None:
        """Add the get-tuple-elements of `%name#1#0` as instructions of that line, unless they are there."""
        for row in range(self._indexed, len(self.names)):
            self._row_of[self.names[row]] = row
        for index in indices:
            own, row = f"{name}#{index}", self._row_of.get(name, -1)
            if own not in self._row_of:
                self._row_of[own] = len(self.names)
                elements = _element_types(self.types[row]) if row >= 0 else ()
                type_ = elements[int(index)] if int(index) < len(elements) else ""
                self.lines.append(line)
                self.names.append(own)
                self.types.append(type_)
                self.opcodes.append("get-tuple-element")
                self.operands.append(f"%{name}")
                self.rests.append(self.known_rests[f", index={index}"])
                self.groups.append(self.group)
            name = own
        self._indexed = len(self.names)

    def close(self) -> None:
        self.group = -1
        # Only between computations: operands are looked up among the rows of one flush.
        if len(self.lines) >= _CHUNK:
            self._flush()

    def begin_module(self, header: str) -> None:
        self.end_module()
        if self.header is None:
            self.header = read_header(header)

    def end_module(self) -> None:
        self.group = -1
        self._flush()
        self._nest_groups()
        self._frame_of = ()
        # Their codes hold frames: in the next module's tables the same ids are other frames.
        self.known_rests.clear()

    def read_tables(self, lines: Sequence[str]) -> None:
        frames, self._frame_of = users_frames(read_frames(lines))
        first = len(self.builder.frames)
        if first:  # another module's, or an instruction's own
            frames = [replace(f, parent=f.parent + first if f.parent >= 0 else -1) for f in frames]
            self._frame_of = [row + first if row >= 0 else -1 for row in self._frame_of]
        self.builder.frames += frames

    def graph(self) -> Graph:
        self.end_module()
        codes = np.concatenate(self._attributes_of) if self._attributes_of else np.zeros(0, np.int32)
        texts = list(self._attributes)
        # Split at the first access: many rows share a text, and most are never read.
        attributes = Attributes(lambda: tabulate(codes, _pairs(texts)))
        return replace(self.builder.build(attributes, self.header), unread=tuple(sorted(self.unread)))

    def _flush(self) -> None:
        """Move the rows read so far into the builder, column by column."""
        first = len(self.builder)
        if len(self.lines):
            group = np.asarray(self.groups, np.int32)
            rest = np.asarray(self.rests, np.int32)
            attributes, scope, frame = (np.asarray(column, np.int32)[rest] for column in self._rest_columns)
            self._note_calls(first, attributes)
            self._note_attributes(attributes)
            self.builder.extend(
                self.names, self.opcodes, self.types, scope=scope, group=group, frame=frame, line=self.lines
            )
            self.builder.connect_many(*_connections(self.names, self.opcodes, self.operands, group, first))
        columns: tuple[list[int] | list[str], ...] = (
            self.lines, self.names, self.types, self.opcodes, self.operands, self.rests, self.groups, self.roots,
        )  # fmt: skip
        for column in columns:
            column.clear()

    def _note_calls(self, first: int, codes: Ints) -> None:
        calls = np.zeros(len(self._attributes), bool)
        calls[list(self._called)] = True
        for row in np.flatnonzero(calls[codes]).tolist():
            for how, names in self._called[int(codes[row])]:
                kind = "fusion" if how == "calls" and self.opcodes[row] == "fusion" else _KIND.get(how, "call")
                # A callee runs there; a reducer, or a comparator that a library gets, is applied.
                kind = _KIND_OF_OP.get(self.opcodes[row], kind)
                self._calls += [(first + row, kind, name.strip().lstrip("%")) for name in names.strip("{}").split(",")]

    def _note_attributes(self, codes_of_rows: Ints) -> None:
        """Keep each row's attributes, with the value between the parentheses, and ROOT."""
        of_row, codes = codes_of_rows.tolist(), self._attributes
        for row, op in enumerate(self.opcodes):
            if op in _VALUES:
                of_row[row] = codes.setdefault((of_row[row], _VALUES[op], self.operands[row]), len(codes))
        for row in self.roots:
            of_row[row] = codes.setdefault((of_row[row], "root", "true"), len(codes))
        self._attributes_of.append(np.asarray(of_row, np.int32))

    def _nest_groups(self) -> None:
        groups = self.builder.groups
        number = {groups[i].name: i for i in range(self._first_group, len(groups))}
        for node, kind, name in self._calls:
            called = number.get(name, -1)
            # A computation with several callers is shown under the first.
            if called >= 0 and groups[called].caller < 0 and groups[called].kind != "entry":
                parent = self.builder.group_of[node]
                groups[called] = replace(groups[called], kind=kind, caller=node, parent=parent)
        self._calls, self._first_group = [], len(groups)


@lru_cache(maxsize=64)  # each element of a loop's tuple is read by itself
def _element_types(text: str) -> list[str]:
    level, start, types = 0, 1, list[str]()
    for bracket in _BRACKET.finditer(text):
        level += (bracket[0] in "({[") - (bracket[0] in ")}]")
        if (bracket[0] == "," and level == 1) or not level:
            types.append(text[start : bracket.start()].strip())
            start = bracket.end()
    return types


def _called(attributes: str) -> list[tuple[str, str]]:
    """Return (role, names) of the computations that attributes name; names are as written, `%add` or `{%a, %b}`."""
    if '"' not in attributes and "/*" not in attributes:
        return _CALLED.findall(attributes)
    return [(key, _COMMENTS.sub("", value)) for key, value in read_attributes(attributes) if key in CALL_ROLES]


def _pairs(attributes: Iterable[_Attributes]) -> list[Sequence[tuple[str, str]]]:
    pairs: list[Sequence[tuple[str, str]]] = []
    for added in attributes:
        if isinstance(added, str):
            pairs.append(read_attributes(added))
        else:
            code, key, value = added
            pairs.append([(key, shorten_value(value.strip())), *pairs[code]])
    return pairs


def _connections(
    names: Sequence[str], opcodes: Sequence[str], operands: Sequence[str], group: Ints, first: int
) -> tuple[Ints, Ints]:
    """Return the number of operands of each row, and all operand nodes; missing operands are left out."""
    written = ["" if op in _NO_OPERANDS else text for text, op in zip(operands, opcodes, strict=True)]
    used = _used(", ".join(filter(None, written)))
    reader = np.repeat(np.arange(len(names), dtype=np.int32), [text.count("%") for text in written])
    index = dict(zip(names, range(len(names)), strict=True))
    if len(index) == len(names) and len(used) == len(reader):
        node = np.fromiter(map(index.get, used, repeat(-1)), np.int32, len(used))
        # An operand is in the same computation.
        is_inside = (node >= 0) & (group[node] == group[reader])
        node, reader = node[is_inside], reader[is_inside]
    else:
        node, reader = _each(names, written, group)
    counts = np.bincount(reader, minlength=len(names)).astype(np.int32)
    return counts, node.astype(np.int32) + np.int32(first)


def _used(operands: str) -> list[str]:
    """Return the names in the operands of many rows; the usual `%a, %b` is split at once, in a fifth of the time."""
    commas = operands.count(", ")
    if operands.count("%") == operands.count(" ") + 1 == commas + 1 and not any(map(operands.__contains__, _NO_NAME)):
        return operands.replace("%", "").split(", ")
    return _REFERENCE.findall(operands)


def _each(names: Sequence[str], written: Sequence[str], group: Ints) -> tuple[Ints, Ints]:
    """Return two columns, one entry per operand: the row that is the operand, and the row that reads it.

    A name is looked up in the reader's computation, as several may have it.
    """
    of: list[int] = group.tolist()
    index = {(of[i], name): i for i, name in enumerate(names)}
    pairs = [
        (index[of[i], name], i)
        for i, text in enumerate(written)
        for name in _REFERENCE.findall(text)
        if (of[i], name) in index
    ]
    table = np.asarray(pairs, np.int32).reshape(-1, 2)
    return table[:, 0], table[:, 1]
