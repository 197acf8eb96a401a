"""One HLO instruction's text, taken apart: for the spellings that one regular expression can't read.

Everything here takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import re

_START = re.compile(r"\s*(ROOT\s+)?%?([\w.\-]+)\s++=\s*+(?=[a-z(])")
# An array's type; the space after it ends it, yet a person may write `f32[2, 3] {1, 0}`.
_ARRAY = re.compile(r"[a-z]\w*+(?:\[[^\]]*+\])?+(?:\s?\{[^{}]*+\})?+(?=\s)")
_SPACE = re.compile(r"(?<=\d,)\s+(?=[\d<])|(?<=\])\s+(?=\{)")
_WORD = re.compile(r"\S++")
_OPCODE = re.compile(r"\s*([a-z][\w\-]*+)\s?\(")
_BRACKETS = re.compile(r"\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|[(){}\[\]]")
_PARENTHESES = re.compile(r"\"(?:[^\"\\]|\\.)*+(?:\"|\\?\Z)|[()]")
_COMMENT = re.compile(r"/\*[^*]*+\*/")
_LAST_WORD = re.compile(r"[A-Za-z_][\w.\-]*+")
_STEP = {"(": 1, "{": 1, "[": 1, ")": -1, "}": -1, "]": -1}


def starts_instruction(line: str) -> bool:
    """Whether a line begins as an instruction does: `name = type`."""
    return _START.match(line) is not None


def depth(text: str) -> int:
    """How many brackets of any kind a text leaves open, strings skipped."""
    return sum(_STEP.get(piece, 0) for piece in _BRACKETS.findall(text))


def cut(line: str) -> tuple[str | None, str, str, str, str, str] | None:
    """`ROOT ` or None, name, type, opcode, operands and the rest; None if this is no instruction."""
    start = _START.match(line)
    if start is None:
        return None
    type_end = start.end()
    # A person may leave out the type, which XLA then infers; `b(` is the type of a buffer.
    if line.startswith("b(", type_end) or not _OPCODE.match(line, type_end):
        type_end = _type_end(line, type_end)
    opcode = _OPCODE.match(line, type_end)
    if opcode is None:
        return None
    end = _closing(line, opcode.end() - 1)
    # The brackets' content where they close; a damaged line's up to its end.
    type_ = _SPACE.sub("", line[start.end() : type_end].strip())
    return start[1], start[2], type_, opcode[1], line[opcode.end() : end], line[end + 1 :]


def _type_end(line: str, at: int) -> int:
    """Where the type that starts at `at` ends."""
    if line[at] == "(" or line.startswith("b(", at):
        return min(_closing(line, line.index("(", at)) + 1, len(line))
    array = _ARRAY.match(line, at) or _WORD.match(line, at)
    return array.end() if array is not None else len(line)


def _closing(line: str, at: int) -> int:
    """The index of the parenthesis that closes the one at `at`, strings skipped; the line's end if none does."""
    level = 0
    for piece in _PARENTHESES.finditer(line, at):
        level += _STEP.get(piece[0], 0)
        if not level:
            return piece.start()
    return len(line)


def bare_names(operands: str) -> list[str]:
    """The operands in `a, f32[8]{0} b, /*index=5*/c`, written without `%`: the last word of each piece."""
    pieces = _COMMENT.sub("", operands).split(",") if operands else []
    words = [piece.split()[-1] for piece in pieces if piece.strip()]
    return [word for word in words if _LAST_WORD.fullmatch(word)]
