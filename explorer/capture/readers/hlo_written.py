"""HLO text in any spelling that XLA's own parser takes, token by token; what it can't read is marked as unread.

Instructions over several lines or several on one, operands inside operands, computations on one line or written out
where they are called, comments anywhere. The grammar is that of xla/hlo/parser/hlo_parser.cc.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from explorer.capture.readers.hlo_frames import TABLE_ROW, TABLES
from explorer.capture.readers.hlo_rows import NO_OPERANDS, NOTHING, Rows
from explorer.capture.readers.hlo_tokens import SKIP, NotUnderstoodError, Scanner, plain_type, without_noise
from explorer.capture.readers.text_lines import TextLines
from explorer.model.graph import CALL_ROLES

_WORD = re.compile(r"[A-Za-z_][\w.\-]*+")
_OPCODE = re.compile(r"[a-z][\w\-]*+")
_INDEX = re.compile(r"#\s*+(\d+)")
_BEGINS = re.compile(rf"(ROOT(?![\w.\-=]){SKIP}(?!=))?%?([\w.\-]++):?{SKIP}=")
_OPERAND = re.compile(r"%?([A-Za-z_][\w.\-]*+):?")
_HEADING = re.compile(r"(?:ENTRY|HloModule)\s")
_KEY = re.compile(r"([A-Za-z_][\w.\-]*+)=")
_ELEMENT = re.compile(r"[({\[]|[)}\]]|,")
_ANONYMOUS = re.compile(r"([\w\-]++\.anon)(?:\.(\d{1,9}))?(?![\w.\-])")
_DEEPEST = 100  # operands and computations inside each other


class WrittenReader:
    """Reads one item at a time: an instruction, a heading, a closing brace, a table, a module's first line."""

    def __init__(self, lines: TextLines, rows: Rows) -> None:
        self.text, self.lines, self.rows = lines.text, lines, rows
        self.scan = Scanner(lines.text)
        self.anonymous: dict[str, int] = {}  # how many operands inside operands have an opcode
        self.own_line = -1  # of the last instruction that was read here
        self.depth = 0  # computations inside each other
        self.elements: set[tuple[int, str]] = set()  # `a#1` of which computations is there

    def read_line(self, number: int) -> int:
        """Read what begins on a line, and all that begins before the next line that is left; its number."""
        at = self.scan.skip(self.lines.start(number))
        while at < len(self.text):
            line = self.lines.line_at(at)
            if line > number and not self.text[self.lines.start(line) : at].strip():
                return line
            number = line
            at = self.scan.skip(self.item_or_unread(at, self.item))
        return self.lines.line_at(at) + 1

    def item_or_unread(self, at: int, read: Callable[[int], int | None]) -> int:
        """Where ends what `read` reads at `at`; if it reads nothing, the line is unread and the next one follows."""
        rows = len(self.rows)
        try:
            after = read(at)
        except NotUnderstoodError:
            self.rows.drop(rows)
            after = None
        return self.unread(at) if after is None else after

    def unread(self, at: int) -> int:
        """Mark the line at `at` as unread; where the next one begins."""
        line = self.lines.line_at(at)
        end = min(self.lines.start(line + 1), len(self.text))
        # XLA has no such comments, but people have.
        if not self.text[self.lines.start(line) : end].lstrip().startswith("#"):
            self.rows.unread.add(line)
        return end

    def item(self, at: int) -> int:
        text = self.text
        if text.startswith("}", at):
            return self.close(at)
        if text.startswith(",", at):
            return self.again(at)
        word = _WORD.match(text, at)
        if word is not None and word[0] == "HloModule":
            return self.header(word.end())
        if word is not None and word[0] in TABLES:
            return self.tables(at)
        is_entry = word is not None and word[0] == "ENTRY"
        start = self.scan.skip(word.end()) if word is not None and is_entry else at
        after = self.instruction(start)
        return self.opening(start, is_entry=is_entry) if after is None else after

    def header(self, at: int) -> int:
        name, at = self.scan.name(self.scan.skip(at))
        attributes, at = self.attributes(at, -1)
        self.rows.begin_module(f"HloModule {name}{attributes}")
        return at

    def tables(self, at: int) -> int:
        """The tables of stack frames, up to what is no row of theirs."""
        rows: list[str] = []
        while row := TABLE_ROW.match(self.text, at):
            rows.append(row[0])
            at = self.scan.skip(row.end())
        self.rows.read_tables(rows)
        return at

    def opening(self, at: int, *, is_entry: bool) -> int:
        """The heading of a computation: its name, and its signature if it has one."""
        scan = self.scan
        name, at = scan.name(at)
        at = scan.skip(at)
        if self.text.startswith("(", at):
            start = scan.skip(scan.expect("->", scan.closing(at) + 1))
            at = scan.type_end(start)
            if at == start:
                raise NotUnderstoodError(at)
        at = scan.expect("{", at)
        if self.rows.group >= 0:
            self.rows.close()
        self.rows.open(name, is_entry=is_entry)
        return at

    def close(self, at: int) -> int:
        if self.rows.group < 0:
            raise NotUnderstoodError(at)
        self.rows.close()
        return self.attributes(at + 1, -1)[1]  # the thread that it runs on

    def again(self, at: int) -> int:
        """A comma goes on with an instruction that a pattern took for a whole line: that is read anew."""
        rows = self.rows
        if not len(rows) or rows.lines[-1] <= self.own_line or rows.groups[-1] != rows.group:
            raise NotUnderstoodError(at)
        start = self.scan.skip(self.lines.start(rows.lines[-1]))
        rows.drop(len(rows) - 1)
        after = self.instruction(start)
        if after is None:
            raise NotUnderstoodError(at)
        return after

    def instruction(self, at: int) -> int | None:
        """Read the instruction at `at`, and give where it ends; None if no `name =` begins here."""
        begins = _BEGINS.match(self.text, at)
        if begins is None:
            return None
        line = self.own_line = self.lines.line_at(at)
        type_, opcode, operands, end = self.right_side(begins.end(), 0)
        row = len(self.rows)
        self.rows.add(line, begins[1], begins[2], type_, opcode, operands, NOTHING)
        attributes, end = self.attributes(end, row)
        self.rows.set_rest(row, attributes)
        return end

    def right_side(self, at: int, depth: int) -> tuple[str, str, str, int]:
        """Type, opcode and operands of what stands right of `=`, or in an operand's place; and where they end."""
        text, scan = self.text, self.scan
        start = scan.skip(at)
        end = scan.type_end(start)
        opcode = _OPCODE.match(text, scan.skip(end))
        if opcode is None or depth > _DEEPEST:
            raise NotUnderstoodError(start)
        type_ = plain_type(text[start:end])
        at = scan.expect("(", opcode.end())
        if opcode[0] in NO_OPERANDS:
            end = scan.closing(at - 1)
            return type_, opcode[0], without_noise(text[at:end]), end + 1
        operands: list[str] = []
        at = scan.skip(at)
        while not text.startswith(")", at):
            name, at = self.operand(at, depth)
            operands.append(name)
            at = scan.skip(at)
            if text.startswith(",", at):
                at = scan.skip(at + 1)
            elif not text.startswith(")", at):
                raise NotUnderstoodError(at)
        return type_, opcode[0], ", ".join(operands), at + 1

    def operand(self, at: int, depth: int) -> tuple[str, int]:
        """An operand's name with `%`: as it stands, or that of the row that is made of an operand written out."""
        text, scan = self.text, self.scan
        end = scan.type_end(at)
        name = _OPERAND.match(text, scan.skip(end))
        if name is None:
            # Of one instruction alone XLA takes a type for an operand that isn't there.
            if end == at or self.rows.group >= 0:
                raise NotUnderstoodError(at)
            return "", end
        after = scan.skip(name.end())
        if text.startswith("(", after):
            type_, opcode, operands, after = self.right_side(at, depth + 1)
            own = self.own_name(f"{opcode}.anon")
            self.rows.add(self.lines.line_at(at), None, own, type_, opcode, operands, NOTHING)
            return f"%{own}", after
        element = name[1]
        while index := _INDEX.match(text, after):
            element = self.element(element, int(index[1]), self.lines.line_at(at))
            after = scan.skip(index.end())
        return f"%{element}", after

    def own_name(self, stem: str) -> str:
        """A name as XLA gives one to an instruction without: the first alone, then numbered."""
        if not self.anonymous:
            for name, number in _ANONYMOUS.findall(self.text):
                self.anonymous[name] = max(self.anonymous.get(name, 0), int(number or 0))
        count = self.anonymous[stem] = self.anonymous.get(stem, -1) + 1
        return f"{stem}.{count}" if count else stem

    def element(self, name: str, index: int, line: int) -> str:
        """`tuple#1` is a get-tuple-element, made where it is used first."""
        rows, own = self.rows, f"{name}#{index}"
        if (rows.group, own) not in self.elements:
            self.elements.add((rows.group, own))
            row = next((i for i in reversed(range(len(rows))) if rows.names[i] == name), -1)
            types = element_types(rows.types[row]) if row >= 0 and rows.groups[row] == rows.group else []
            type_ = types[index] if index < len(types) else ""
            rows.add(line, None, own, type_, "get-tuple-element", f"%{name}", rows.rest(f", index={index}"))
        return own

    def attributes(self, at: int, row: int) -> tuple[str, int]:
        """What follows the operands of a row, as XLA would print it, and where it ends."""
        pieces: list[str] = []
        comma = self.scan.skip(at)
        try:
            while self.text.startswith(",", comma):
                piece, at = self.attribute(comma, row)
                pieces.append(piece)
                comma = self.scan.skip(at)
        except NotUnderstoodError as error:
            at = self.unread(error.at)
        return "".join(pieces), at

    def attribute(self, comma: int, row: int) -> tuple[str, int]:
        key = _KEY.match(self.text, self.scan.skip(comma + 1))
        if key is None:
            raise NotUnderstoodError(comma)
        start = self.scan.skip(key.end())
        if row >= 0 and key[1] in CALL_ROLES and self.text.startswith("{", start):
            value, end = self.called(start, row, key[1])
        else:
            end = self.scan.value_end(start)
            value = without_noise(self.text[start:end])
        return f", {key[1]}={value}", end

    def called(self, at: int, row: int, role: str) -> tuple[str, int]:
        """Computations that are called: named, or written out here; their names, and where they end."""
        scan, text = self.scan, self.text
        inside = scan.skip(at + 1)
        if _BEGINS.match(text, inside):
            return self.body(inside, row, role)
        names: list[str] = []
        while not text.startswith("}", inside):
            if text.startswith("{", inside):
                name, inside = self.body(scan.skip(inside + 1), row, role)
            else:
                name, inside = scan.name(inside)
            names.append(name)
            inside = scan.skip(inside)
            if text.startswith(",", inside):
                inside = scan.skip(inside + 1)
            elif not text.startswith("}", inside):
                raise NotUnderstoodError(inside)
        return f"{{{', '.join(names)}}}", inside + 1

    def body(self, at: int, row: int, role: str) -> tuple[str, int]:
        """The instructions of a computation that is written out where it is called; its name, and where it ends."""
        rows = self.rows
        self.depth += 1
        if self.depth > _DEEPEST:
            raise NotUnderstoodError(at)
        outer, name = rows.group, f"{rows.names[row]}.{role}.{len(rows.builder.groups)}"
        rows.open(name)
        try:
            while not self.text.startswith("}", at):
                if at == len(self.text) or _HEADING.match(self.text, at):
                    raise NotUnderstoodError(at)
                at = self.scan.skip(self.item_or_unread(at, self.instruction))
        finally:
            rows.group = outer
            self.depth -= 1
        return name, at + 1


def element_types(text: str) -> list[str]:
    """The types in a tuple's."""
    types, level, start = [""][:0], 0, 1
    for piece in _ELEMENT.finditer(text):
        level += (piece[0] in "({[") - (piece[0] in ")}]")
        if (piece[0] == "," and level == 1) or not level:
            types.append(text[start : piece.start()].strip())
            start = piece.end()
    return types
