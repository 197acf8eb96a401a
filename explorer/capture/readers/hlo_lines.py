"""HLO text as XLA prints it: an instruction, a computation's heading or a closing brace on each line.

A hundred thousand lines make each step per line worth avoiding: one regular expression takes an instruction apart, and
what follows the operands repeats so often that it is looked at once for all. A pattern takes a line only if nothing of
it is left over; any other line is not for this file, but for the tokens (`hlo_written.py`).
"""

from __future__ import annotations

import re

from explorer.capture.readers.hlo_rows import NO_OPERANDS, Rest, Rows
from explorer.model.graph import CALL_ROLES

# `ROOT %name = type opcode(operands), attributes` with no parenthesis or string among the operands, and last what
# follows: what stands before the first string, the metadata as today's XLA prints it, and the rest.
_REST = r'([^"]*+)(?:(?<=, metadata=\{)op_name="([^"\\]*+)"(?: stack_frame_id=(\d{1,9}))?\})?(.*)'
_PLAIN = re.compile(
    r"\s*+(ROOT )?%?([\w.\-]+) = (\((?:[^()]++|\([^()]*+\))*+\)|[^ (]\S*+) ([a-z][\w\-]*+)\(([^()\"#]*+)\)" + _REST
)
# The same with parentheses in the operands' types: of tuples, and of layouts as TPUs' are. After a word one would hold
# the operands of an operand.
_TYPED = re.compile(
    r"\s*+(ROOT )?%?([\w.\-]+) = (\((?:[^()]++|\((?:[^()]++|\([^()]*+\))*+\))*+\)|[^ (]\S*+) ([a-z][\w\-]*+)"
    r"\(((?:[^()\"#]++|(?<![a-z\d\-])\((?:[^()\"#]++|\((?:[^()\"#]++|\([^()\"#]*+\))*+\))*+\))*+)\)" + _REST
)
_OPENING = re.compile(r"(ENTRY )?%?([\w.\-]++) (?:\([^\"=]*\) -> [^\"=]*)?\{")
_STRING = r'"(?:[^"\\]|\\.)*+"'
_COMMENT = r"/\*[^*]*+\*/"


def _brackets(depth: int) -> str:
    """A pattern of what stands in brackets, with others inside them."""
    inner = f"|{_brackets(depth - 1)}" if depth else ""
    return rf"[({{\[](?:[^\"'(){{}}\[\]/]++|{_STRING}|{_COMMENT}{inner})*+[)}}\]]"


# Attributes of which nothing is left over. Deeper brackets than GPUs' backend_config has are for the tokens.
_WHOLE = re.compile(rf"(?:,\ [\w.\-]++=(?:[^\"'(){{}}\[\]/,=\s<]++|<=|{_STRING}|{_brackets(5)})++)*+", re.X)
# A computation that is written out where it is called.
_INSIDE = re.compile(rf"\b(?:{'|'.join(CALL_ROLES)})=\{{(?!(?:[\s%\w.\-,]++|{_COMMENT})*+\}})")
_NAMES = re.compile(r"[\w.\-]++(?:,\s?[\w.\-]++)*+")
_BRACKETED = re.compile(rf"\[[^\[\]]*+\]|\{{[^{{}}]*+\}}|{_COMMENT}")
_TUPLE = re.compile(r"\([^()]*+\)")
_OPERAND = re.compile(r"\s?(?:(?:[a-z]\w*+)? )?%?([A-Za-z_][\w.\-]*+)")


class LineReader:
    """Takes lines as XLA prints them; what it has seen of attributes and stacks is kept for the next ones."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._codes: dict[str, int] = {}  # of attributes without metadata

    def read(self, number: int, line: str) -> bool:
        """Whether the line is an instruction of which nothing is left over; then it is among the rows."""
        instruction = _PLAIN.match(line) or _TYPED.match(line)
        if instruction is None:
            return False
        root, name, type_, opcode, operands, before, op_name, stack, after = instruction.groups()
        if operands and opcode not in NO_OPERANDS and operands.count("%") != operands.count(",") + 1:
            operands = _named(operands)
            if operands is None:
                return False
        if op_name is None:
            rest = self._rest(before + after)
        else:
            attributes = before[:-12] + after  # without `, metadata={`
            code = self._codes.get(attributes)
            if code is None:
                code = self._code(attributes)
            frame = self.rows.known_frames.get(stack)
            if frame is None:
                frame = self.rows.known_frames[stack] = self.rows.frame(int(stack or 0) - 1)
            rest = (code, op_name, frame) if code >= 0 else None
        if rest is None:
            return False
        self.rows.add(number, root, name, type_, opcode, operands, rest)
        return True

    def opens(self, line: str) -> bool:
        """Whether the line is the heading of a computation; then it is open."""
        opening = _OPENING.fullmatch(line)
        if opening is None or "/*" in line or "//" in line:
            return False
        self.rows.open(opening[2], is_entry=opening[1] is not None)
        return True

    def _code(self, attributes: str) -> int:
        is_whole = _WHOLE.fullmatch(attributes) and not _INSIDE.search(attributes)
        code = self._codes[attributes] = self.rows.code(attributes) if is_whole else -1
        return code

    def _rest(self, text: str) -> Rest | None:
        rest = self.rows.known_rests.get(text)
        if rest is None and _WHOLE.fullmatch(text) and not _INSIDE.search(text):
            rest = self.rows.known_rests[text] = self.rows.rest(text)
        return rest


def _named(operands: str) -> str | None:
    """Operands written with their types, or without `%`, as names with it; None if they are anything else."""
    if _NAMES.fullmatch(operands):
        return "%" + operands.replace(",", ",%").replace("% ", " %")
    bare, before = _BRACKETED.sub("", operands), ""
    while bare != before:
        before, bare = bare, _TUPLE.sub("", bare)
    names = [_OPERAND.fullmatch(piece) for piece in bare.split(",")]
    return ", ".join(f"%{name[1]}" for name in names if name) if all(names) else None
