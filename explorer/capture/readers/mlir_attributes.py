"""What stands beside an MLIR operation's operands: its dictionary of attributes, in the generic or the pretty form."""

from __future__ import annotations

import re
from itertools import chain, repeat

from explorer.capture.readers.graph_builder import shorten_value

_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_TOKEN = re.compile(rf"{_STRING}|->|[(){{}}\[\]<>,]|[^\"(){{}}\[\]<>,\-]++|-")
_STEP = dict.fromkeys("({[<", 1) | dict.fromkeys(")}]>", -1)
_REFERENCE = re.compile(r"%[\w$.]++(?:#(\d++))?")
SYMBOL = re.compile(r'@("(?:[^"\\]|\\.)*+"|[\w$.\-]++)')
_ESCAPED = re.compile(r"\\(.)")
_SCALAR = re.compile(r"(-?\d[\w.+\-]*|true|false) : [a-z]\w*")
_SYMBOL_KEY = {"custom_call": "call_target_name"}
# What the pretty form has without a key: by operation, the keys in order.
_POSITIONAL = {
    "constant": ("value",),
    "compare": ("comparison_direction", "compare_type"),
    "slice": ("slice",),
    "rng": ("rng_distribution",),
    "composite": ("name",),
}


def skeleton(body: str) -> tuple[str, str]:
    """What follows an operation's name without types and names of values, equal for most; and `operand_results`.

    `operand_results` says which result of its operation each operand is, `0,2`; empty if all are first ones.
    """
    head = body.rstrip().removesuffix("({").removesuffix("{")
    before, _, type_ = head.rpartition(" : ")
    if before and type_.count("}") <= type_.count("{"):  # else the colon is inside a dictionary: `{dim = 0 : i64}`
        head = before
    results = ""
    if "#" in head and any(numbers := _REFERENCE.findall(head)):
        results = ",".join(number or "0" for number in numbers)
    return _REFERENCE.sub("%", head), results


def read_attributes(op: str, text: str) -> list[tuple[str, str]]:
    """The pairs of a skeleton: of its dictionaries, of `dims = [0]`, and of what stands there without a key."""
    pairs: dict[str, str] = {}
    short = op.rpartition(".")[2]
    positional = chain(_POSITIONAL.get(short, ()), repeat("arguments"))
    for piece in _pieces(_take_dictionaries(text, pairs)):
        before, is_keyed, value = piece.partition(" = ")
        words = before.replace("%", " ").split()
        if not words:
            continue
        if words[0] == "applies" and len(words) > 1:  # `applies stablehlo.add across dimensions = [0]`
            pairs["applies"] = words[1]
        if is_keyed:
            pairs[words[-1]] = value.strip()
        elif symbol := SYMBOL.match(piece.strip()):
            pairs[_SYMBOL_KEY.get(short, "callee")] = _plain(symbol[1])
        elif words[0] != "applies":
            key, value = next(positional), " ".join(words)
            pairs[key] = f"{pairs[key]}, {value}" if key in pairs else value
    return [(key, shorten_value(_plain(value))) for key, value in pairs.items()]


def read_dictionary(text: str) -> dict[str, str]:
    """The pairs of `a = 1 : i64, b = "x", c`; one without a value is `unit`."""
    pairs = (piece.partition(" = ") for piece in _pieces(text))
    return {key.strip(): _plain(value.strip()) if sign else "unit" for key, sign, value in pairs if key.strip()}


def _plain(value: str) -> str:
    """Without a string's quotes and a scalar's type."""
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        return _ESCAPED.sub(r"\1", value[1:-1])
    scalar = _SCALAR.fullmatch(value)
    return scalar[1] if scalar else value


def _take_dictionaries(text: str, pairs: dict[str, str]) -> str:
    """Put what `{…}` and `<{…}>` hold into `pairs`, and give the rest, without the parentheses around operands."""
    rest = ""
    for item in _items(text):
        is_value = rest.rstrip().endswith("=")
        if item.startswith(("<{", "{")) and not is_value:
            pairs |= read_dictionary(item.strip("<>")[1:-1])
        elif not (item.startswith("(") and not is_value and ("%" in item or item == "()")):
            rest += item
    return rest


def _items(text: str) -> list[str]:
    """The brackets that are inside no others, each with what it holds, and what stands between them."""
    items, depth = [""], 0
    for token in _TOKEN.findall(text):
        step = _STEP.get(token, 0)
        if step > 0 and depth == 0:
            items.append("")
        items[-1] += token
        depth = max(depth + step, 0)
        if step < 0 and depth == 0:
            items.append("")
    return items


def _pieces(text: str) -> list[str]:
    """The text between the commas that are in no brackets and no string."""
    pieces, depth = [""], 0
    for token in _TOKEN.findall(text):
        if token == "," and depth == 0:
            pieces.append("")
        else:
            depth = max(depth + _STEP.get(token, 0), 0)
            pieces[-1] += token
    return pieces
