"""What the text of an MLIR operation says of types: of its results, and of the values that its regions begin with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")
_IN_ANGLES = r"(?:[^<>\-]++|->|-"  # an arrow closes none
_PIECES = re.compile(rf"(?:[^,<>()]++|<{_IN_ANGLES}|<{_IN_ANGLES}|<(?:[^<>\-]++|->|-)*+>)*+>)*+>|\([^()]*+\))++")
_ITERATION = re.compile(r"%([\w$.]++) = (%?[\w$.]++)")
_BEGINS_WITH = re.compile(r"%[\w$.]++\)? = ")
_CARRIED = re.compile(r"-> \(?(.*?)\)?(?: : [^:]*)?$")
# Operations whose type, as it is printed, is that of an operand.
_GIVEN = {"tensor.dim": "index", "tensor.rank": "index", "shape.cstr_broadcastable": "!shape.witness"}
_BRACKET = re.compile(r'[()]|"(?:[^"\\]|\\.)*+"')
# Of an argument or a result, by Shardy or by what was before it.
_SHARDING = re.compile(r'\bsdy\.sharding = #sdy\.sharding(<[^>]*+>)|\bmhlo\.sharding = "([^"]*+)"')
_ELEMENT = re.compile(r"tensor<(?:[\d?]++x)*+(.*?)(?:, .*)?>")


class LoopArgument(NamedTuple):
    """What a loop carries or counts: its name inside, the value that it starts from; its type, empty if unread."""

    name: str
    start: str
    type: str


def loop_arguments(op: str, body: str) -> list[LoopArgument]:
    """The arguments that a loop's own line names, `(%i = %start, …)`; none of other operations."""
    if not op.endswith((".while", "scf.for")):
        return []
    pairs = _ITERATION.findall(body)
    if op == "scf.for":
        carried = _CARRIED.search(body.rstrip(" {"))
        _, colon, type_ = body.rstrip(" {").rpartition(" : ")
        types = [type_ if colon else "index", *_pieces(carried[1] if carried else "")]
    else:
        type_ = body.rpartition(" : ")[2].partition(" attributes {")[0]
        types = _pieces(type_.partition(") -> ")[0].lstrip("(") if op == "scf.while" else type_) if pairs else []
    if len(types) != len(pairs):
        types = [""] * len(pairs)
    return [LoopArgument(name, start.lstrip("%"), of) for (name, start), of in zip(pairs, types, strict=True)]


def names_unread_arguments(op: str, body: str) -> bool:
    """Whether a line that opens a region names arguments of it in a way that is not known: `(%i, %j) = (%a, %b) …`."""
    return not op.endswith((".while", "scf.for")) and _BEGINS_WITH.search(body) is not None


def result_type(op: str, body: str, *, is_single: bool = False) -> str:
    """`tensor<4xf32>` of `… : (tensor<4x4xf32>) -> tensor<4xf32>`; empty where the line doesn't say it.

    Args:
        op: The operation.
        body: What follows its name, without its location.
        is_single: Whether it has one result.
    """
    _, colon, type_ = body.rpartition(" : ")
    if op in _GIVEN or not colon:
        return _GIVEN.get(op) or _carried(op, body)
    if op.endswith("constant") and "->" in type_ and "@" in body:  # of a function
        return type_
    result = _last_type(type_, is_single=is_single)
    if op == "tensor.extract":
        element = _ELEMENT.fullmatch(result)
        return element[1] if element else ""
    return "" if result == "()" else result


def _carried(op: str, body: str) -> str:
    """The types of what a loop carries on: `… iter_args(%a = %b) -> (tensor<f32>) {`."""
    carried = _CARRIED.search(body.rstrip(" {")) if op.startswith("scf.") else None
    return carried[1] if carried else ""


def _last_type(text: str, *, is_single: bool) -> str:
    """The types behind an operation's last colon that are of its results."""
    result = text.rpartition("->")[2].strip().rstrip("{").strip()
    if "}" in result and result.count("}") > result.count("{"):  # of a number in a dictionary: `{dim = 0 : i64}`
        return ""
    if " " in result:
        result = result.partition(" attributes {")[0].rpartition(" to ")[2]
    if is_single and " -> " not in text:  # `select` names an operand's type too; the result's is the last
        result = (_pieces(result) or [result])[-1].strip()
    return result


def _pieces(types: str) -> list[str]:
    return [piece.strip() for piece in _PIECES.findall(types)]


def signature_of(line: str) -> str:
    """A function's line up to the parenthesis that ends its arguments: `map = (d0) -> (d0 …)` may stand in a type."""
    if line.count(" -> ") < 2:
        return line.partition(" -> ")[0]
    depth = 0
    for bracket in _BRACKET.finditer(line):
        depth += {"(": 1, ")": -1}.get(bracket[0], 0)
        if depth == 0 and bracket[0] == ")":
            return line[: bracket.end()]
    return line


def result_shardings(results: str) -> str:
    """The shardings that a function's results were given, `|` between; empty where none was.

    Example:
        >>> result_shardings('-> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, tensor<f32>)')
        '<@mesh, [{"x"}]>|'
    """
    shardings: list[str] = []
    for result in results.split("tensor<")[1:]:
        given = _SHARDING.search(result)
        shardings.append((given[1] or given[2]) if given else "")
    return "|".join(shardings) if any(shardings) else ""


def unpaired(pairs: Sequence[_T]) -> list[_T]:
    """In order what a reduction of several prints in pairs, `(%a init: %b), (%c init: %d)`: firsts, then seconds."""
    return [*pairs[0::2], *pairs[1::2]]
