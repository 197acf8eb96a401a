"""Printed words as a format string and its values: what `print`, f-strings, `%` and `str.format` have in common."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Formatter

import libcst as cst

from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit, descendants


@dataclass
class PrintFormat:
    """What is printed: texts as they come out, and values, each with the field that stands for it in a format."""

    parts: list[str | tuple[str, cst.BaseExpression]] = field(
        default_factory=list[str | tuple[str, cst.BaseExpression]]
    )

    def __add__(self, other: PrintFormat) -> PrintFormat:
        return PrintFormat([*self.parts, *other.parts])

    def arguments(self) -> tuple[str, list[cst.BaseExpression]]:
        """The format string for jax.debug.print, and its values.

        JAX takes a format for one without values if the first thing in it is a doubled brace: such a text becomes a
        value itself.
        """
        first = next((i for i, part in enumerate(self.parts) if not isinstance(part, str)), len(self.parts))
        head = "".join(map(str, self.parts[:first]))
        parts = self.parts[first:]
        if "{" in head or "}" in head:
            parts, head = [("{}", cst.SimpleString(quoted(head))), *parts], ""
        texts = [_escaped(part) if isinstance(part, str) else part[0] for part in (head, *parts)]
        return "".join(texts), [part[1] for part in parts if not isinstance(part, str)]


def words(unit: Unit, node: cst.BaseExpression) -> PrintFormat:
    """What an expression prints."""
    match node:
        case cst.SimpleString():
            return PrintFormat([literal(node)])
        case cst.ConcatenatedString(left=left, right=right):
            return words(unit, left) + words(unit, right)
        case cst.FormattedString():
            return _formatted(unit, node)
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right) if is_text(unit, node):
            return words(unit, left) + words(unit, right)
        case cst.BinaryOperation(left=cst.SimpleString() as left, operator=cst.Modulo(), right=right):
            return _percent(left, right)
        case cst.Call(func=cst.Attribute(value=cst.SimpleString() as text, attr=cst.Name("format")), args=args):
            if any(one.keyword is not None or one.star for one in args):
                raise RewriteUncertain("its values are named")
            return _filled(literal(text), [one.value for one in args])
        case cst.Call(args=[cst.Arg(keyword=None, star="", value=value)]):
            for kind, field in ((str, "{}"), (repr, "{!r}")):
                if unit.resolve(node.func) is kind and not _is_shape(value):
                    return PrintFormat([(field, value)])
        case _:
            pass
    return PrintFormat([("{}", _value(node))])


def is_text(unit: Unit, node: cst.BaseExpression) -> bool:
    """Whether an expression is a text for certain."""
    match node:
        case cst.SimpleString() | cst.FormattedString() | cst.ConcatenatedString():
            return True
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right):
            return is_text(unit, left) or is_text(unit, right)
        case cst.Call(func=func, args=[_]):
            return unit.resolve(func) in (str, repr)
        case _:
            return False


def _formatted(unit: Unit, node: cst.FormattedString) -> PrintFormat:
    text_format = PrintFormat()
    raw = "r" if "r" in node.prefix.lower() else ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            text = ast.literal_eval(f"{raw}{node.quote}{part.value}{node.quote}")
            text_format += PrintFormat([text.replace("{{", "{").replace("}}", "}")])
        elif isinstance(part, cst.FormattedStringExpression):
            text_format += _field(unit, part)
    return text_format


def _field(unit: Unit, part: cst.FormattedStringExpression) -> PrintFormat:
    spec = ""
    for piece in part.format_spec or ():
        if not isinstance(piece, cst.FormattedStringText):
            raise RewriteUncertain("a format is computed")
        spec += piece.value
    name = ""
    if part.equal is not None:
        blanks = (part.whitespace_before_expression, part.equal.whitespace_before, part.equal.whitespace_after)
        before, left, right = map(unit.source, blanks)
        name = f"{before}{unit.source(part.expression)}{left}={right}"
    conversion = f"!{part.conversion}" if part.conversion else ""
    return PrintFormat([name, ("{" + conversion + (f":{spec}" if spec else "") + "}", _value(part.expression))])


def _filled(text: str, values: list[cst.BaseExpression]) -> PrintFormat:
    """What str.format prints."""
    parts: list[str | tuple[str, cst.BaseExpression]] = []
    left = iter(values)
    for i, (before, name, spec, conversion) in enumerate(Formatter().parse(text)):
        parts.append(before)
        if name is None:
            continue
        if name or "{" in (spec or ""):
            raise RewriteUncertain("its values are named")
        value = next(left, None)
        if value is None:
            raise RewriteUncertain(f"part {i} has no value")
        field = "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        parts.append((field, _value(value)))
    return PrintFormat(parts)


_PERCENT = re.compile(r"%(?:(%)|(\d*(?:\.\d+)?)([srfeg]))")


def _percent(left: cst.SimpleString, right: cst.BaseExpression) -> PrintFormat:
    text = literal(left)
    matches = list(_PERCENT.finditer(text))
    if text.count("%") != sum(2 if match[1] else 1 for match in matches):
        raise RewriteUncertain("a % format that has no twin")
    if isinstance(right, cst.Dict):
        raise RewriteUncertain("its values are named")
    expressions = [element.value for element in right.elements] if isinstance(right, cst.Tuple) else [right]
    values = iter(map(_value, expressions))
    parts, end = list[str | tuple[str, cst.BaseExpression]](), 0
    for match in matches:
        parts += [text[end : match.start()], "%" if match[1] else _percent_field(match, next(values, None))]
        end = match.end()
    if next(values, None) is not None:
        raise RewriteUncertain("another number of values")
    return PrintFormat([*parts, text[end:]])


def _percent_field(match: re.Match[str], value: cst.BaseExpression | None) -> tuple[str, cst.BaseExpression]:
    if value is None or (match[3] in "sr" and match[2]):
        raise RewriteUncertain("a % format that has no twin")
    return {"s": "{}", "r": "{!r}"}.get(match[3], "{:" + match[2] + match[3] + "}"), value


def _value(node: cst.BaseExpression) -> cst.BaseExpression:
    """A value as it can be given: jax.debug.print makes arrays of the numbers in a shape."""
    if isinstance(node, cst.Await | cst.Yield | cst.NamedExpr | cst.StarredElement):
        raise RewriteUncertain("it does more than to have a value")
    return cst.Call(cst.Name("str"), [cst.Arg(node)]) if _is_shape(node) else node


def _is_shape(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value in ("shape", "sharding", "aval")


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def literal(node: cst.BaseExpression) -> str:
    """The text that a string stands for."""
    value = node.evaluated_value if isinstance(node, cst.SimpleString | cst.ConcatenatedString) else None
    if not isinstance(value, str):
        raise RewriteUncertain("it is no text")
    return value


def quoted(text: str) -> str:
    literal = repr(text)
    if literal[0] == "'" and '"' not in text:
        literal = '"' + literal[1:-1].replace("\\'", "'") + '"'
    return literal


def call_with(
    call: cst.Call, text_format: PrintFormat, func: cst.BaseExpression | None = None, kept: Sequence[cst.Arg] = ()
) -> cst.Call:
    """A call of the same shape, over as many lines, with a format string and its values for its arguments.

    A value that is still there goes on in its place; the format stands before it, or in the place of a first text.
    """
    text, values = text_format.arguments()
    old = {id(arg.value): arg for arg in call.args}
    args = [old.get(id(value)) or cst.Arg(value) for value in values]
    head = cst.Arg(cst.SimpleString(quoted(text)))
    if call.args and not any(arg is call.args[0] for arg in args):
        head = call.args[0].with_changes(value=head.value)
    args = [head, *args, *kept]
    if call.args and args[-1] is not call.args[-1]:
        last = call.args[-1]  # its comma and blank are those of the closing bracket
        args = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) if arg is last else arg for arg in args]
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    changed = call.with_changes(args=args, func=func or call.func)
    if _comments(call) - _comments(changed):
        raise RewriteUncertain("a comment would be lost")
    return changed


def _comments(node: cst.CSTNode) -> set[str]:
    return {part.value for part in descendants(node) if isinstance(part, cst.Comment)}
