"""The query language of the search field and of `Graph.where`.

    softmax exp                     both words, anywhere in name, op, type or scope, in any case
    op:dot  scope:attention         a word in one field
    op == "copy"  name != dot.3     a whole field, not a part of it
    /^dot\\.\\d+$/  name:/fusion/      a regular expression, anywhere or in one field
    dtype:bf16  shape:8,*,64        an array of this dtype, of these dimensions
    line:12  line:10-20  line:train.py:12  file:train.py        the line of the user's code that the node belongs to
    through:12  through:linear.py:90  function:attention        any frame of the stack: calls, and libraries' code
    in:body                         inside a group of this name or kind
    target:getrf                    a custom call whose target contains this
    attr:replica_groups  attr:dimensions={1}    an attribute; an attribute whose value contains this
    attr == dimensions={1}          an attribute of exactly this value
    bytes > 1MB  flops >= 2G        numbers: bytes, flops and other measures, elements, rank, operands, users
    a and b, a or b, not a, (a)     combined; `and` is optional

The viewer implements the same language in view/js/src/core/query.ts. Both are tested with view/js/test/queries.json.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.analysis.attribution import through_frames
from explorer.errors import QueryError
from explorer.model.attribution import SourceLine
from explorer.model.graph import Frame, Graph, Node
from explorer.model.text import brief, cut_end
from explorer.model.types import ArrayType, parse_type

Mask = NDArray[np.bool_]
Test = Callable[[Graph], Mask]

_TEXTS = (
    "name",
    "op",
    "type",
    "scope",
    "dtype",
    "shape",
    "file",
    "function",
    "in",
    "line",
    "through",
    "target",
    "attr",
)
# Attributes with a custom call's target in HLO, StableHLO, and the jaxpr's `ffi_call`.
TARGET_KEYS = ("custom_call_target", "call_target_name", "target_name")
_NUMBERS = ("bytes", "elements", "rank", "operands", "users", "line")
_UNITS = {
    **{"": 1, "b": 1, "k": 1e3, "kb": 1e3, "m": 1e6, "mb": 1e6, "g": 1e9, "gb": 1e9, "t": 1e12, "tb": 1e12},
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40},
    **{"s": 1, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9, "%": 0.01},
}
_COMPARISON = re.compile(r"([A-Za-z_]\w*)\s*(<=|>=|==|!=|<|>|=)\s*")
_FIELD = re.compile(r"([A-Za-z_]\w*):(?=\S)")
_REGEX = re.compile(r"/((?:[^/\\\s]|\\.)+)/(?=[\s)]|$)")
_STRING = re.compile(r"\"([^\"]*)\"|'([^']*)'")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*([a-zµ%]*)$")
_LINES = re.compile(r"(?:(.*):)?(\d{1,9})(?:-(\d{1,9}))?$")
_MAX_LENGTH, _MAX_DEPTH = 10_000, 100
_CONTEXT = 120  # characters shown on each side of an error
_COMPARE: dict[str, Callable[[NDArray[np.float32], np.float32], Mask]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def where(graph: Graph, query: str) -> tuple[Node, ...]:
    return tuple(Node(graph, int(i)) for i in find(graph, query))


def find(graph: Graph, query: str) -> NDArray[np.intp]:
    """Return the indices of matching nodes in ascending order; all nodes for an empty query.

    Raises:
        QueryError: The query is malformed; the message shows where.
    """
    if len(query) > _MAX_LENGTH:
        raise QueryError(f"this query has {len(query):,} characters; at most {_MAX_LENGTH:,} are read.")
    return np.flatnonzero(_Parser(query).parse()(graph))


@dataclass
class _Parser:
    """Recursive descent parser. `and` and `not` are opcodes too: in a place where no operator fits, they are words."""

    query: str
    at: int = 0
    depth: int = 0

    def parse(self) -> Test:
        self.skip()
        if self.at == len(self.query):
            return lambda graph: np.ones(len(graph.names), bool)
        test = self.alternatives()
        if self.at < len(self.query):
            raise self.error("this parenthesis closes nothing")
        return test

    def alternatives(self) -> Test:
        tests = [self.conjunction()]
        while self.take_word("or"):
            tests.append(self.conjunction())
        return tests[0] if len(tests) == 1 else lambda graph: np.logical_or.reduce([test(graph) for test in tests])

    def conjunction(self) -> Test:
        tests = [self.negation()]
        while not self.ends() and not self.sees_word("or"):
            self.take_word("and")
            tests.append(self.negation())
        return tests[0] if len(tests) == 1 else lambda graph: np.logical_and.reduce([test(graph) for test in tests])

    def negation(self) -> Test:
        self.depth += 1
        # Deeper recursion could exceed Python's limit.
        if self.depth > _MAX_DEPTH:
            raise self.error(f"it is more than {_MAX_DEPTH} levels deep")
        test = self.operand()
        self.depth -= 1
        return test

    def operand(self) -> Test:
        if self.take_word("not") or self.take("-"):
            test = self.negation()
            return lambda graph: ~test(graph)
        if self.take("("):
            self.skip()
            test = self.alternatives()
            if not self.take(")"):
                raise self.error("a parenthesis is not closed")
            self.skip()
            return test
        return self.term()

    def term(self) -> Test:
        if self.ends():
            raise self.error("a word or a comparison should follow")
        if comparison := _COMPARISON.match(self.query, self.at):
            return self.comparison(comparison)
        if (field := _FIELD.match(self.query, self.at)) and field[1].lower() in _TEXTS:
            self.at = field.end()
            return self.text(field[1].lower())
        return self.text("")

    def comparison(self, match: re.Match[str]) -> Test:
        start, field, sign = self.at, match[1].lower(), match[2]
        self.at = match.end()
        if self.ends():
            raise self.error(f"a value should follow `{match[0].strip()}`")
        kind, value = self.value()
        number = _number(value) if kind == "word" else None
        if field in _NUMBERS or (number is not None and field not in _TEXTS):
            if number is None:
                raise self.error(f"`{field}` is a number, and {brief(value)} is none", start)
            return lambda graph: _numbers(graph, field, self.query, number, sign)
        if field not in _TEXTS:
            there = ", ".join((*_TEXTS, *_NUMBERS[:-1]))
            raise self.error(f"no node has a field `{field:.60}`; there are {there}", start)
        if sign not in ("=", "==", "!="):
            raise self.error(f"`{field}` is text: it can be ==, != or `{field}:part`, not {sign}", start)
        test = _on_lines(self, field, value, start) if field == "through" else _on_text(field, _same(field, value))
        return test if sign != "!=" else lambda graph: ~test(graph)

    def text(self, field: str) -> Test:
        start = self.at
        kind, value = self.value()
        if field in ("line", "through"):
            return _on_lines(self, field, value, start)
        if kind == "regex":
            try:
                pattern = re.compile(value, re.IGNORECASE)
            # A user's pattern may be malformed, too large or too deep.
            except (re.error, OverflowError, RecursionError) as error:
                raise self.error(f"this regular expression can't be read: {error}", start) from None
            return _on_text(field, lambda text: pattern.search(text) is not None)
        if field in ("shape", "dtype"):
            return _on_text(field, _same(field, value))
        if field == "attr":
            return _on_text(field, _attribute(value, lambda own, part: part in own))
        part = value.lower()
        return _on_text(field, lambda text: part in text.lower())

    def value(self) -> tuple[str, str]:
        """Read the next value; return its kind (`regex`, `string` or `word`) and its text without delimiters."""
        for kind, pattern in (("regex", _REGEX), ("string", _STRING)):
            if match := pattern.match(self.query, self.at):
                self.at = match.end()
                self.skip()
                return kind, next(part for part in match.groups() if part is not None)
        start, depth = self.at, 0
        while self.at < len(self.query) and not self.query[self.at].isspace():
            depth += {"(": 1, ")": -1}.get(self.query[self.at], 0)
            if depth < 0:
                break
            self.at += 1
        word = self.query[start : self.at]
        self.skip()
        return "word", word

    def skip(self) -> None:
        while self.at < len(self.query) and self.query[self.at].isspace():
            self.at += 1

    def ends(self) -> bool:
        return self.at >= len(self.query) or self.query[self.at] == ")"

    def take(self, sign: str) -> bool:
        # At the end of a query, `-` or `(` is a word to search for.
        is_there = self.query.startswith(sign, self.at) and (sign == ")" or len(self.query[self.at + 1 :].strip()) > 0)
        self.at += is_there
        return is_there

    def sees_word(self, word: str) -> bool:
        """Return True if the operator `word` is next: a space or `(` follows it, and then an operand."""
        end = self.at + len(word)
        rest = self.query[end:]
        is_word = self.query[self.at : end].lower() == word and rest[:1] in (" ", "\t", "\n", "(")
        return is_word and rest.strip() not in ("", ")")

    def take_word(self, word: str) -> bool:
        if not self.sees_word(word):
            return False
        self.at += len(word)
        self.skip()
        return True

    def error(self, what: str, at: int | None = None) -> QueryError:
        at = self.at if at is None else at
        before = f"…{self.query[at - _CONTEXT : at]}" if at > _CONTEXT else self.query[:at]
        shown = before + cut_end(self.query[at:], _CONTEXT)
        return QueryError(
            f"this query can't be read: {what}.\n  {shown}\n  {' ' * len(before)}^\n"
            '  Hint: write `op:dot`, `bytes > 1MB and op == "copy"`, `line:12`, `/regex/`.'
        )


def _number(text: str) -> float | None:
    match = _NUMBER.match(text.lower())
    unit = _UNITS.get(match[2]) if match else None
    return float(match[1]) * unit if match and unit is not None else None


def _numbers(graph: Graph, field: str, query: str, number: float, sign: str) -> Mask:
    measures = graph.measures
    if field == "line":
        of_places = np.asarray([place.line for place in graph.attribution.places], np.float64)
        return graph.attribution.mask(_compared(of_places, sign, number))
    if field in measures:
        values = measures[field]
    elif field in _NUMBERS:
        values = _column(graph, field)
    else:
        there = ", ".join(dict.fromkeys((*measures, *_NUMBERS)))
        raise QueryError(
            f"this query can't be answered: no number `{field:.60}` is known of this graph's nodes.\n"
            f"  {cut_end(query, _CONTEXT)}\n  Hint: there are {there}."
        )
    return _compared(values, sign, number)


def _compared(values: NDArray[np.float64], sign: str, number: float) -> Mask:
    with np.errstate(invalid="ignore", over="ignore"):
        # In single precision, like the viewer's values. NaN is unknown and matches no comparison, not even `!=`.
        return _COMPARE[sign](values.astype(np.float32), np.float32(number)) & ~np.isnan(values)


def _column(graph: Graph, field: str) -> NDArray[np.float64]:
    match field:
        case "operands":
            return np.diff(graph.operand_start).astype(np.float64)
        case "users":
            return np.diff(graph.user_columns[0]).astype(np.float64)
        case "bytes":
            return graph.sizes.bytes[graph.type]
        case "elements":
            return graph.sizes.elements[graph.type]
        case _:
            return graph.sizes.rank[graph.type]


def _on_lines(parser: _Parser, field: str, value: str, start: int) -> Test:
    """Return a test of nodes for a line `12`, `10-20` or `train.py:12`, own or in the stack; QueryError for others."""
    lines = _LINES.match(value)
    if lines is None:
        raise parser.error(f"a line is `12`, a range like `10-20`, or `train.py:12`, not {brief(value)}", start)
    file, low, high = (lines[1] or "").lower(), int(lines[2]), int(lines[3] or lines[2])

    def passes(places: Sequence[SourceLine] | Sequence[Frame]) -> list[bool]:
        # A file matches by its whole path or its last parts; without a file, all match.
        files = [place.file.lower() for place in places]
        is_file = [not file or own == file or own.endswith((f"/{file}", f"\\{file}")) for own in files]
        return [low <= place.line <= high and fits for place, fits in zip(places, is_file, strict=True)]

    if field == "line":
        return lambda graph: graph.attribution.mask(passes(graph.attribution.places))
    return lambda graph: through_frames(graph, passes(graph.frames))


def _on_text(field: str, test: Callable[[str], bool]) -> Test:
    """Return a test of nodes: a function of a graph whose mask is True where `test` holds for the node's field."""

    def table(strings: Sequence[str]) -> Mask:
        return np.fromiter(map(test, strings), bool, len(strings))

    def mask(graph: Graph) -> Mask:
        columns: dict[str, Callable[[], Mask]] = {
            "name": lambda: table(graph.names),
            "op": lambda: table(graph.ops)[graph.op],
            "type": lambda: table(graph.types)[graph.type],
            "scope": lambda: table(graph.scopes)[graph.scope],
        }
        if field in columns:
            return columns[field]()
        match field:
            case "":
                return np.logical_or.reduce([column() for column in columns.values()])
            case "dtype":
                return _any_array(graph, lambda array: test(array.dtype))
            case "shape":
                return _any_array(graph, lambda array: test(",".join(array.dims)))
            case "in":
                return _within(graph, test)
            case "attr":
                return _on_attributes(graph, lambda key, value: test(f"{key}={value}"))
            case "target":
                return _on_attributes(graph, lambda key, value: key in TARGET_KEYS and test(value))
            case "file":
                return graph.attribution.mask([test(place.file) for place in graph.attribution.places])
            case _:
                return through_frames(graph, [test(frame.function) for frame in graph.frames])

    return mask


def _on_attributes(graph: Graph, test: Callable[[str, str], bool]) -> Mask:
    columns = graph.attribute_table.columns
    pairs = columns.key.astype(np.int64) * len(columns.values) + columns.value
    # Many nodes have the same attributes: test each distinct pair once.
    distinct, of_row = np.unique(pairs, return_inverse=True)
    codes: list[int] = distinct.tolist()
    halves = [divmod(code, len(columns.values)) for code in codes]
    passes = [test(columns.keys[key], columns.values[value]) for key, value in halves]
    rows = np.flatnonzero(np.asarray(passes, bool)[of_row])
    mask = np.zeros(len(graph), bool)
    mask[np.searchsorted(columns.start, rows, "right") - 1] = True
    return mask


def _attribute(query: str, compare: Callable[[str, str], bool]) -> Callable[[str], bool]:
    """Return a test of `key=value` texts for a query `key` (any value) or `key=value`."""
    key, is_valued, value = query.lower().partition("=")

    def test(pair: str) -> bool:
        own, _, text = pair.lower().partition("=")
        return own == key and (not is_valued or compare(text, value))

    return test


def _any_array(graph: Graph, test: Callable[[ArrayType], bool]) -> Mask:
    return np.asarray([any(map(test, parse_type(text).arrays)) for text in graph.types], bool)[graph.type]


def _within(graph: Graph, test: Callable[[str], bool]) -> Mask:
    tree = graph.hierarchy
    passes: list[bool] = []
    for group in tree.groups:  # a parent comes before its children
        passes.append(test(group.name) or test(group.kind) or (group.parent >= 0 and passes[group.parent]))
    return np.asarray([*passes, False], bool)[tree.group]


def _same(field: str, value: str) -> Callable[[str], bool]:
    if field == "attr":
        return _attribute(value, lambda own, wanted: own == wanted)
    wanted = value.lower()
    if field == "shape":
        dims = wanted.strip("[]").replace("x", ",").split(",") if wanted.strip("[]") else []
        return lambda text: _fits(text.lower().split(",") if text else [], dims)
    # Names of StableHLO operations begin with their dialect, which users omit.
    return lambda text: text.lower() == wanted or (field == "op" and text.lower().rpartition(".")[2] == wanted)


def _fits(dims: Sequence[str], wanted: Sequence[str]) -> bool:
    return len(dims) == len(wanted) and all(w in ("*", "?", d) for d, w in zip(dims, wanted, strict=True))
