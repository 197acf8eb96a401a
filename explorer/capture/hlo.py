"""Optimised HLO text → Graph.

The text is read rather than the proto because it is what the user sees, what a dump holds, and what a capture
keeps; its line numbers link text and graph. Every computation becomes a group under the node that calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from explorer.errors import UnreadableTextError
from explorer.model.build import GraphBuilder
from explorer.model.graph import Frame, Graph, Group

__all__ = ["read_hlo"]

# A computation opens with its name and its signature; the signature's arrow tells it from an attribute.
_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) (?:\(.*)?(?:-> .*)?\{\s*$")
# `ROOT %name = type opcode(`: the type may be a tuple, with layouts and comments, so it is cut by hand.
_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*)\(")
_NAME = re.compile(r"%?([A-Za-z_][\w.\-]*)$")
_CALLED = re.compile(
    r"\b(calls|to_apply|body|condition|true_computation|false_computation|called_computations|branch_computations)="
    r"(\{[^}]*\}|%?[\w.\-]+)"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_STACK_FRAME = re.compile(r"stack_frame_id=(\d+)")
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
        self.operand_names: list[list[str]] = []
        self.calls: list[tuple[int, str, str]] = []  # node, how it calls, name of the computation

    def read(self) -> Graph:
        builder = self.builder
        builder.frames = self.read_frames()
        group = -1
        for number, line in enumerate(self.lines):
            start = _INSTRUCTION.match(line)
            if start is not None:
                self.read_instruction(number, line, start[1], start.end(), group)
                continue
            opening = _COMPUTATION.match(line)
            if opening is not None and not line.startswith("HloModule"):
                group = builder.add_group(Group(opening[2], "entry" if opening[1] else "computation"))
        if not len(builder):
            raise UnreadableTextError("this text holds no HLO instruction.")
        self.resolve_operands()
        self.nest_groups()
        return builder.build()

    def read_instruction(self, number: int, line: str, name: str, at: int, group: int) -> None:
        type_end = _type_end(line, at)
        opcode = _OPCODE.match(line, type_end)
        if opcode is None:
            return
        arguments_end = _closing(line, opcode.end() - 1)
        rest = line[arguments_end:]
        scope = _OP_NAME.search(rest)
        frame = _STACK_FRAME.search(rest)
        frame_index = int(frame[1]) - 1 if frame else -1
        node = self.builder.add(
            name,
            opcode[1],
            line[at:type_end],
            scope=scope[1] if scope else "",
            group=group,
            frame=frame_index if frame_index < len(self.builder.frames) else -1,
            line=number,
        )
        # A constant's and a parameter's parentheses hold a value, not operands.
        leaf = opcode[1] in ("constant", "parameter")
        self.operand_names.append([] if leaf else list(_operands(line[opcode.end() : arguments_end])))
        if "omputation" in rest or "calls=" in rest or "to_apply=" in rest or "body=" in rest:
            for how, called in _CALLED.findall(rest.split(", metadata=", 1)[0]):
                kind = "fusion" if how == "calls" and opcode[1] == "fusion" else _KIND[how]
                for computation in called.strip("{}").split(","):
                    self.calls.append((node, kind, computation.strip().lstrip("%")))

    def resolve_operands(self) -> None:
        """Names to indices, within the instruction's own computation: HLO names are unique there only."""
        group_of, names = self.builder.group_of, self.builder.names
        index = {key: i for i, key in enumerate(zip(group_of, names, strict=True))}
        for group, operands in zip(group_of, self.operand_names, strict=True):
            self.builder.connect(index[group, name] for name in operands if (group, name) in index)

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


def _operands(arguments: str) -> Iterator[str]:
    """The operand names in `%a, f32[8]{0} %b, /*index=5*/%c`; the last word of each piece is the name."""
    if "%" in arguments:
        yield from re.findall(r"%([\w.\-]+)", arguments)
        return
    arguments = re.sub(r"/\*.*?\*/", "", arguments)
    for piece in re.split(r",\s+", arguments):
        name = _NAME.search(piece.strip())
        if name is not None:
            yield name[1]
