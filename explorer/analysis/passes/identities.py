"""Instructions that give the value of an operand: by arithmetic, or as two that undo each other do."""

from __future__ import annotations

from collections.abc import Sequence

from explorer.analysis.fates.formulas import literal
from explorer.analysis.fates.operations import NEUTRAL
from explorer.analysis.passes.changes import Change

_OF_ITSELF = ("maximum", "minimum", "and", "or")
_UNDOES_ITSELF = ("reverse", "negate", "not")
_DONE_AFTER_ONCE = ("abs", "ceil", "floor", "round-nearest-even", "round-nearest-afz", "sign")
_NOTHING_TO = {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf", "and": "true", "or": "false"}
_SAME_IF_TYPE_IS = ("slice", "dynamic-slice", "reshape", "convert", "copy", "bitcast")


def identity(change: Change, row: int) -> int:
    """Return the key of what has the same value as a row before a pass: an operand, or an operand's; -1 for none."""
    op, operands = change.program.op_name(row), change.program.operands(row)
    if op == "select" and len(operands) == 3:
        chosen = literal(change, change.row_before.get(operands[0]), change.row_before)
        if chosen in ("true", "false"):
            return operands[1 if chosen == "true" else 2]
        sides = [literal(change, change.row_before.get(key), change.row_before) for key in operands[1:]]
        if sides == ["true", "false"]:
            return operands[0]
        return operands[1] if operands[1] == operands[2] else -1
    if op == "reduce":
        return operands[0] if _is_over_one(change, row, operands) else -1
    if len(operands) == 2 and op not in _SAME_IF_TYPE_IS:
        return _of_two(change, op, operands)
    operand = change.row_before.get(operands[0]) if operands else -1
    return _of_one(change, row, operand) if operand >= 0 else -1


def _is_over_one(change: Change, row: int, operands: Sequence[int]) -> bool:
    """Whether a reduction gives each element as it is: over dimensions of 1, from what changes nothing."""
    program, of = change.program, change.row_before.get(operands[0])
    if len(operands) != 2 or of < 0 or program.elements(row) != program.elements(of):
        return False
    reducer = program.op_name(program.root_of[called[0]]) if (called := program.called(row)) else ""
    return literal(change, change.row_before.get(operands[1]), change.row_before) == _NOTHING_TO.get(reducer)


def _of_two(change: Change, op: str, operands: Sequence[int]) -> int:
    """The operand that an operation gives as it is, since the other one changes nothing or is the same; or -1."""
    neutral, sides = NEUTRAL.get(op, ("", ()))
    for side in sides:
        if literal(change, change.row_before.get(operands[side]), change.row_before) == neutral:
            return operands[1 - side]
    return operands[0] if op in _OF_ITSELF and operands[0] == operands[1] else -1


def _of_one(change: Change, row: int, operand: int) -> int:
    """The key of what an operation gives as it is: its first operand, the row given, or what that one undid; or -1."""
    program = change.program
    op, before = program.op_name(row), program.op_name(operand)
    if op == before and (op in _UNDOES_ITSELF or (op == "transpose" and _undoes(change, row, operand))):
        inner = program.operands(operand)[0]
        if op != "reverse" or sorted(_words(program.attributes(row))) == sorted(_words(program.attributes(operand))):
            return inner
    is_done = op in _DONE_AFTER_ONCE and before == op
    is_positive = op == "abs" and _is_square(change, operand)
    is_same = op in _SAME_IF_TYPE_IS and program.type[operand] == program.type[row]
    return program.key[operand] if is_done or is_positive or is_same else -1


def _undoes(change: Change, row: int, operand: int) -> bool:
    """Whether two transposes in a row give what the first one took: the same type, and each other's order."""
    orders = [[word for word in _words(change.program.attributes(at)) if word.isdigit()] for at in (row, operand)]
    return len(orders[0]) == len(orders[1]) and all(
        orders[1][int(at)] == str(i) for i, at in enumerate(orders[0]) if int(at) < len(orders[1])
    )


def _is_square(change: Change, row: int) -> bool:
    """Whether a row is `x · x` or `x ^ 2`: its absolute is itself."""
    operands, op = change.program.operands(row), change.program.op_name(row)
    if len(operands) != 2:
        return False
    if op == "multiply":
        return operands[0] == operands[1]
    return op == "power" and literal(change, change.row_before.get(operands[1]), change.row_before) == "2"


def _words(text: str) -> list[str]:
    """The dimensions among attributes."""
    return text.partition("dimensions={")[2].partition("}")[0].split(",")
