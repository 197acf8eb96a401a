"""Printed words as a format string and its values: what `print`, f-strings, `%` and `str.format` have in common."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Formatter

import libcst as cst

from explorer.pitfalls.fixes.unit import RewriteUncertain, Unit

__all__ = ["PrintFormat", "call_with", "is_text", "literal", "quoted", "words"]


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
        head = "".join(part for part in self.parts[:first] if isinstance(part, str))
        parts = self.parts[first:]
        if "{" in head or "}" in head:
            parts = [("{}", cst.SimpleString(quoted(head))), *parts]
            head = ""
        told = [_escaped(part) if isinstance(part, str) else part[0] for part in (head, *parts)]
        return "".join(told), [part[1] for part in parts if not isinstance(part, str)]


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
    found = PrintFormat()
    raw = "r" if "r" in node.prefix.lower() else ""
    for part in node.parts:
        if isinstance(part, cst.FormattedStringText):
            text = ast.literal_eval(f"{raw}{node.quote}{part.value}{node.quote}")
            found += PrintFormat([text.replace("{{", "{").replace("}}", "}")])
        elif isinstance(part, cst.FormattedStringExpression):
            found += _field(unit, part)
    return found


def _field(unit: Unit, part: cst.FormattedStringExpression) -> PrintFormat:
    spec = ""
    for piece in part.format_spec or ():
        if not isinstance(piece, cst.FormattedStringText):
            raise RewriteUncertain("a format is computed")
        spec += piece.value
    told = ""
    if part.equal is not None:
        blanks = (part.whitespace_before_expression, part.equal.whitespace_before, part.equal.whitespace_after)
        before, left, right = map(unit.source, blanks)
        told = f"{before}{unit.source(part.expression)}{left}={right}"
    conversion = f"!{part.conversion}" if part.conversion else ""
    return PrintFormat([told, ("{" + conversion + (f":{spec}" if spec else "") + "}", _value(part.expression))])


def _filled(text: str, values: list[cst.BaseExpression]) -> PrintFormat:
    """What str.format prints."""
    found = PrintFormat()
    for i, (before, name, spec, conversion) in enumerate(Formatter().parse(text)):
        found += PrintFormat([before])
        if name is None:
            continue
        if name or "{" in (spec or ""):
            raise RewriteUncertain("its values are named")
        how = "{" + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "") + "}"
        count = sum(1 for part in found.parts if not isinstance(part, str))
        if count >= len(values):
            raise RewriteUncertain(f"part {i} has no value")
        found += PrintFormat([(how, _value(values[count]))])
    return found


_PERCENT = re.compile(r"%(?:(%)|(\d*(?:\.\d+)?)([srfeg]))")


def _percent(left: cst.SimpleString, right: cst.BaseExpression) -> PrintFormat:
    text = literal(left)
    if text.count("%") != sum(2 if one[1] else 1 for one in _PERCENT.finditer(text)):
        raise RewriteUncertain("a % format that has no twin")
    if isinstance(right, cst.Dict):
        raise RewriteUncertain("its values are named")
    several = right.elements if isinstance(right, cst.Tuple) else ()
    values = [_value(one.value) for one in several] if isinstance(right, cst.Tuple) else [_value(right)]
    found, end = PrintFormat(), 0
    for one in _PERCENT.finditer(text):
        found += PrintFormat([text[end : one.start()]])
        end = one.end()
        if one[1]:
            found += PrintFormat(["%"])
        elif not values or (one[3] in "sr" and one[2]):
            raise RewriteUncertain("a % format that has no twin")
        else:
            how = {"s": "{}", "r": "{!r}"}.get(one[3], "{:" + one[2] + one[3] + "}")
            found += PrintFormat([(how, values.pop(0))])
    if values:
        raise RewriteUncertain("another number of values")
    return found + PrintFormat([text[end:]])


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
    told = repr(text)
    if told[0] == "'" and '"' not in text:
        told = '"' + told[1:-1].replace("\\'", "'") + '"'
    return told


def call_with(
    call: cst.Call, told: PrintFormat, func: cst.BaseExpression | None = None, kept: Sequence[cst.Arg] = ()
) -> cst.Call:
    """A call of the same shape, over as many lines, with a format string and its values for what it was given.

    A value that is still there goes on in its place; the format stands before it, or in the place of a first text.
    """
    text, values = told.arguments()
    old = {id(one.value): one for one in call.args}
    args = [old[id(value)] if id(value) in old else cst.Arg(value) for value in values]
    head = cst.Arg(cst.SimpleString(quoted(text)))
    if call.args and not any(one is call.args[0] for one in args):
        head = call.args[0].with_changes(value=head.value)
    args = [head, *args, *kept]
    last = call.args[-1] if call.args else None
    default = cst.MaybeSentinel.DEFAULT
    if last is not None and args[-1] is not last:
        args[-1] = args[-1].with_changes(comma=last.comma, whitespace_after_arg=last.whitespace_after_arg)
    args = [one.with_changes(comma=default) if one is last and one is not args[-1] else one for one in args]
    changed = call.with_changes(args=args, func=func if func is not None else call.func)
    if _comments(call) - _comments(changed):
        raise RewriteUncertain("a comment would be lost")
    return changed


def _comments(node: cst.CSTNode) -> set[str]:
    found: set[str] = set()
    waiting: list[cst.CSTNode] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, cst.Comment):
            found.add(one.value)
        waiting.extend(one.children)
    return found
