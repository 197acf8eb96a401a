"""HLO text → Graph: before or after optimization, from any backend, of any age, as XLA prints it.

The text is read rather than the proto because it is what the user sees, what a dump holds, and what a capture
keeps; its line numbers link text and graph. Every computation becomes a group under the node that calls it.

A hundred thousand lines make each step per line worth avoiding: one regular expression takes an instruction apart, and
what follows the operands repeats so often that it is looked at once for all. A pattern takes a line only if nothing of
it is left over; any other line is unread. `open_hlo` has a text with such lines printed again by XLA's own parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import repeat

from explorer.analysis.cost.cost import cost
from explorer.capture.readers.hlo_attributes import TABLES, is_whole
from explorer.capture.readers.hlo_rows import NO_OPERANDS, Rows
from explorer.errors import UnreadableTextError
from explorer.model.graph import Graph

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
_NOTHING = re.compile(r"\s*(?://.*|#.*)?")  # XLA has no `#` comments, but people have
_TABLE = re.compile(r"\s*(?:\d.*)?")
_COMMENT = r"/\*[^*]*+\*/"
_NAMES = re.compile(r"[\w.\-]++(?:,\s?[\w.\-]++)*+")
_BRACKETED = re.compile(rf"\[[^\[\]]*+\]|\{{[^{{}}]*+\}}|{_COMMENT}")
_TUPLE = re.compile(r"\([^()]*+\)")
_OPERAND = re.compile(r"\s?(?:(?:[a-z]\w*+)? )?%?([A-Za-z_][\w.\-]*+)")
_BLOCK = 1 << 20  # characters; the lines of a large text, as strings of their own, take more than the text


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
    """The lines of a text, so many at a time.

    Not splitlines(): it also breaks at characters that a quoted name may hold, and then no line number fits.
    """
    start = 0
    while start <= len(text):
        end = text.find("\n", start + _BLOCK)
        end = end if end >= 0 else len(text)
        yield text[start:end].split("\n")
        start = end + 1


class _Reader:
    def __init__(self) -> None:
        self.rows = Rows()
        self.first = 0  # number of the block's first line
        self.tables: list[str] = []  # of stack frames, while they go on

    def read(self, block: Sequence[str]) -> None:
        at = 0
        while at < len(block):
            after = self.instructions(block, at)
            if after == at:
                self.other(block[at], self.first + at)
                after += 1
            at = after
        self.first += len(block)

    def graph(self) -> Graph:
        self.end_tables()
        return self.rows.graph()

    def end_tables(self) -> None:
        if self.tables:
            self.rows.read_tables(self.tables)
            self.tables = []

    def other(self, line: str, number: int) -> None:
        """Read a line that is no instruction."""
        if line.rstrip() in TABLES or (self.tables and _TABLE.fullmatch(line)):
            self.tables.append(line)
            return
        self.end_tables()
        if not (_NOTHING.fullmatch(line) or self.is_frame(line)):
            self.rows.unread.add(number)

    def is_frame(self, line: str) -> bool:
        """Read a module's first line, a computation's heading or its end; False if the line is none of them."""
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

    def instructions(self, lines: Sequence[str], at: int) -> int:
        """Take lines from `at` on while each is an instruction of which nothing is left over; the first other line."""
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
                if operands.count("%") != operands.count(",") + 1 and opcode not in NO_OPERANDS:
                    operands = _named(operands) if operands else operands
            else:
                root, name, type_, opcode, operands, text = instruction.groups()
                if operands and operands[0] != "%" and opcode not in NO_OPERANDS:
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
        rows.lines.extend(range(self.first + start, self.first + at))
        rows.groups.extend(repeat(group, at - start))
        return at


def _named(operands: str) -> str | None:
    """Operands written with their types, or without `%`, as names with it; None if they are anything else."""
    if _NAMES.fullmatch(operands):
        return "%" + operands.replace(",", ",%").replace("% ", " %")
    bare, before = _BRACKETED.sub("", operands), ""
    while bare != before:
        before, bare = bare, _TUPLE.sub("", bare)
    names = [_OPERAND.fullmatch(piece) for piece in bare.split(",")]
    return ", ".join(f"%{name[1]}" for name in names if name) if all(names) else None
