"""What print() was given, as jax.debug.print takes it: one format and its values."""

from __future__ import annotations

import ast
from collections.abc import Sequence


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
    """One argument as a piece of a format, and the values that go into it."""
    match node:
        case ast.Constant(value=str() as text):
            return _escaped(text), []
        case ast.JoinedStr(values=pieces):
            return _joined(pieces)
        case _:
            return "{}", [ast.unparse(node)]


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
