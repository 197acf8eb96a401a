"""Parts of the text of an MLIR operation: attributes, types, and the locations that it refers to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, repeat
from typing import NamedTuple, TypeVar

from explorer.capture.readers.graph_builder import shorten_value
from explorer.model.graph import Frame

_STRING = r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)'
_TOKEN = re.compile(rf"{_STRING}|->|[(){{}}\[\]<>,]|[^\"(){{}}\[\]<>,\-]++|-")
_STEP = dict.fromkeys("({[<", 1) | dict.fromkeys(")}]>", -1)
_REFERENCE = re.compile(r"%[\w$.]++(?:#(\d++))?")
SYMBOL = re.compile(r'@("(?:[^"\\]|\\.)*+"|[\w$.\-]++)')
_ESCAPED = re.compile(r"\\(.)")
_SCALAR = re.compile(r"(-?\d[\w.+\-]*|true|false) : [a-z]\w*")
_SYMBOL_KEY = {"custom_call": "call_target_name"}
# Keys that the pretty form leaves out, in order, by operation.
_POSITIONAL = {
    "constant": ("value",),
    "compare": ("comparison_direction", "compare_type"),
    "slice": ("slice",),
    "rng": ("rng_distribution",),
    "composite": ("name",),
}


def skeleton(body: str) -> tuple[str, str]:
    """Return an operation's text without types and value names, which many operations share, and its `operand_results`.

    `operand_results` has the result number of each operand, `0,2`; empty if all are first results.
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
    """Return the attributes in a text that `skeleton` returned, as (key, value).

    They are those of dictionaries, such as `dims = [0]`, and values without a key, which get one.
    """
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
    """Return the pairs of `a = 1 : i64, b = "x", c`; the value of `c` is `unit`."""
    pairs = (piece.partition(" = ") for piece in _pieces(text))
    return {key.strip(): _plain(value.strip()) if sign else "unit" for key, sign, value in pairs if key.strip()}


def _plain(value: str) -> str:
    """Return a value without a string's quotes or a scalar's type."""
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        return _ESCAPED.sub(r"\1", value[1:-1])
    scalar = _SCALAR.fullmatch(value)
    return scalar[1] if scalar else value


def _take_dictionaries(text: str, pairs: dict[str, str]) -> str:
    """Move the content of `{…}` and `<{…}>` to `pairs`; return the rest without operand parentheses."""
    rest = ""
    for item in _items(text):
        is_value = rest.rstrip().endswith("=")
        if item.startswith(("<{", "{")) and not is_value:
            pairs |= read_dictionary(item.strip("<>")[1:-1])
        elif not (item.startswith("(") and not is_value and ("%" in item or item == "()")):
            rest += item
    return rest


def _items(text: str) -> list[str]:
    """Return the pieces of a text: outermost brackets, with their content, and the text between them."""
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
    """Return the pieces of a text between commas outside brackets and strings."""
    pieces, depth = [""], 0
    for token in _TOKEN.findall(text):
        if token == "," and depth == 0:
            pieces.append("")
        else:
            depth = max(depth + _STEP.get(token, 0), 0)
            pieces[-1] += token
    return pieces


# Types of results, and of the values that regions begin with ----------------------------------------------------------

_T = TypeVar("_T")
_IN_ANGLES = r"(?:[^<>\-]++|->|-"  # an arrow closes none
_TYPES = re.compile(rf"(?:[^,<>()]++|<{_IN_ANGLES}|<{_IN_ANGLES}|<(?:[^<>\-]++|->|-)*+>)*+>)*+>|\([^()]*+\))++")
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
    """A loop's argument: its name inside, its start value, and its type (empty if unread)."""

    name: str
    start: str
    type: str


def loop_arguments(op: str, body: str) -> list[LoopArgument]:
    """Return the arguments on a loop's own line, `(%i = %start, …)`; empty for other operations."""
    if not op.endswith((".while", "scf.for")):
        return []
    pairs = _ITERATION.findall(body)
    if op == "scf.for":
        carried = _CARRIED.search(body.rstrip(" {"))
        _, colon, type_ = body.rstrip(" {").rpartition(" : ")
        types = [type_ if colon else "index", *_types_in(carried[1] if carried else "")]
    else:
        type_ = body.rpartition(" : ")[2].partition(" attributes {")[0]
        types = _types_in(type_.partition(") -> ")[0].lstrip("(") if op == "scf.while" else type_) if pairs else []
    if len(types) != len(pairs):
        types = [""] * len(pairs)
    return [LoopArgument(name, start.lstrip("%"), of) for (name, start), of in zip(pairs, types, strict=True)]


def names_unread_arguments(op: str, body: str) -> bool:
    """Return True if a line opens a region with arguments in an unknown form: `(%i, %j) = (%a, %b) …`."""
    return not op.endswith((".while", "scf.for")) and _BEGINS_WITH.search(body) is not None


def result_type(op: str, body: str, *, is_single: bool = False) -> str:
    """Return `tensor<4xf32>` of `… : (tensor<4x4xf32>) -> tensor<4xf32>`; empty where the line doesn't have it."""
    _, colon, type_ = body.rpartition(" : ")
    if op in _GIVEN:
        return _GIVEN[op]
    if not colon:  # a loop's: `… iter_args(%a = %b) -> (tensor<f32>) {`
        carried = _CARRIED.search(body.rstrip(" {")) if op.startswith("scf.") else None
        return carried[1] if carried else ""
    if op.endswith("constant") and "->" in type_ and "@" in body:  # of a function
        return type_
    result = _last_type(type_, is_single=is_single)
    if op == "tensor.extract":
        element = _ELEMENT.fullmatch(result)
        return element[1] if element else ""
    return "" if result == "()" else result


def _last_type(text: str, *, is_single: bool) -> str:
    result = text.rpartition("->")[2].strip().rstrip("{").strip()
    if "}" in result and result.count("}") > result.count("{"):  # of a number in a dictionary: `{dim = 0 : i64}`
        return ""
    if " " in result:
        result = result.partition(" attributes {")[0].rpartition(" to ")[2]
    if is_single and " -> " not in text:  # `select` names an operand's type too; the result's is the last
        result = (_types_in(result) or [result])[-1].strip()
    return result


def _types_in(types: str) -> list[str]:
    return [piece.strip() for piece in _TYPES.findall(types)]


def signature_of(line: str) -> str:
    """Return a function's line up to the end of its arguments; a type may hold `map = (d0) -> (d0 …)`."""
    if line.count(" -> ") < 2:
        return line.partition(" -> ")[0]
    depth = 0
    for bracket in _BRACKET.finditer(line):
        depth += {"(": 1, ")": -1}.get(bracket[0], 0)
        if depth == 0 and bracket[0] == ")":
            return line[: bracket.end()]
    return line


def result_shardings(results: str) -> str:
    """Return the shardings of a function's results, separated by `|`; empty if there are no shardings.

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
    """Return the items at even positions, then those at odd ones.

    A reduction prints its operands in pairs: `(%a init: %b), (%c init: %d)`.
    """
    return [*pairs[0::2], *pairs[1::2]]


# Locations: `loc(…)` of an operation → the scope path and the Python stack that it stands for -------------------------

_QUOTED = r'"((?:[^"\\]|\\.)*+)"'
_DEFINITION = re.compile(r"#(loc\d*) = loc\((.*)\)\s*$")
_FILE = re.compile(_QUOTED + r":(\d{1,9}):(\d{1,9})(?: to (\d{0,9}):(\d{1,9}))?")
_NAME = re.compile(_QUOTED)
_ALIAS = re.compile(r"#(loc\d*)")
_CALL = re.compile(r"callsite\(#(loc\d*) at #(loc\d*)\)")
_SEPARATOR = re.compile(r",\s*| at ")
_FUSED = re.compile(r"fused(?:<[^<>]*+>)?\[")
_MAX_DEPTH = 100  # locations inside each other on one line
_MAX_FRAMES = 1000  # frames of a stack: a file can name one location twice in another, again and again

Place = tuple[str, tuple[Frame, ...]]
_NOWHERE: Place = ("", ())


class Locations:
    """The locations that a module defines by name (`#loc3 = loc(…)`), and inline ones."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._definitions = {m[1]: m[2] for line in lines if line.startswith("#loc") and (m := _DEFINITION.match(line))}
        self.known: dict[str, Place] = {}

    def read(self, text: str) -> Place:
        """Return the scope path and the stack, innermost first, of the text between the parentheses of `loc(…)`."""
        # Compilers print a name for nearly each operation.
        alias = _ALIAS.fullmatch(text)
        return self.named(alias[1]) if alias else _Reading(self, text).location(0)

    def named(self, alias: str) -> Place:
        if alias not in self.known:
            self._resolve(alias)
        return self.known[alias]

    def _resolve(self, alias: str) -> None:
        """Read a definition into `known` after its parts.

        There is no recursion: a stack is as deep as the user's program.
        """
        todo = [alias]
        while todo:
            at = todo[-1]
            text = self._definitions.get(at, "")
            if at not in self.known:
                self.known[at] = _NOWHERE  # for a location that refers to itself
                # A set without the known keys would walk all of those.
                if missing := [part for part in _ALIAS.findall(text) if part not in self.known]:
                    todo += missing
                    continue
            todo.pop()
            # A third of all definitions: a frame and its callers.
            if call := _CALL.fullmatch(text):
                frames = self.known[call[1]][1] + self.known[call[2]][1]
                self.known[at] = "", frames[:_MAX_FRAMES]
            else:
                self.known[at] = _Reading(self, text).location(0)


class _Reading:
    """One location's text, read from left to right."""

    def __init__(self, locations: Locations, text: str) -> None:
        self.locations, self.text = locations, text
        self.at: int = 0

    def location(self, depth: int) -> Place:
        text, at = self.text, self.at
        if depth > _MAX_DEPTH:
            self.at = len(text)
            return _NOWHERE
        if alias := _ALIAS.match(text, at):
            self.at = alias.end()
            return self.locations.named(alias[1])
        if file := _FILE.match(text, at):
            self.at = file.end()
            # MLIR prints `-` where what it read had no location.
            return "", (_frame(file),) if file[1] != "-" else ()
        if name := _NAME.match(text, at):
            self.at = name.end()
            return self.named(_ESCAPED.sub(r"\1", name[1]), self.inner("(", ")", depth)[:1])
        if text.startswith("callsite(", at):
            self.at = at + len("callsite")
            places = self.inner("(", ")", depth)  # callsite(callee at caller)
            return "", tuple([frame for _, frames in places for frame in frames])[:_MAX_FRAMES]
        if fused := _FUSED.match(text, at):
            self.at = fused.end() - 1
            places = self.inner("[", "]", depth)
            return next((place for place in places if place[1]), places[0] if places else _NOWHERE)
        self.at = len(text)
        return _NOWHERE

    def inner(self, opening: str, closing: str, depth: int) -> list[Place]:
        """Return the locations between brackets, separated by `at` or a comma."""
        places: list[Place] = []
        if not self.text.startswith(opening, self.at):
            return places
        self.at += 1
        while self.at < len(self.text) and not self.text.startswith(closing, self.at):
            # Names first: they are most parts of a location, and were read before.
            alias = _ALIAS.match(self.text, self.at)
            if alias and (place := self.locations.known.get(alias[1])):
                self.at = alias.end()
            else:
                place = self.location(depth + 1)
            places.append(place)
            separator = _SEPARATOR.match(self.text, self.at)
            self.at = separator.end() if separator else self.at
            if separator is None and not self.text.startswith(closing, self.at):
                self.at = len(self.text)
        self.at += 1
        return places

    def named(self, name: str, inside: list[Place]) -> Place:
        scope, frames = inside[0] if inside else _NOWHERE
        if len(frames) == 1 and not frames[0].function and "/" not in name and "(" not in name:
            # JAX wraps a file location in its function's name; an operation's own name comes around that.
            return scope, (replace(frames[0], function=name),)
        return name, frames


def _frame(file: re.Match[str]) -> Frame:
    """Return the frame of `"f.py":3:8 to :20`, whose end may be on the same line or missing."""
    line, end_line = int(file[2]), int(file[4] or file[2])
    return Frame(_ESCAPED.sub(r"\1", file[1]), "", line, int(file[3]), end_line, int(file[5] or 0))
