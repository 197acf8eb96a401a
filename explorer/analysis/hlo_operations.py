"""Names and kinds of HLO operations; instructions whose value is that of an operand; formulas of rewrites.

A formula is `sine.1 × 1 → sine.1`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from explorer.analysis.pass_changes import Change

# Operations that accompany an equation's own operation, unless the equation is one of them itself.
HELPERS = frozenset(
    (
        *("broadcast", "bitcast", "constant", "copy", "iota", "reshape", "transpose", "convert", "parameter"),
        *("tuple", "get-tuple-element", "fusion", "call"),
    )
)
# Operations that are never an equation's own.
NEVER_OWN = frozenset(["constant", "parameter", "tuple", "get-tuple-element", "fusion", "bitcast"])
# Neutral element of each operation, and the operands that may have it.
NEUTRAL = {
    "multiply": ("1", (0, 1)),
    "add": ("0", (0, 1)),
    "subtract": ("0", (1,)),
    "divide": ("1", (1,)),
    "power": ("1", (1,)),
}
# Elementwise operations.
BY_ELEMENT = frozenset(
    (
        *(*NEUTRAL, "sqrt", "rsqrt", "cbrt", "negate", "maximum", "minimum", "abs", "select", "compare", "clamp"),
        *("exponential", "log", "tanh", "sine", "cosine", "and", "or", "not", "xor", "remainder", "logistic", "floor"),
        *("ceil", "sign", "atan2", "tan", "erf", "exponential-minus-one", "log-plus-one", "is-finite"),
    )
)
# Operations that move elements or change their form without computing.
MOVERS = frozenset(
    (
        *("reverse", "transpose", "reshape", "slice", "dynamic-slice", "pad", "concatenate", "broadcast", "copy"),
        *("gather", "dynamic-update-slice", "iota", "convert", "bitcast-convert"),
    )
)
# Expensive operations.
WORK = frozenset(("dot", "convolution", "fft", "sort", "reduce-window", "select-and-scatter", "scatter", "reduce"))
# Names of jaxprs and StableHLO that differ from HLO's by more than underscores for hyphens.
_HLO_NAMES = {
    **{"mul": "multiply", "sub": "subtract", "div": "divide", "pow": "power", "neg": "negate", "rev": "reverse"},
    **{"max": "maximum", "min": "minimum", "add-any": "add", "select-n": "select"},
    **{"dot-general": "dot", "case": "conditional", "if": "conditional", "optimization-barrier": "opt-barrier"},
}
_BETWEEN = {"add": "+", "subtract": "−", "multiply": "×", "divide": "÷", "power": "^", "and": "&", "or": "|"}
_BEFORE = {"negate": "−", "not": "¬"}


@cache
def hlo_name(op: str) -> str:
    """Return HLO's name of a jaxpr or StableHLO operation, as far as the name determines it."""
    name = op.removeprefix("stablehlo.").replace("_in_dim", "").replace("_", "-")
    return _HLO_NAMES.get(name, name)


def infix(op: str, operands: Sequence[str]) -> str:
    """Return an operation with its operands as a formula: `x × (y + 1)`, `tanh(x)`."""
    name = hlo_name(op)
    if name in _BETWEEN and len(operands) == 2:
        return f" {_BETWEEN[name]} ".join(map(_bracketed, operands))
    if name in _BEFORE and len(operands) == 1:
        return _BEFORE[name] + _bracketed(operands[0])
    return f"{op}({', '.join(operands)})"


def _bracketed(text: str) -> str:
    """Return an operand, in parentheses if it is an infix or prefix expression."""
    depth, is_between = 0, text.startswith(tuple(_BEFORE.values()))
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        is_between = is_between or (letter == " " and not depth)
    return f"({text})" if is_between else text


# These change only the form of a constant.
_FORMS = ("broadcast", "convert", "bitcast", "reshape", "copy")
_MAX_DEPTH = 2  # of nested expressions; deeper ones are names
_MAX_OPERANDS = 8  # a loop may have hundreds
_MAX_LENGTH = 24  # characters of a constant


def formula(change: Change, before: int, after: int) -> str:
    """Return the expressions of row `before` and of its replacement, row `after`: `sine.1 × 1 → sine.1`.

    If `after` is -1, only the first.
    """
    old = _expression(change, before, change.row_before, change.row_after, 0)
    if after < 0:
        return old
    new = _name(change, after)
    if change.is_new(after):
        new = _expression(change, after, change.row_after, change.row_before, 0)
    return f"{old} → {new}"


def literal(change: Change, row: int, here: Sequence[int]) -> str:
    """Return the value of a constant behind reshapes and conversions, or an empty text.

    Args:
        change: Has the lines.
        row: Row of an instruction, or -1.
        here: Rows by key of the snapshot that contains it.
    """
    # One step for each form ends even if a damaged text has a cycle.
    for _ in _FORMS:
        if row < 0 or change.program.op_name[row] not in _FORMS:
            break
        row = next((here[key] for key in change.program.operands[row]), -1)
    if row < 0 or change.program.op_name[row] != "constant":
        return ""
    # Versions keep only the text of a line: a constant's value is between its parentheses.
    return change.program.versions.lines[row].partition(" constant(")[2].rpartition(")")[0]


def _expression(change: Change, row: int, here: Sequence[int], there: Sequence[int], depth: int) -> str:
    """Return a row as an expression; operands that exist only on this side of the change are expanded."""
    op = change.program.op_name[row]
    if op in ("constant", "parameter"):
        return _name(change, row)
    keys = change.program.operands[row]
    operands = [_operand(change, key, here, there, depth) for key in keys[:_MAX_OPERANDS]]
    operands += ["…"] * (len(keys) > _MAX_OPERANDS)
    if op == "broadcast" and depth and len(operands) == 1:
        return operands[0]
    return infix(op, operands)


def _operand(change: Change, key: int, here: Sequence[int], there: Sequence[int], depth: int) -> str:
    row = here[key]
    if (value := literal(change, row, here)) or row < 0:
        return _cut(value) or change.program.versions.names[key]
    if there[key] >= 0 or depth >= _MAX_DEPTH:
        return change.program.versions.names[key]
    return _expression(change, row, here, there, depth + 1)


def _name(change: Change, row: int) -> str:
    value = literal(change, row, change.row_after) if change.program.op_name[row] == "constant" else ""
    return _cut(value) or change.program.versions.names[change.program.key[row]]


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_LENGTH else f"{text[: _MAX_LENGTH - 1]}…"


_OF_ITSELF = ("maximum", "minimum", "and", "or")
_UNDOES_ITSELF = ("reverse", "negate", "not")
_DONE_AFTER_ONCE = ("abs", "ceil", "floor", "round-nearest-even", "round-nearest-afz", "sign")
_NEUTRAL_OF_REDUCER = {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf", "and": "true", "or": "false"}
_SAME_IF_TYPE_IS = ("slice", "dynamic-slice", "reshape", "convert", "copy", "bitcast")


def identity(change: Change, row: int) -> int:
    """Return the key of the value that a row only passes on before a pass: its operand, or that operand's operand.

    A key is the number of an instruction over all passes. -1 for a row that computes.
    """
    op, operands = change.program.op_name[row], change.program.operands[row]
    if op == "select" and len(operands) == 3:
        chosen = literal(change, change.row_before[operands[0]], change.row_before)
        if chosen in ("true", "false"):
            return operands[1 if chosen == "true" else 2]
        sides = [literal(change, change.row_before[key], change.row_before) for key in operands[1:]]
        if sides == ["true", "false"]:
            return operands[0]
        return operands[1] if operands[1] == operands[2] else -1
    if op == "reduce":
        return operands[0] if _is_over_one(change, row, operands) else -1
    if len(operands) == 2 and op not in _SAME_IF_TYPE_IS:
        return _of_two(change, op, operands)
    operand = change.row_before[operands[0]] if operands else -1
    return _of_one(change, row, operand) if operand >= 0 else -1


def _is_over_one(change: Change, row: int, operands: Sequence[int]) -> bool:
    """Return True if a reduction over dimensions of size 1, from its neutral element, changes no value."""
    program, of = change.program, change.row_before[operands[0]]
    if len(operands) != 2 or of < 0 or program.elements(row) != program.elements(of):
        return False
    reducer = program.op_name[program.root_of[called[0]]] if (called := program.called(row)) else ""
    return literal(change, change.row_before[operands[1]], change.row_before) == _NEUTRAL_OF_REDUCER.get(reducer)


def _of_two(change: Change, op: str, operands: Sequence[int]) -> int:
    """Return the key of the operand that a binary operation passes on, because the other is neutral or equal, or -1."""
    neutral, sides = NEUTRAL.get(op, ("", ()))
    for side in sides:
        if literal(change, change.row_before[operands[side]], change.row_before) == neutral:
            return operands[1 - side]
    return operands[0] if op in _OF_ITSELF and operands[0] == operands[1] else -1


def _of_one(change: Change, row: int, operand: int) -> int:
    """Return the key of the value that a unary operation passes on: its operand, or that operand's operand; or -1."""
    program = change.program
    op, before = program.op_name[row], program.op_name[operand]
    if op == before and (op in _UNDOES_ITSELF or (op == "transpose" and _undoes(change, row, operand))):
        inner = program.operands[operand][0]
        if op != "reverse" or sorted(_words(program.attributes(row))) == sorted(_words(program.attributes(operand))):
            return inner
    is_done = op in _DONE_AFTER_ONCE and before == op
    is_positive = op == "abs" and _is_square(change, operand)
    is_same = op in _SAME_IF_TYPE_IS and program.type[operand] == program.type[row]
    return program.key[operand] if is_done or is_positive or is_same else -1


def _undoes(change: Change, row: int, operand: int) -> bool:
    """Return True if the second of two transposes inverts the first."""
    orders = [[word for word in _words(change.program.attributes(at)) if word.isdigit()] for at in (row, operand)]
    return len(orders[0]) == len(orders[1]) and all(
        orders[1][int(at)] == str(i) for i, at in enumerate(orders[0]) if int(at) < len(orders[1])
    )


def _is_square(change: Change, row: int) -> bool:
    """Return True for `x · x` and `x ^ 2`, which `abs` doesn't change."""
    operands, op = change.program.operands[row], change.program.op_name[row]
    if len(operands) != 2:
        return False
    if op == "multiply":
        return operands[0] == operands[1]
    return op == "power" and literal(change, change.row_before[operands[1]], change.row_before) == "2"


def _words(text: str) -> list[str]:
    return text.partition("dimensions={")[2].partition("}")[0].split(",")
