"""print(…), f-strings and logging as calls of jax.debug, which show values while the program runs.

`as_format` writes the arguments that a rule suggests. The `rewrite_…` functions edit the user's text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, pairwise
from string import Formatter
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.fix_unit import RewriteUncertain, Unit, finding_span
from explorer.pitfalls.function_source import Edit, last_name

Part = str | tuple[str, ast.expr]  # literal text, or the field of a format and its value
_PRINTS = ("print", "pprint.pprint", "pprint")
_LEVELS = ("debug", "info", "warning", "error", "critical")
_PERCENT = re.compile(r"%(?:(%)|(\d*(?:\.\d+)?)([srfeg]))")
_FORMS = re.compile(r"[sr]|.*[feg]")  # conversions that a field of a format has
_ARRAY_FORMS = re.compile(r"s|\.\d+[fe]")  # those of them that arrays support
_MAKERS = ("str", "repr", "format", "ascii", "join")  # of texts, by name


def as_format(arguments: Sequence[ast.expr]) -> str:
    """Return the arguments of jax.debug.print for those of print: `"loss {} at {step:.2f}", loss, step=step`.

    Return "" if uncertain: `*args`, nested formats, or text that is made of values in another way.
    """
    reader = FormatReader(lambda called: str if getattr(called, "id", "") == "str" else ..., is_strict=True)
    try:
        parts = _joined([reader.parts(argument) for argument in arguments], " ")
    except ValueError:
        return ""
    text = "".join(map(_field, parts))
    quote = "'" if '"' in text and "'" not in text else '"'
    written = repr(text) if quote in text or "\\" in repr(text) else f"{quote}{text}{quote}"
    return ", ".join((written, *(ast.unparse(part[1]) for part in parts if not isinstance(part, str))))


def rewrite_print(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edit from print(…) to jax.debug.print(…), with an f-string as a format and its values."""
    call = unit.call_on_line(finding_span(finding))
    if unit.source(call.func) not in _PRINTS:
        raise RewriteUncertain("it is no print")
    ends = {"sep": " ", "end": "\n"}
    for keyword in call.keywords:
        match keyword.value:
            case ast.Constant(value=str() as text) if keyword.arg in ends:
                ends[keyword.arg] = text
            case ast.Constant(value=None) if keyword.arg in ends:
                continue
            case _ if keyword.arg != "flush":
                raise RewriteUncertain(f"print has a {keyword.arg}")
            case _:
                continue
    if not ends["end"].endswith("\n"):
        raise RewriteUncertain("jax.debug.print ends with a new line")
    parts = _joined([_reader(unit).parts(value) for value in call.args], ends["sep"])
    return [_call_with(unit, call, [*parts, ends["end"][:-1]], unit.qualified_name("jax.debug.print"))]


def rewrite_format(unit: Unit, finding: Finding) -> list[Edit]:
    for call in unit.near(finding_span(finding), ast.Call):
        func = unit.source(call.func)
        if func.endswith("debug.print") and call.args and _is_text(call.args[0]):
            if len(call.args) > 1 or any(keyword.arg is None for keyword in call.keywords):
                raise RewriteUncertain("it has values already")
            return [_call_with(unit, call, _reader(unit).parts(call.args[0]), func, call.keywords)]
    raise RewriteUncertain("it is no jax.debug.print")


def rewrite_log(unit: Unit, finding: Finding) -> list[Edit]:
    """Return the edits that pass logger.info("x %s", x) to jax.debug.callback, so that it runs with the program.

    Logging fills in the values itself.
    """
    call = unit.call_on_line(finding_span(finding))
    line = next(iter(unit.around(Span.of(call), ast.Expr)), None)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LEVELS or line is None:
        raise RewriteUncertain("it is no call of a logger")
    is_plain = call.args and not call.keywords and not any(isinstance(one, ast.Starred) for one in call.args)
    if line.value is not call or not is_plain:
        raise RewriteUncertain("it is more than a message and its values")
    first = unit.insert(unit.arguments(call)[0][1][:2], f"{unit.source(call.func)}, ")
    return [unit.replace(call.func, unit.qualified_name("jax.debug.callback")), first]


# Reading -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FormatReader:
    """Reader of printed expressions as literal texts, and values with the fields that format them."""

    resolve: Callable[[ast.expr], Any]  # returns what a called expression stands for; `...` if unknown
    source: Callable[[ast.expr], str] = ast.unparse  # returns the text of an f-string as the user wrote it
    # also refuses conversions that arrays may not support, and values that are texts made of other values
    is_strict: bool = False

    def parts(self, node: ast.expr) -> list[Part]:
        """Return one printed expression as parts of a format.

        Raises:
            ValueError: A format is computed, names its values, or takes another number of values.
        """
        match node:
            case ast.Constant(value=str() as text):
                return [text]
            case ast.JoinedStr(values=pieces):
                return self._interpolated(self.source(node), pieces)
            case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_text(left) or _is_text(right):
                return self.parts(left) + self.parts(right)
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
                return self._percent(text, right.elts if isinstance(right, ast.Tuple) else [right])
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format")):
                return self._filled(text, node)
            case ast.Call(args=[value], keywords=[]) if self.resolve(node.func) is str:
                return self.parts(value)
            # The `str` that a shape is passed as would show quotes.
            case ast.Call(args=[value], keywords=[]) if self.resolve(node.func) is repr and not _is_shape(value):
                return [_shown("{!r}", value)]
            case _ if self.is_strict and any(map(_makes_text, ast.walk(node))):
                raise ValueError("a value is a text")
            case _:
                return [_shown("{}", node)]

    def _interpolated(self, source: str, pieces: Sequence[ast.expr]) -> list[Part]:
        parts: list[Part] = [""]
        for piece in pieces:
            if not isinstance(piece, ast.FormattedValue):
                parts.append(_literal(piece))
                continue
            conversion = chr(piece.conversion) if piece.conversion > 0 else ""
            if conversion == "r" and _names_itself(source, str(parts[-1])):
                conversion = ""
            spec = [] if piece.format_spec is None else getattr(piece.format_spec, "values", [piece.format_spec])
            parts.append(_shown(_form(conversion, "".join(map(_literal, spec))), piece.value))
        return parts

    def _filled(self, text: str, call: ast.Call) -> list[Part]:
        parts, left = list[Part](), list(call.args)
        for before, name, spec, conversion in Formatter().parse(text):
            parts.append(before)
            if name or "{" in (spec or "") or (name is not None and not left):
                raise ValueError("its values are named, its format is computed, or there are too few values")
            if name is not None:
                parts.append(_shown(_form(conversion, spec), left.pop(0)))
        if left or call.keywords:
            raise ValueError("there are too many values")
        return parts

    def _percent(self, text: str, values: Sequence[ast.expr]) -> list[Part]:
        parts, left, end = list[Part](), list(values), 0
        for match in _PERCENT.finditer(text):
            percent, width, kind = match.groups("")
            forms = _ARRAY_FORMS if self.is_strict else _FORMS
            if not percent and not (left and forms.fullmatch(width + kind)):
                raise ValueError("the format has more %-conversions than values, or one that str.format can't express")
            form = {"s": "{}", "r": "{!r}"}.get(kind, f"{{:{width}{kind}}}")
            parts += [text[end : match.start()], percent or _shown(form, left.pop(0))]
            end = match.end()
        if left or "%" in _PERCENT.sub("", text):
            raise ValueError("there are too many values, or an unknown conversion")
        return [*parts, text[end:]]


def _reader(unit: Unit) -> FormatReader:
    return FormatReader(unit.resolve, unit.source)


def _shown(form: str, value: ast.expr) -> Part:
    if isinstance(value, ast.Starred):
        raise ValueError("it is unknown how many values there are")
    return form, value


def _form(conversion: str | None, spec: str | None) -> str:
    return "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"


def _literal(node: ast.expr) -> str:
    if not isinstance(node, ast.Constant):
        raise ValueError("a format is computed")
    return str(node.value)


def _names_itself(source: str, before: str) -> bool:
    """Return True if `before` ends with the `n = ` that Python writes for a field `{n = }` of the f-string `source`."""
    return any(f"{{{before[i:]}}}" in source for i in range(len(before) - 1) if before[i:].rstrip().endswith("="))


def _makes_text(node: ast.AST) -> bool:
    """Return True if a node turns values into text, which shows tracers without numbers."""
    match node:
        case ast.JoinedStr():
            return True
        case ast.Call(func=called):
            return last_name(called) in _MAKERS
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod()):
            return _is_text(left)
        case _:
            return False


def _is_text(node: ast.AST) -> bool:
    return _makes_text(node) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _is_shape(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "sharding", "aval")


# Writing -------------------------------------------------------------------------------------------------------------


def _joined(printed: Sequence[list[Part]], between: str) -> list[Part]:
    return reduce(lambda left, right: [*left, between, *right], printed) if printed else []


def _field(part: Part) -> str:
    return part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else part[0]


def format_of(parts: Sequence[Part]) -> tuple[str, list[ast.expr]]:
    """Return the format string for jax.debug.print, and its values.

    JAX takes a format that starts with a doubled brace for one without values, so such a text becomes a value.
    """
    first = next((i for i, part in enumerate(parts) if not isinstance(part, str)), len(parts))
    head, parts = "".join(map(str, parts[:first])), list(parts[first:])
    if "{" in head or "}" in head:
        parts, head = [("{}", ast.Constant(head)), *parts], ""
    return "".join(map(_field, (head, *parts))), [part[1] for part in parts if not isinstance(part, str)]


def quoted(text: str) -> str:
    literal = repr(text)
    if literal[0] == "'" and '"' not in text:
        literal = '"' + literal[1:-1].replace("\\'", "'") + '"'
    return literal


def _written(unit: Unit, value: ast.expr) -> str:
    if isinstance(value, ast.Await | ast.Yield | ast.NamedExpr):
        raise RewriteUncertain("it has side effects")
    if not hasattr(value, "lineno"):
        return quoted(_literal(value))
    # jax.debug.print would turn the numbers of a shape into arrays.
    return f"str({unit.source(value)})" if _is_shape(value) else unit.source(value)


def _call_with(unit: Unit, call: ast.Call, parts: Sequence[Part], func: str, kept: Sequence[ast.keyword] = ()) -> Edit:
    """Return the edit of a call to one with a format string and its values, over as many lines as before.

    Values that remain keep their place. The format comes first, or replaces a first text.
    """
    text, values = format_of(parts)
    arguments = unit.arguments(call)
    places, spans = {id(node): i for i, (node, _) in enumerate(arguments)}, [span for _, span in arguments]
    # Text after each argument: a comma, blanks and comments.
    follows = [unit.piece(Span(*one[2:], *other[:2])) for one, other in pairwise(spans)] + [", "]
    # A shape is written as a new value, which has no place.
    at = [-1 if _is_shape(value) else places.get(id(value), -1) for value in (*values, *kept)]
    written = [quoted(text), *(_written(unit, value) for value in values)]
    written += [unit.piece(spans[places[id(keyword)]]) for keyword in kept]
    after = [follows[0] if arguments and 0 not in at else ", ", *(follows[i] if i >= 0 else ", " for i in at)]
    inside = "".join(chain.from_iterable(zip(written, [*after[:-1], ""], strict=True)))
    opening, closing = "(", ")"
    if spans:
        opening = unit.piece(Span(*Span.of(call.func)[2:], *spans[0][:2]))
        closing = unit.piece(Span(*spans[-1][2:], *Span.of(call)[2:]))
    return unit.replace(call, func + opening + inside + closing)
