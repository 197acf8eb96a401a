"""The instructions and computations of HLO text while it is read: column by column, then the graph."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np

from explorer.capture.readers.graph_builder import GraphBuilder, shorten_value, users_frames
from explorer.capture.readers.hlo_attributes import is_whole, read_attributes, read_frames, read_header, read_metadata
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import CALL_ROLES, Graph, Group, Ints

NO_OPERANDS = ("constant", "parameter", "iota")  # their parentheses hold a value

_CHUNK = 50_000  # rows put into the columns at once: what is read so far and the columns are both in memory
_REFERENCE = re.compile(r"%([\w.\-#]++)")
_NO_NAME = tuple("(){}[]<>/\"'=:")
_CALLED = re.compile(rf"\b({'|'.join(CALL_ROLES)})=(\{{[^{{}}]*+\}}|%?[\w.\-]++)")
_COMMENT = re.compile(r"/\*.*?\*/")
_KIND = {
    **dict.fromkeys(("to_apply", "comparator", "select", "scatter"), "apply"),
    **dict.fromkeys(("true_computation", "false_computation", "branch_computations"), "branch"),
    "body": "body",
    "condition": "condition",
}
_KIND_OF_OP = {"call": "call", "call-start": "call", "custom-call": "apply"}
_VALUES = {"constant": "literal", "parameter": "parameter_number"}

_Attributes = str | tuple[int, str, str]
"""What an instruction has beside its operands: the text after them; or the code of such attributes, with one more."""


class _Rests(dict[str, int]):
    """By the text after the operands its code; -1 if the text is no attributes alone."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, text: str) -> int:
        rest = self[text] = self._rows.rest(text) if is_whole(text) else -1
        return rest


class Rows:
    """Instructions by column: Python's garbage collector would walk a tuple for each, again and again.

    `line` and those after it hold what isn't in the builder yet. An operand is `%name`, with anything but a `%` around.
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
        self.known_rests = _Rests(self)  # of this module alone: stacks are numbered anew in each
        # By the code of what follows the operands: the codes of its attributes and of its op_name, its frame.
        self._rest_columns = (array("i"), array("i"), array("i"))
        self._calls: list[tuple[int, str, str]] = []  # node, how it calls, name of the computation
        self._attributes: dict[_Attributes, int] = {"": 0}  # codes of texts after an instruction, without metadata
        self._called: dict[int, list[tuple[str, str]]] = {}  # by such a code
        self._attributes_of: list[Ints] = []  # the codes of the rows of each flush
        self._frame_of: Sequence[int] = ()  # by row of the module's table
        self._first_group = 0  # of this module: a text may hold several

    def rest(self, text: str) -> int:
        """The code of what a text such as `, dimensions={0}, metadata={op_name="f/sum"}` says."""
        scope, stacked, own, attributes = read_metadata(text)
        frame = self.builder.add_frame(own) if own is not None else self.frame(stacked)
        values = self.code(attributes), self.builder.scope_code(scope), frame
        for column, value in zip(self._rest_columns, values, strict=True):
            column.append(value)
        return len(self._rest_columns[0]) - 1

    def frame(self, stacked: int) -> int:
        """The frame of a row of the module's table, counted from 0; -1 where there is none."""
        return self._frame_of[stacked] if 0 <= stacked < len(self._frame_of) else -1

    def code(self, attributes: str) -> int:
        """The code of attributes without metadata, which notes what they call."""
        code = self._attributes.get(attributes)
        if code is None:
            code = self._attributes[attributes] = len(self._attributes)
            if "=" in attributes and (called := _called(attributes)):
                self._called[code] = called
        return code

    def open(self, name: str, *, is_entry: bool = False) -> None:
        """A computation begins; the one that was open ends, if it isn't around it."""
        self.group = self.builder.add_group(Group(name, "entry" if is_entry else "computation"))

    def close(self) -> None:
        """A computation ends that is in no other."""
        self.group = -1
        if len(self.lines) >= _CHUNK:
            self._flush()

    def begin_module(self, header: str) -> None:
        """The line `HloModule …`: what came before is another module's."""
        self.end_module()
        if self.header is None:
            self.header = read_header(header)

    def end_module(self) -> None:
        self.group = -1
        self._flush()
        self._nest_groups()
        self._frame_of = ()
        self.known_rests.clear()

    def read_tables(self, lines: Sequence[str]) -> None:
        """The module's tables of stack frames."""
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
        # Split when somebody asks: many texts are one text, and most are never asked.
        attributes = Attributes(lambda: tabulate(codes, _pairs(texts)))
        return replace(self.builder.build(attributes, self.header), unread=tuple(sorted(self.unread)))

    def _flush(self) -> None:
        """Put the rows read so far into the builder, column by column."""
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
                # What is called runs there; a reducer, or what a library is given to compare by, is applied.
                kind = _KIND_OF_OP.get(self.opcodes[row], kind)
                self._calls += [(first + row, kind, name.strip().lstrip("%")) for name in names.strip("{}").split(",")]

    def _note_attributes(self, codes_of_rows: Ints) -> None:
        """Keep each row's attributes, with what stands elsewhere: the value between the parentheses, ROOT."""
        of_row, codes = codes_of_rows.tolist(), self._attributes
        for row, op in enumerate(self.opcodes):
            if op in _VALUES:
                of_row[row] = codes.setdefault((of_row[row], _VALUES[op], self.operands[row]), len(codes))
        for row in self.roots:
            of_row[row] = codes.setdefault((of_row[row], "root", "true"), len(codes))
        self._attributes_of.append(np.asarray(of_row, np.int32))

    def _nest_groups(self) -> None:
        """Put each computation of this module under the node that calls it."""
        groups = self.builder.groups
        number = {groups[i].name: i for i in range(self._first_group, len(groups))}
        for node, kind, name in self._calls:
            called = number.get(name, -1)
            if called >= 0 and groups[called].caller < 0 and groups[called].kind != "entry":
                parent = self.builder.group_of[node]
                groups[called] = replace(groups[called], kind=kind, caller=node, parent=parent)
        self._calls, self._first_group = [], len(groups)


def _called(attributes: str) -> list[tuple[str, str]]:
    """The roles and names of the computations that attributes name."""
    if '"' not in attributes and "/*" not in attributes:
        return _CALLED.findall(attributes)
    return [(key, _COMMENT.sub("", value)) for key, value in read_attributes(attributes) if key in CALL_ROLES]


def _pairs(attributes: Iterable[_Attributes]) -> list[Sequence[tuple[str, str]]]:
    """The keys and values of each."""
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
    """How many operands each row has, and which nodes they are; an operand that is not there is left out."""
    written = ["" if op in NO_OPERANDS else text for text, op in zip(operands, opcodes, strict=True)]
    used = _used(", ".join(filter(None, written)))
    reader = np.repeat(np.arange(len(names), dtype=np.int32), [text.count("%") for text in written])
    index = dict(zip(names, range(len(names)), strict=True))
    if len(index) == len(names) and len(used) == len(reader):
        node = np.fromiter(map(index.get, used, repeat(-1)), np.int32, len(used))
        # An operand is of the same computation.
        is_inside = (node >= 0) & (group[node] == group[reader])
        node, reader = node[is_inside], reader[is_inside]
    else:
        node, reader = _each(names, written, group)
    counts = np.bincount(reader, minlength=len(names)).astype(np.int32)
    return counts, node.astype(np.int32) + np.int32(first)


def _used(operands: str) -> list[str]:
    """The names in the operands of many rows, which are `%a, %b` as a rule: cut at once, in a fifth of the time."""
    commas = operands.count(", ")
    if operands.count("%") == operands.count(" ") + 1 == commas + 1 and not any(map(operands.__contains__, _NO_NAME)):
        return operands.replace("%", "").split(", ")
    return _REFERENCE.findall(operands)


def _each(names: Sequence[str], written: Sequence[str], group: Ints) -> tuple[Ints, Ints]:
    """The same where two computations use one name: nodes, and who reads them."""
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
