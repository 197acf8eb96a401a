"""HLO text → Graph: before or after optimisation, from any backend, of any age.

The text is read rather than the proto because it is what the user sees, what a dump holds, and what a capture
keeps; its line numbers link text and graph. Every computation becomes a group under the node that calls it.

A hundred thousand lines make each step per line worth avoiding: nearly every instruction is one line that one regular
expression takes apart, and what follows the operands repeats so often that it is read once for all. Whatever else
XLA's own parser takes (an instruction over several lines, a layout with parentheses, names without `%`) is put
together from its lines, and a line that is neither is kept as unread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.analysis.cost.cost import cost
from explorer.capture.readers.attribute_values import shorten_value
from explorer.capture.readers.graph_builder import GraphBuilder
from explorer.capture.readers.hlo_attributes import read_attributes, read_header
from explorer.capture.readers.hlo_frames import read_frames, read_metadata
from explorer.capture.readers.hlo_lines import bare_names, cut, depth, starts_instruction
from explorer.capture.readers.user_frames import users_frames
from explorer.errors import UnreadableTextError
from explorer.model.attributes import Attributes, tabulate
from explorer.model.graph import Frame, Graph, Group, Ints

# `ROOT %name = type opcode(operands), attributes` with no parenthesis or string among the operands.
_PLAIN = re.compile(
    r"\s+(ROOT )?%?([\w.\-]+) = (\((?:[^()]++|\([^()]*+\))*+\)|[^ (]\S*+) ([a-z][\w\-]*+)\(([^()\"]*+)\)(.*)"
)
# The same with the operands' types before them, whose layouts have parentheses, as TPUs' do.
_TYPED = re.compile(
    r"\s*+(ROOT )?%?([\w.\-]+) = (\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|[^ (]\S*+) ([a-z][\w\-]*+)"
    r"\(((?:[^()\"]++|\((?:[^()\"]++|\((?:[^()\"]++|\([^()\"]*+\))*+\))*+\))*+)\)(.*)"
)
# A computation opens with its name, mostly with its signature, and a brace at the end of the line.
_OPENING = re.compile(r"\s*(ENTRY\s+)?%?([\w.\-]++)\s*(?=[({]|$)")
_REFERENCE = re.compile(r"%([\w.\-]++)")
_CALLS = (
    "calls|to_apply|body|condition|true_computation|false_computation|called_computations|branch_computations"
    "|async_computation|comparator|select|scatter"
)
_CALLED = re.compile(rf"\b({_CALLS})=(\{{[^{{}}]*+\}}|%?[\w.\-]++)")
_WRITTEN_OUT = re.compile(rf"\b({_CALLS})=\s*+\{{$")  # a computation's own lines follow
_KIND = {
    **dict.fromkeys(("to_apply", "comparator", "select", "scatter"), "apply"),
    **dict.fromkeys(("true_computation", "false_computation", "branch_computations"), "branch"),
    "body": "body",
    "condition": "condition",
}
_KIND_OF_OP = {"call": "call", "call-start": "call", "custom-call": "apply"}
_NO_OPERANDS = ("constant", "parameter", "iota")  # their parentheses hold a value
_VALUES = {"constant": "literal", "parameter": "parameter_number"}
_TABLE = "FileNames"
_CHUNK = 50_000  # rows put into the columns at once: what is read so far and the columns are both in memory
_LONGEST_OPENING = 50  # lines of a signature that somebody broke


def read_hlo(text: str) -> Graph:
    """Read an HLO module's text into a graph.

    Args:
        text: What `jax.stages.Compiled.as_text()` gives, a file of an XLA dump, or some lines of one.

    Returns:
        One node per instruction of every computation, in the text's order. Its `unread` are the lines that should be
        instructions but could not be read.

    Raises:
        UnreadableTextError: The text holds no HLO instruction at all.
    """
    # Not splitlines(): it also breaks at characters that a quoted name may hold, and then no line number fits.
    graph = _Reader(text.split("\n")).read()
    if not graph.names:
        first = text.strip()[:60].partition("\n")[0]
        raise UnreadableTextError(
            f"this text holds no HLO instruction: it starts with {first!r}." if first else "this text is empty."
        )
    return replace(graph, measure=cost)


_Attributes = str | tuple[int, str, str]
"""What an instruction has beside its operands: the text after them; or the code of such attributes, with one more."""


class _Rows:
    """Instructions by column: Python's garbage collector would walk a tuple for each, again and again."""

    def __init__(self) -> None:
        self.lines: list[int] = []
        self.names: list[str] = []
        self.types: list[str] = []
        self.opcodes: list[str] = []
        self.operands: list[str] = []
        self.rests: list[str] = []
        self.roots: list[int] = []  # rows

    def __len__(self) -> int:
        return len(self.lines)

    def add(self, line: int, root: str | None, name: str, type_: str, opcode: str, operands: str, rest: str) -> None:
        if root:
            self.roots.append(len(self.lines))
        self.lines.append(line)
        self.names.append(name)
        self.types.append(type_)
        self.opcodes.append(opcode)
        self.operands.append(operands)
        self.rests.append(rest)

    def clear(self) -> None:
        for column in (self.lines, self.names, self.types, self.opcodes, self.operands, self.rests, self.roots):
            column.clear()


@dataclass(slots=True)
class _Computation:
    """The computation whose lines are being read."""

    group: int = -1
    is_indented: bool = False
    caller: int = -1  # the row that it is written out in
    outer: _Computation | None = None  # the computation of that row


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.builder = GraphBuilder()
        self.open: _Computation | None = None
        self.rows = _Rows()  # those that are not in the builder yet
        self.starts: list[tuple[int, int]] = []  # from which row on which group
        self.more: dict[int, list[str]] = {}  # what further lines add to the rest of a row
        self.open_depth = 0  # brackets that the last row leaves open, once its `more` began
        self.at = 0  # the line to read next
        self.unread: list[int] = []
        self.calls: list[tuple[int, str, str]] = []  # node, how it calls, name of the computation
        self.attributes: dict[_Attributes, int] = {}  # of each text after an instruction, without metadata, its code
        self.attributes_of: list[Ints] = []  # the codes of the rows of each flush
        self.first_group = 0  # of this module: a text may hold several

    def read(self) -> Graph:
        table = next((i for i, line in enumerate(self.lines) if line.startswith(_TABLE)), None)
        frames = read_frames(self.lines[table : self.end_of_tables(table)]) if table is not None else []
        self.builder.frames, self.frame_of = users_frames(frames)
        plain, typed, lines = _PLAIN.match, _TYPED.match, self.lines
        add = self.rows.add
        while self.at < len(lines):
            instruction = plain(lines[self.at]) or typed(lines[self.at])
            if instruction is None:
                self.read_other(lines[self.at])
            else:
                add(self.at, *instruction.groups())
                if lines[self.at][-1:] == "{":
                    last = len(self.rows) - 1
                    self.rows.rests[last] = self.opens_inside(instruction[6], last)
                self.at += 1
        self.close()
        self.flush()
        self.nest_groups()
        header = next((line for line in lines[:_LONGEST_OPENING] if line.startswith("HloModule")), "")
        attributes = read_header(header)
        return replace(self.builder.build(self.tabulated(), attributes), unread=tuple(self.unread))

    def tabulated(self) -> Attributes:
        """The attributes of all nodes, split when somebody asks: many texts are one text, and most are never asked."""
        codes = np.concatenate(self.attributes_of) if self.attributes_of else np.zeros(0, np.int32)
        texts = list(self.attributes)
        return Attributes(lambda: tabulate(codes, _pairs(texts)))

    def end_of_tables(self, table: int) -> int:
        """The first line after the tables: an instruction's or computation's."""
        tables = re.compile(r"\d+ [\"{]|[A-Z]\w+\s*$|\s*$")
        return next((i for i in range(table, len(self.lines)) if not tables.match(self.lines[i])), len(self.lines))

    def read_other(self, line: str) -> None:
        """A line that is no instruction written the usual way; moves on by all the lines that belong to it."""
        number, stripped = self.at, line.strip()
        self.at += 1
        if self.closes(line, stripped) or _is_comment(stripped):
            return
        if starts_instruction(line):
            self.read_broken(number, line)
        elif line.startswith("HloModule"):
            self.close()
            self.flush()
            self.nest_groups()
        elif self.opens(number, line):
            return
        elif self.open is not None and not self.continues(line, stripped):
            if stripped.startswith("}"):
                self.close()
            else:
                self.unread.append(number)

    def closes(self, line: str, stripped: str) -> bool:
        """Whether a computation is closed here for certain; then it is."""
        if self.open is None or not stripped.startswith("}"):
            return False
        if line == "}" and not self.open.is_indented:
            self.close()
            return True
        if self.open.outer is not None:
            self.close_inside(self.open.outer, self.open.caller, stripped[1:])
            return True
        return False

    def read_broken(self, number: int, line: str) -> None:
        """An instruction that is written another way, or over several lines: until its brackets are closed."""
        row, pieces, level = cut(line), [line], depth(line)
        while (level > 0 or row is None) and self.at < len(self.lines):
            further = self.lines[self.at]
            if starts_instruction(further) or further.startswith("}") or (level <= 0 and not further.startswith("  ")):
                break
            pieces.append(further)
            level += depth(further)
            self.at += 1
            if level <= 0:
                row = cut(" ".join(pieces))
                break
        if row is None or level > 0:
            # Not whole: the lines after the first may be of use, and are read for themselves.
            self.at = number + 1
        if row is None:
            self.unread.append(number)
            return
        self.rows.add(number, *row)

    def continues(self, line: str, stripped: str) -> bool:
        """Whether a line goes on with the attributes of the instruction before it; then it is kept with it."""
        last = len(self.rows) - 1
        if last < 0 or (self.starts and last < self.starts[-1][0]):
            return False
        more = self.more.get(last)
        if more is None:
            self.open_depth = depth(self.rows.rests[last])
        ending = (more[-1] if more else self.rows.rests[last]).rstrip()
        is_close = stripped.startswith("}") and (self.open_depth <= 0 or line.startswith("}"))
        if is_close or (self.open_depth <= 0 and not ending.endswith(",") and not stripped.startswith(",")):
            return False
        self.more.setdefault(last, []).append(stripped)
        self.open_depth += depth(stripped)
        return True

    def opens(self, number: int, line: str) -> bool:
        """Whether a computation opens here, on this line or over the next ones; then it is open."""
        opening = _OPENING.match(line)
        if opening is None or (self.open is not None and line[:1].isspace() and not self.open.is_indented):
            return False
        end = number
        if "(" not in line and not line.rstrip().endswith("{"):
            return False
        while not self.lines[end].rstrip().endswith("{"):
            end += 1
            if end - number > _LONGEST_OPENING or end >= len(self.lines) or starts_instruction(self.lines[end]):
                return False
        self.close()
        group = self.builder.add_group(Group(opening[2], "entry" if opening[1] else "computation"))
        self.open = _Computation(group, line[:1].isspace())
        self.starts.append((len(self.rows), group))
        self.at = end + 1
        return True

    def opens_inside(self, rest: str, caller: int) -> str:
        """`to_apply={` at the end of an instruction, or of what follows an inner computation: one without a name.

        Gives the text with a name in the place of the brace.
        """
        called = _WRITTEN_OUT.search(rest.rstrip())
        if called is None or self.open is None:
            return rest
        name = f"{self.rows.names[caller]}.{called[1]}.{len(self.builder.groups)}"
        self.open = _Computation(self.builder.add_group(Group(name, "computation")), True, caller, self.open)
        self.starts.append((len(self.rows), self.open.group))
        return f"{rest[: called.start()]}{called[1]}={name}"

    def close_inside(self, outer: _Computation, caller: int, rest: str) -> None:
        self.open = outer
        self.starts.append((len(self.rows), outer.group))
        self.more.setdefault(caller, []).append(self.opens_inside(rest, caller))

    def close(self) -> None:
        if self.open is not None:
            self.open = None
            if len(self.rows) >= _CHUNK:
                self.flush()
            self.starts.append((len(self.rows), -1))

    def flush(self) -> None:
        """Put the rows read so far into the builder, column by column."""
        rows, first = self.rows, len(self.builder)
        if len(rows):
            for row, pieces in self.more.items():
                rows.rests[row] = " ".join([rows.rests[row], *pieces])
            group = self.groups_of_rows()
            scope, frame, calls = self.read_rests(first)
            self.builder.extend(
                rows.names, rows.opcodes, rows.types, scope=scope, group=group, frame=frame, line=rows.lines
            )
            self.builder.connect_many(*_connections(rows, group, first))
            self.calls += calls
        rows.clear()
        self.more.clear()
        self.starts.clear()

    def groups_of_rows(self) -> Ints:
        starts = [(0, -1), *self.starts]
        ends = [*(start for start, _ in self.starts), len(self.rows)]
        lengths = [end - start for (start, _), end in zip(starts, ends, strict=True)]
        return np.repeat(np.asarray([group for _, group in starts], np.int32), lengths)

    def read_rests(self, first: int) -> tuple[Ints, Ints, list[tuple[int, str, str]]]:
        """Of each row: the code of its scope, its frame, and what it calls; notes its attributes too.

        Equal texts are read once.
        """
        codes = {rest: i for i, rest in enumerate(dict.fromkeys(self.rows.rests))}
        code = np.asarray([codes[rest] for rest in self.rows.rests], np.int32)
        scopes, frames = np.zeros(len(codes), np.int32), np.full(len(codes), -1, np.int32)
        called: dict[int, list[tuple[str, str]]] = {}
        attributes = np.zeros(len(codes), np.int32)
        for rest, i in codes.items():
            scope, stacked, own, text = read_metadata(rest)
            scopes[i] = self.builder.scope_code(scope)
            frames[i] = self.frame(stacked, own)
            attributes[i] = self.attributes.setdefault(text, len(self.attributes))
            if "=" in text:
                called[i] = _CALLED.findall(text)
        self.note_attributes(attributes[code])
        has_calls = np.asarray([bool(called.get(i)) for i in range(len(codes))])
        calls: list[tuple[int, str, str]] = []
        for row in np.flatnonzero(has_calls[code]).tolist():
            for how, names in called[int(code[row])]:
                kind = "fusion" if how == "calls" and self.rows.opcodes[row] == "fusion" else _KIND.get(how, "call")
                # What is called runs there; a reducer, or what a library is given to compare by, is applied.
                kind = _KIND_OF_OP.get(self.rows.opcodes[row], kind)
                calls += [(first + row, kind, name.strip().lstrip("%")) for name in names.strip("{}").split(",")]
        return scopes[code], frames[code], calls

    def note_attributes(self, texts: Ints) -> None:
        """Keep each row's attributes; `texts` are the codes of what follows its operands."""
        rows, of_row, codes = self.rows, texts.tolist(), self.attributes
        for row, op in enumerate(rows.opcodes):
            if op in _VALUES:
                of_row[row] = codes.setdefault((of_row[row], _VALUES[op], rows.operands[row]), len(codes))
        for row in rows.roots:
            of_row[row] = codes.setdefault((of_row[row], "root", "true"), len(codes))
        self.attributes_of.append(np.asarray(of_row, np.int32))

    def frame(self, stacked: int, own: Frame | None) -> int:
        if own is not None:
            return self.builder.add_frame(own)
        return self.frame_of[stacked] if 0 <= stacked < len(self.frame_of) else -1

    def nest_groups(self) -> None:
        """Put each computation of this module under the node that calls it."""
        groups = self.builder.groups
        number = {groups[i].name: i for i in range(self.first_group, len(groups))}
        for node, kind, name in self.calls:
            called = number.get(name, -1)
            if called >= 0 and groups[called].caller < 0 and groups[called].kind != "entry":
                parent = self.builder.group_of[node]
                groups[called] = replace(groups[called], kind=kind, caller=node, parent=parent)
        self.calls, self.first_group = [], len(groups)


def _is_comment(stripped: str) -> bool:
    """Whether a line says nothing: it is empty or a comment."""
    return not stripped or stripped.startswith(("//", "#")) or (stripped.startswith("/*") and stripped.endswith("*/"))


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


def _connections(rows: _Rows, group: Ints, first: int) -> tuple[Ints, Ints]:
    """How many operands each row has, and which nodes they are; an operand that is not there is left out."""
    written = [
        "" if op in _NO_OPERANDS else text if "%" in text or not text else "%" + " %".join(bare_names(text))
        for text, op in zip(rows.operands, rows.opcodes, strict=True)
    ]
    names = rows.names
    used = _REFERENCE.findall("\n".join(written))
    reader = np.repeat(np.arange(len(names), dtype=np.int32), [text.count("%") for text in written])
    index = {name: i for i, name in enumerate(names)}
    if len(index) == len(names) and len(used) == len(reader):
        node = np.asarray([index.get(name, -1) for name in used], np.int32)
        # An operand is of the same computation.
        is_inside = (node >= 0) & (group[node] == group[reader])
        node, reader = node[is_inside], reader[is_inside]
    else:
        node, reader = _each(names, written, group)
    counts = np.bincount(reader, minlength=len(names)).astype(np.int32)
    return counts, node.astype(np.int32) + np.int32(first)


def _each(names: Sequence[str], written: Sequence[str], group: Ints) -> tuple[Ints, Ints]:
    """The same where two computations use one name: nodes, and who reads them."""
    of = group.tolist()
    index = {(of[i], name): i for i, name in enumerate(names)}
    pairs = [
        (index[of[i], name], i)
        for i, text in enumerate(written)
        for name in _REFERENCE.findall(text)
        if (of[i], name) in index
    ]
    table = np.asarray(pairs, np.int32).reshape(-1, 2)
    return table[:, 0], table[:, 1]
