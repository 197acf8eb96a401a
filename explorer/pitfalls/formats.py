"""What print() was given, as jax.debug.print takes it: one format and its values."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from string import Formatter

_CONVERSION = re.compile(r"%(?:(%)|(s)|(\.\d+[fe]))")  # of those that arrays have
_MAKERS = ("str", "repr", "format", "ascii", "join")  # of texts, by name


def as_format(arguments: Sequence[ast.expr]) -> str:
    """`"loss {} at {step:.2f}", loss, step=step`: the arguments of jax.debug.print that say what print() said.

    Empty where that isn't certain: `*args`, or formats inside of formats.
    """
    texts: list[str] = []
    values: list[str] = []
    for argument in arguments:
        if isinstance(argument, ast.Starred):
            return ""
        parts = parts_of(argument)
        if parts is None:
            return ""
        texts.append(parts[0])
        values += parts[1]
    text = " ".join(texts)
    quote = "'" if '"' in text and "'" not in text else '"'
    written = repr(text) if quote in text or "\\" in repr(text) else f"{quote}{text}{quote}"
    return ", ".join((written, *values))


def parts_of(node: ast.expr) -> tuple[str, list[str]] | None:
    """One argument as a piece of a format, and the values that go into it; None where a text is made in another way."""
    match node:
        case ast.Constant(value=str() as text):
            return _escaped(text), []
        case ast.JoinedStr(values=pieces):
            return _joined(pieces)
        case ast.Call(func=ast.Name(id="str"), args=[value], keywords=[]):
            return parts_of(value)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as text), attr="format"), keywords=[]):
            return (text, list(map(ast.unparse, node.args))) if _has_fields(text, node.args) else None
        case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=right):
            return _percent(text, right.elts if isinstance(right, ast.Tuple) else [right])
        case ast.BinOp(left=left, op=ast.Add(), right=right) if _is_text(left) or _is_text(right):
            first, then = parts_of(left), parts_of(right)
            return None if first is None or then is None else (first[0] + then[0], first[1] + then[1])
        case _:
            return None if any(map(_makes_text, ast.walk(node))) else ("{}", [ast.unparse(node)])


def _makes_text(node: ast.AST) -> bool:
    """Whether values are made a text there: of tracers it says that they are some."""
    match node:
        case ast.JoinedStr():
            return True
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in _MAKERS
        case ast.BinOp(left=left, op=ast.Add() | ast.Mod()):
            return _is_text(left)
        case _:
            return False


def _is_text(node: ast.AST) -> bool:
    return _makes_text(node) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _has_fields(text: str, args: Sequence[ast.expr]) -> bool:
    """Whether a format takes its arguments one after the other, and those are all that it takes."""
    try:
        fields = [field for _, *field in Formatter().parse(text) if field[0] is not None]
    except ValueError:
        return False
    is_plain = all(name == "" and "{" not in (spec or "") for name, spec, _ in fields)
    return is_plain and len(fields) == len(args) and not any(isinstance(arg, ast.Starred) for arg in args)


def _percent(text: str, values: Sequence[ast.expr]) -> tuple[str, list[str]] | None:
    """`"x %s of %.2f" % (a, b)` as a format; None for conversions that arrays may not have."""
    conversions = _CONVERSION.findall(text)
    is_whole = "%" not in _CONVERSION.sub("", text) and len(values) == sum(not percent for percent, *_ in conversions)
    written = _CONVERSION.sub(lambda at: at[1] or ("{}" if at[2] else f"{{:{at[3]}}}"), _escaped(text))
    return (written, list(map(ast.unparse, values))) if is_whole else None


def _joined(pieces: Sequence[ast.expr]) -> tuple[str, list[str]] | None:
    text = ""
    values: list[str] = []
    for piece in pieces:
        if isinstance(piece, ast.Constant):
            text += _escaped(str(piece.value))
            continue
        assert isinstance(piece, ast.FormattedValue)
        form = piece.format_spec
        spec = "" if form is None else _plain(form)
        if spec is None:
            return None
        conversion = f"!{chr(piece.conversion)}" if piece.conversion > 0 else ""
        text += "{" + conversion + (f":{spec}" if spec else "") + "}"
        values.append(ast.unparse(piece.value))
    return text, values


def _plain(form: ast.expr) -> str | None:
    pieces = form.values if isinstance(form, ast.JoinedStr) else [form]
    if all(isinstance(piece, ast.Constant) for piece in pieces):
        return "".join(str(piece.value) for piece in pieces if isinstance(piece, ast.Constant))
    return None


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
