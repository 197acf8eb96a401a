"""Rewrites of print(…), f-strings and logging that show values while the program runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain, pairwise
from string import Formatter

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, finding_span
from explorer.pitfalls.function_source import Edit

_Part = str | tuple[str, ast.expr]
_PRINTS = ("print", "pprint.pprint", "pprint")
_LEVELS = ("debug", "info", "warning", "error", "critical")
_PERCENT = re.compile(r"%(?:(%)|(\d*(?:\.\d+)?)([srfeg]))")


def rewrite_print(unit: Unit, finding: Finding) -> list[Edit]:
    """Rewrite print(…) as jax.debug.print(…), with an f-string as a format and its values."""
    call = unit.call_on_line(finding_span(finding))
    if unit.source(call.func) not in _PRINTS:
        raise RewriteUncertain("it is no print")
    ends = {"sep": " ", "end": "\n"}
    for keyword in call.keywords:
        if keyword.arg in ends:
            is_default = isinstance(keyword.value, ast.Constant) and keyword.value.value is None
            ends[keyword.arg] = ends[keyword.arg] if is_default else _literal(keyword.value)
        elif keyword.arg != "flush":
            raise RewriteUncertain(f"print has a {keyword.arg}")
    if not ends["end"].endswith("\n"):
        raise RewriteUncertain("jax.debug.print ends with a new line")
    printed, between = [words(unit, value) for value in call.args], PrintFormat([ends["sep"]])
    text = reduce(lambda left, right: left + between + right, printed) if printed else PrintFormat()
    return [_call_with(unit, call, text + PrintFormat([ends["end"][:-1]]), unit.qualified_name("jax.debug.print"))]


def rewrite_format(unit: Unit, finding: Finding) -> list[Edit]:
    for call in unit.near(finding_span(finding), ast.Call):
        func = unit.source(call.func)
        if func.endswith("debug.print") and call.args and _is_text(unit, call.args[0]):
            if len(call.args) > 1 or any(keyword.arg is None for keyword in call.keywords):
                raise RewriteUncertain("it has values already")
            return [_call_with(unit, call, words(unit, call.args[0]), func, call.keywords)]
    raise RewriteUncertain("it is no jax.debug.print")


def rewrite_log(unit: Unit, finding: Finding) -> list[Edit]:
    """Call logger.info("x %s", x) while the program runs: logging fills in the values itself."""
    call = unit.call_on_line(finding_span(finding))
    line = next(iter(unit.around(Span.of(call), ast.Expr)), None)
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in _LEVELS or line is None:
        raise RewriteUncertain("it is no call of a logger")
    is_plain = call.args and not call.keywords and not any(isinstance(one, ast.Starred) for one in call.args)
    if line.value is not call or not is_plain:
        raise RewriteUncertain("it is more than a message and its values")
    first = unit.insert(unit.arguments(call)[0][1][:2], f"{unit.source(call.func)}, ")
    return [unit.replace(call.func, unit.qualified_name("jax.debug.callback")), first]


@dataclass
class PrintFormat:
    """Printed text: literal parts, and values with their format fields."""

    parts: list[_Part] = field(default_factory=list[_Part])

    def __add__(self, other: PrintFormat) -> PrintFormat:
        return PrintFormat([*self.parts, *other.parts])

    def arguments(self) -> tuple[str, list[ast.expr]]:
        """Return the format string for jax.debug.print, and its values.

        JAX takes a format that starts with a doubled brace for one without values, so such a text becomes a value.
        """
        first = next((i for i, part in enumerate(self.parts) if not isinstance(part, str)), len(self.parts))
        head, parts = "".join(map(str, self.parts[:first])), self.parts[first:]
        if "{" in head or "}" in head:
            parts, head = [("{}", ast.Constant(head)), *parts], ""
        texts = [_escaped(part) if isinstance(part, str) else part[0] for part in (head, *parts)]
        return "".join(texts), [part[1] for part in parts if not isinstance(part, str)]


def words(unit: Unit, node: ast.expr) -> PrintFormat:
    match node:
        case ast.Constant(value=str() as text):
            return PrintFormat([text])
        case ast.JoinedStr():
            return _formatted(unit, node)
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_text(unit, node):
            return words(unit, left) + words(unit, right)
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
            return _percent(text, right)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format"), args=args):
            if node.keywords or any(isinstance(one, ast.Starred) for one in args):
                raise RewriteUncertain("its values are named")
            return _filled(text, args)
        case ast.Call(args=[value], keywords=[]) if not isinstance(value, ast.Starred) and not _is_shape(value):
            kind = unit.resolve(node.func)
            if kind is str or kind is repr:
                return PrintFormat([("{}" if kind is str else "{!r}", value)])
        case _:
            pass
    return PrintFormat([("{}", _value(node))])


def _is_text(unit: Unit, node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(unit, left) or _is_text(unit, right)
        case ast.Call(func=func, args=[_], keywords=[]):
            return unit.resolve(func) in (str, repr)
        case _:
            return False


def _formatted(unit: Unit, node: ast.JoinedStr) -> PrintFormat:
    parts: list[_Part] = [""]
    for part in node.values:
        if isinstance(part, ast.Constant):
            parts.append(str(part.value))
        elif isinstance(part, ast.FormattedValue):
            spec = "" if part.format_spec is None else _plain(part.format_spec)
            conversion = f"!{chr(part.conversion)}" if part.conversion > 0 else ""
            if conversion == "!r" and _names_itself(unit.source(node), str(parts[-1])):
                conversion = ""
            parts.append(("{" + conversion + (f":{spec}" if spec else "") + "}", _value(part.value)))
    return PrintFormat(parts)


def _names_itself(source: str, before: str) -> bool:
    """Return True for `{n = }`, where Python writes the text `n = ` and the value's `repr`."""
    return any(f"{{{before[i:]}}}" in source for i in range(len(before) - 1) if before[i:].rstrip().endswith("="))


def _plain(spec: ast.expr) -> str:
    pieces = spec.values if isinstance(spec, ast.JoinedStr) else [spec]
    if not all(isinstance(piece, ast.Constant) for piece in pieces):
        raise RewriteUncertain("a format is computed")
    return "".join(str(piece.value) for piece in pieces if isinstance(piece, ast.Constant))


def _filled(text: str, values: Sequence[ast.expr]) -> PrintFormat:
    parts: list[_Part] = []
    left = iter(values)
    for i, (before, name, spec, conversion) in enumerate(Formatter().parse(text)):
        parts.append(before)
        if name is None:
            continue
        if name or "{" in (spec or ""):
            raise RewriteUncertain("its values are named")
        if (value := next(left, None)) is None:
            raise RewriteUncertain(f"part {i} has no value")
        shown = "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        parts.append((shown, _value(value)))
    return PrintFormat(parts)


def _percent(text: str, right: ast.expr) -> PrintFormat:
    matches = list(_PERCENT.finditer(text))
    if text.count("%") != sum(2 if match[1] else 1 for match in matches):
        raise RewriteUncertain("a % format that has no twin")
    if isinstance(right, ast.Dict):
        raise RewriteUncertain("its values are named")
    values = iter(map(_value, right.elts if isinstance(right, ast.Tuple) else [right]))
    parts, end = list[_Part](), 0
    for match in matches:
        parts += [text[end : match.start()], "%" if match[1] else _percent_field(match, next(values, None))]
        end = match.end()
    if next(values, None) is not None:
        raise RewriteUncertain("another number of values")
    return PrintFormat([*parts, text[end:]])


def _percent_field(match: re.Match[str], value: ast.expr | None) -> tuple[str, ast.expr]:
    if value is None or (match[3] in "sr" and match[2]):
        raise RewriteUncertain("a % format that has no twin")
    return {"s": "{}", "r": "{!r}"}.get(match[3], "{:" + match[2] + match[3] + "}"), value


def _value(node: ast.expr) -> ast.expr:
    """Return a value as an argument of jax.debug.print, which would turn the numbers of a shape into arrays."""
    if isinstance(node, ast.Await | ast.Yield | ast.NamedExpr | ast.Starred):
        raise RewriteUncertain("it does more than to have a value")
    return ast.Call(ast.Name("str"), [node], []) if _is_shape(node) else node


def _is_shape(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "sharding", "aval")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise RewriteUncertain("it is no text")


def quoted(text: str) -> str:
    literal = repr(text)
    if literal[0] == "'" and '"' not in text:
        literal = '"' + literal[1:-1].replace("\\'", "'") + '"'
    return literal


def _written(unit: Unit, value: ast.expr) -> str:
    match value:
        case ast.expr() if hasattr(value, "lineno"):
            return unit.source(value)
        case ast.Call(args=[shape]):
            return f"str({unit.source(shape)})"
        case _:
            return quoted(_literal(value))


def _call_with(
    unit: Unit, call: ast.Call, text_format: PrintFormat, func: str, kept: Sequence[ast.keyword] = ()
) -> Edit:
    """Rewrite a call with a format string and its values, over as many lines as before.

    Values that remain keep their place. The format comes first, or replaces a first text.
    """
    text, values = text_format.arguments()
    arguments = unit.arguments(call)
    places, spans = {id(node): i for i, (node, _) in enumerate(arguments)}, [span for _, span in arguments]
    # Text after each argument: a comma, blanks and comments.
    follows = [unit.piece(Span(*one[2:], *other[:2])) for one, other in pairwise(spans)] + [", "]
    at = [places.get(id(value), -1) for value in (*values, *kept)]
    written = [quoted(text), *(_written(unit, value) for value in values)]
    written += [unit.piece(spans[places[id(keyword)]]) for keyword in kept]
    after = [follows[0] if arguments and 0 not in at else ", ", *(follows[i] if i >= 0 else ", " for i in at)]
    inside = "".join(chain.from_iterable(zip(written, [*after[:-1], ""], strict=True)))
    opening, closing = "(", ")"
    if spans:
        opening = unit.piece(Span(*Span.of(call.func)[2:], *spans[0][:2]))
        closing = unit.piece(Span(*spans[-1][2:], *Span.of(call)[2:]))
    return unit.replace(call, func + opening + inside + closing)
