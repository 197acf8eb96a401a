"""What a pass made of an expression, short enough to be read at a glance: `sine.1 × 1 → sine.1`."""

from __future__ import annotations

from explorer.analysis.fates.operations import infix
from explorer.analysis.passes.changes import Change, RowOfKey

# A constant, or any number, is the same to a reader in another form.
_FORMS = ("broadcast", "convert", "bitcast", "reshape", "copy")
_DEEPEST = 2  # expressions inside expressions; the rest is names
_LONGEST = 24  # characters of a constant


def formula(change: Change, before: int, after: int) -> str:
    """The expression of the row `before`, and what stands in its place; -1 for nothing."""
    old = _expression(change, before, change.row_before, change.row_after, 0)
    if after < 0:
        return old
    new = _name(change, after)
    if change.is_new(after):
        new = _expression(change, after, change.row_after, change.row_before, 0)
    return f"{old} → {new}"


def literal(change: Change, row: int, here: RowOfKey) -> str:
    """The value of a constant, in whatever form it is read; empty for anything else.

    Args:
        change: Has the lines.
        row: Of an instruction; -1 for none.
        here: By key, the rows of the snapshot that has it.
    """
    for _ in _FORMS:
        if row < 0 or change.program.op_name(row) not in _FORMS:
            break
        row = next((here.get(key) for key in change.program.operands(row)), -1)
    if row < 0 or change.program.op_name(row) != "constant":
        return ""
    # The versions keep no attributes of a line: a constant's value is between its parentheses.
    return change.program.versions.lines[row].partition(" constant(")[2].rpartition(")")[0]


def _expression(change: Change, row: int, here: RowOfKey, there: RowOfKey, depth: int) -> str:
    """A row as an expression; what only this side of the change has is written out in it."""
    op = change.program.op_name(row)
    if op in ("constant", "parameter"):
        return _name(change, row)
    operands = [_operand(change, key, here, there, depth) for key in change.program.operands(row)]
    if op == "broadcast" and depth and len(operands) == 1:
        return operands[0]
    return infix(op, operands)


def _operand(change: Change, key: int, here: RowOfKey, there: RowOfKey, depth: int) -> str:
    row = here.get(key)
    if (value := literal(change, row, here)) or row < 0:
        return _cut(value) or change.program.versions.names[key]
    if key in there or depth >= _DEEPEST:
        return change.program.versions.names[key]
    return _expression(change, row, here, there, depth + 1)


def _name(change: Change, row: int) -> str:
    value = literal(change, row, change.row_after) if change.program.op_name(row) == "constant" else ""
    return _cut(value) or change.program.versions.names[change.program.key[row]]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
