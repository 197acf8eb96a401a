"""Optimised HLO text → Graph.

The text is read rather than the proto because it is what the user sees, what a dump holds, and what a capture
keeps; its line numbers link text and graph. Every computation becomes a group under the node that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from explorer.capture.frames import users_frames
from explorer.errors import UnreadableTextError
from explorer.model.build import GraphBuilder
from explorer.model.graph import Frame, Graph, Group

__all__ = ["read_hlo"]

# A computation opens with its name and its signature; the signature's arrow tells it from an attribute.
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*)?(?:-> .*)?\{\s*$")
# Nearly every instruction is `ROOT %name = type opcode(operands), attributes` with no parenthesis or string among the
# operands: one match reads it. A hundred thousand lines make each further match or scan worth avoiding.
_PLAIN = re.compile(
    r"\s+(?:ROOT )?%?([\w.\-]+) = (\((?:[^()]|\([^()]*\))*\)|[^ (]\S*) ([a-z][\w\-]*)\(([^()\"]*)\)(.*)"
)
# The others: the type may be a tuple, with layouts and comments, so it is cut by hand.
_INSTRUCTION = re.compile(r"\s+(?:ROOT )?%?([\w.\-]+) = ")
_REFERENCE = re.compile(r"%([\w.\-]+)")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*)$")
_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|true_computation|false_computation|called_computations|branch_computations)="
    r"(\{[^}]*\}|%?[\w.\-]+)"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_DIGITS = re.compile(r"\d+")
_ROW = re.compile(r"^(\d+) (?:\"(.*)\"|\{(.*)\})\s*$")
_KIND = {
    "calls": "call",
    "to_apply": "apply",
    "body": "body",
    "condition": "condition",
    "true_computation": "branch",
    "false_computation": "branch",
    "called_computations": "call",
    "branch_computations": "branch",
}
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


def read_hlo(text: str) -> Graph:
    """Read an HLO module's text into a graph.

    Args:
        text: What `jax.stages.Compiled.as_text()` gives, or a file of an XLA dump.

    Returns:
        One node per instruction of every computation, in the text's order.

    Raises:
        UnreadableTextError: The text holds no HLO computation at all.
    """
    if "HloModule" not in text and " = " not in text:
        first = text.strip().splitlines()[:1]
        raise UnreadableTextError(
            f"this text holds no HLO module: it starts with {first[0][:60]!r}." if first else "this text is empty."
        )
    return _Reader(text.splitlines()).read()


class _Reader:
    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = lines
        self.builder = GraphBuilder()
        self.pending: list[list[str]] = []  # the operand names of each instruction of the open computation
        self.index: dict[str, int] = {}  # its instructions: HLO names are unique only within one
        self.calls: list[tuple[int, str, str]] = []  # node, how it calls, name of the computation

    def read(self) -> Graph:
        builder = self.builder
        builder.frames, self.frame_of = users_frames(self.read_frames())
        group = -1
        for number, line in enumerate(self.lines):
            if line.startswith("  ") and self.read_instruction(number, line, group):
                continue
            opening = _COMPUTATION.match(line)
            if opening is not None and not line.startswith("HloModule"):
                self.close_computation()
                group = builder.add_group(Group(opening[2], "entry" if opening[1] else "computation"))
        self.close_computation()
        if not len(builder):
            raise UnreadableTextError("this text holds no HLO instruction.")
        self.nest_groups()
        return builder.build()

    def read_instruction(self, number: int, line: str, group: int) -> bool:
        plain = _PLAIN.match(line)
        name, type_, opcode, operands, rest = plain.groups() if plain is not None else _cut(line)
        if not opcode:
            return False
        scope, frame = _metadata(rest)
        node = self.builder.add(
            name,
            opcode,
            type_,
            scope=scope,
            group=group,
            frame=self.frame_of[frame] if 0 <= frame < len(self.frame_of) else -1,
            line=number,
        )
        self.index[name] = node
        # A constant's and a parameter's parentheses hold a value, not operands.
        leaf = not operands or opcode in ("constant", "parameter")
        self.pending.append([] if leaf else _operands(operands))
        if "omputation" in rest or "calls=" in rest or "to_apply=" in rest or "body=" in rest:
            for how, called in _CALLED.findall(rest.split(", metadata=", 1)[0]):
                kind = "fusion" if how == "calls" and opcode == "fusion" else _KIND[how]
                for computation in called.strip("{}").split(","):
                    self.calls.append((node, kind, computation.strip().lstrip("%")))
        return True

    def close_computation(self) -> None:
        """Operand names to indices. Only now: a text need not define before it uses."""
        index = self.index
        for operands in self.pending:
            self.builder.connect([index[name] for name in operands if name in index])
        self.pending, self.index = [], {}

    def nest_groups(self) -> None:
        groups = self.builder.groups
        number = {group.name: i for i, group in enumerate(groups)}
        for node, kind, name in self.calls:
            called = number.get(name, -1)
            if called >= 0 and groups[called].caller < 0:
                parent = self.builder.group_of[node]
                groups[called] = replace(groups[called], kind=kind, caller=node, parent=parent)

    def read_frames(self) -> list[Frame]:
        """The FileNames, FunctionNames, FileLocations and StackFrames tables, as one table of frames."""
        tables: dict[str, dict[int, str]] = {name: {} for name in _TABLES}
        table: dict[int, str] | None = None
        for line in self.lines:
            if line in tables:
                table = tables[line]
            elif table is not None and (row := _ROW.match(line)):
                table[int(row[1])] = row[2] if row[2] is not None else row[3]
            elif line.startswith(("%", "ENTRY")):
                break
        locations = {key: _fields(row) for key, row in tables["FileLocations"].items()}
        frames: list[Frame] = []
        for key in range(1, max(tables["StackFrames"], default=0) + 1):
            row = _fields(tables["StackFrames"].get(key, ""))
            place = locations.get(row.get("file_location_id", 0), {})
            frames.append(
                Frame(
                    file=tables["FileNames"].get(place.get("file_name_id", 0), ""),
                    function=tables["FunctionNames"].get(place.get("function_name_id", 0), ""),
                    line=place.get("line", 0),
                    column=place.get("column", 0),
                    end_line=place.get("end_line", 0),
                    end_column=place.get("end_column", 0),
                    # The printed parent is one too high (the proto's is right), and ids count from 1.
                    parent=row.get("parent_frame_id", 1) - 2,
                )
            )
        return frames


def _fields(row: str) -> dict[str, int]:
    return {key: int(value) for key, value in re.findall(r"(\w+)=(-?\d+)", row)}


def _metadata(rest: str) -> tuple[str, int]:
    """The op_name, empty where there is none, and the index of the stack frame, -1 where there is none."""
    start = rest.find('op_name="')
    scope = ""
    if start >= 0:
        quoted = _OP_NAME.match(rest, start)
        scope = quoted[1] if quoted is not None else ""
        if "\\" in scope:  # an argument's path, `state[\'step\']`
            scope = _ESCAPED.sub(r"\1", scope)
    start = rest.find("stack_frame_id=", max(start, 0))
    if start < 0:
        return scope, -1
    digits = _DIGITS.match(rest, start + len("stack_frame_id="))
    return scope, int(digits[0]) - 1 if digits is not None else -1


def _cut(line: str) -> tuple[str, str, str, str, str]:
    """Name, type, opcode, operands and the rest, by counting parentheses; no opcode if this is no instruction."""
    start = _INSTRUCTION.match(line)
    if start is not None:
        type_end = _type_end(line, start.end())
        opcode = _OPCODE.match(line, type_end)
        if opcode is not None:
            end = _closing(line, opcode.end() - 1)
            return start[1], line[start.end() : type_end], opcode[1], line[opcode.end() : end], line[end:]
    return "", "", "", "", ""


def _type_end(line: str, at: int) -> int:
    """Where the type that starts at `at` ends: after its closing parenthesis, or at the next space."""
    if line[at : at + 1] == "(":
        return _closing(line, at) + 1
    end = line.find(" ", at)
    return end if end >= 0 else len(line)


def _closing(line: str, at: int) -> int:
    """The index of the parenthesis that closes the one at `at`, strings skipped; the line's end if none does."""
    close = line.find(")", at)
    if close >= 0 and line.find("(", at + 1, close) < 0 and line.find('"', at, close) < 0:
        return close
    depth, quoted, i = 0, False, at
    while i < len(line):
        letter = line[i]
        if quoted:
            i += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter == "(":
            depth += 1
        elif letter == ")":
            depth -= 1
            if depth == 0:
                return i
        i += 1
    return len(line)


def _operands(arguments: str) -> list[str]:
    """The operand names in `%a, f32[8]{0} %b, /*index=5*/%c`; without `%`, the last word of each piece."""
    if "%" in arguments:
        return _REFERENCE.findall(arguments)
    pieces = re.split(r",\s+", re.sub(r"/\*.*?\*/", "", arguments))
    return [name[1] for piece in pieces if (name := _NAME.search(piece.strip()))]
