"""Which operations are an equation's own, which come along with them, and how they are written."""

from __future__ import annotations

from collections.abc import Sequence

# What comes along with an equation's operation: it is there for another one's sake, unless the equation is just that.
HELPERS = frozenset(
    (
        *("broadcast", "bitcast", "constant", "copy", "iota", "reshape", "transpose", "convert", "parameter"),
        *("tuple", "get-tuple-element", "fusion", "call"),
    )
)
# What is no operation of an equation even where that is just a form of a value.
NEVER_OWN = frozenset(["constant", "parameter", "tuple", "get-tuple-element", "fusion", "bitcast"])
# What changes nothing where one operand is this number, and on which sides that may stand.
NEUTRAL = {
    "multiply": ("1", (0, 1)),
    "add": ("0", (0, 1)),
    "subtract": ("0", (1,)),
    "divide": ("1", (1,)),
    "power": ("1", (1,)),
}
# What does one thing with each element, and puts none elsewhere.
BY_ELEMENT = frozenset(
    (
        *(*NEUTRAL, "sqrt", "rsqrt", "cbrt", "negate", "maximum", "minimum", "abs", "select", "compare", "clamp"),
        *("exponential", "log", "tanh", "sine", "cosine", "and", "or", "not", "xor", "remainder", "logistic", "floor"),
        *("ceil", "sign", "atan2", "tan", "erf", "exponential-minus-one", "log-plus-one", "is-finite"),
    )
)
# What puts elements elsewhere, or gives them another form, and computes nothing.
MOVERS = frozenset(
    (
        *("reverse", "transpose", "reshape", "slice", "dynamic-slice", "pad", "concatenate", "broadcast", "copy"),
        *("gather", "dynamic-update-slice", "iota", "convert", "bitcast-convert"),
    )
)
# What does much of the work.
WORK = frozenset(("dot", "convolution", "fft", "sort", "reduce-window", "select-and-scatter", "scatter", "reduce"))
# Names that are not HLO's own with hyphens for underscores: of jaxprs, then of StableHLO.
_HLO_NAMES = {
    **{"mul": "multiply", "sub": "subtract", "div": "divide", "pow": "power", "neg": "negate", "rev": "reverse"},
    **{"max": "maximum", "min": "minimum", "add-any": "add", "select-n": "select"},
    **{"dot-general": "dot", "case": "conditional", "if": "conditional", "optimization-barrier": "opt-barrier"},
}
_BETWEEN = {"add": "+", "subtract": "−", "multiply": "×", "divide": "÷", "power": "^", "and": "&", "or": "|"}
_BEFORE = {"negate": "−", "not": "¬"}


def hlo_name(op: str) -> str:
    """What HLO calls an operation of a jaxpr or of StableHLO, as far as the name alone says it."""
    name = op.removeprefix("stablehlo.").replace("_in_dim", "").replace("_", "-")
    return _HLO_NAMES.get(name, name)


def infix(op: str, operands: Sequence[str]) -> str:
    """An operation with its operands as a person writes it: `x × (y + 1)`, `tanh(x)`."""
    name = hlo_name(op)
    if name in _BETWEEN and len(operands) == 2:
        return f" {_BETWEEN[name]} ".join(map(_bracketed, operands))
    if name in _BEFORE and len(operands) == 1:
        return _BEFORE[name] + _bracketed(operands[0])
    return f"{op}({', '.join(operands)})"


def _bracketed(text: str) -> str:
    """With parentheses around it if it is an operation between two; a call has its own."""
    depth, is_between = 0, text.startswith(tuple(_BEFORE.values()))
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        is_between = is_between or (letter == " " and not depth)
    return f"({text})" if is_between else text
