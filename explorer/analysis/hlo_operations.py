"""Classes of operations: an equation's own, helpers, movers; and their notation in formulas."""

from __future__ import annotations

from collections.abc import Sequence

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
