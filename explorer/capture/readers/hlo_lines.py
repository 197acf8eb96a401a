"""HLO text as XLA prints it: an instruction, a computation's heading or a closing brace on each line.

A hundred thousand lines make each step per line worth avoiding: one regular expression takes an instruction apart, and
what follows the operands repeats so often that it is looked at once for all. A pattern takes a line only if nothing of
it is left over; any other line is not for this file, but for the tokens (`hlo_written.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import repeat

from explorer.capture.readers.hlo_rows import NO_OPERANDS, Rows

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
_OPENING = re.compile(r"(ENTRY )?%?([\w.\-]++) (?:\([^\"=]*\) -> [^\"=]*)?\{")
_COMMENT = r"/\*[^*]*+\*/"
_NAMES = re.compile(r"[\w.\-]++(?:,\s?[\w.\-]++)*+")
_BRACKETED = re.compile(rf"\[[^\[\]]*+\]|\{{[^{{}}]*+\}}|{_COMMENT}")
_TUPLE = re.compile(r"\([^()]*+\)")
_OPERAND = re.compile(r"\s?(?:(?:[a-z]\w*+)? )?%?([A-Za-z_][\w.\-]*+)")


class LineReader:
    """Takes lines as XLA prints them."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows

    def read(self, lines: Sequence[str], at: int, number: int) -> int:
        """Take lines from `at` on while each is an instruction of which nothing is left over; the first other line.

        Args:
            lines: Some of the text's.
            at: Index into them.
            number: Of the first of them in the text.
        """
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
        rows.lines.extend(range(number + start, number + at))
        rows.groups.extend(repeat(group, at - start))
        return at

    def opens(self, line: str) -> bool:
        """Whether the line is the heading of a computation; then it is open."""
        opening = _OPENING.fullmatch(line)
        if opening is None or "/*" in line or "//" in line:
            return False
        self.rows.open(opening[2], is_entry=opening[1] is not None)
        return True


def _named(operands: str) -> str | None:
    """Operands written with their types, or without `%`, as names with it; None if they are anything else."""
    if _NAMES.fullmatch(operands):
        return "%" + operands.replace(",", ",%").replace("% ", " %")
    bare, before = _BRACKETED.sub("", operands), ""
    while bare != before:
        before, bare = bare, _TUPLE.sub("", bare)
    names = [_OPERAND.fullmatch(piece) for piece in bare.split(",")]
    return ", ".join(f"%{name[1]}" for name in names if name) if all(names) else None
