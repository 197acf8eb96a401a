"""Signatures with their types, as a person would write them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

_WIDTH = 100


def signature(name: str, function: Callable[..., Any], *, bound: bool = False) -> str:
    """`name(x: int, *, y: str = "a") -> bool`, over several lines where one would be too long.

    Args:
        name: What stands before the parentheses.
        function: What is called.
        bound: Leave its first parameter out, which is `self` or the class.
    """
    try:
        parsed = inspect.signature(function)
    except ValueError:
        return f"{name}(…)"
    parameters = list(parsed.parameters.values())[bound:]
    returns = _annotation(parsed.return_annotation)
    end = f") -> {returns}" if returns else ")"
    pieces = _pieces(parameters)
    line = f"{name}({', '.join(pieces)}{end}"
    return line if len(line) <= _WIDTH else f"{name}(\n" + "".join(f"    {piece},\n" for piece in pieces) + end


def _pieces(parameters: list[inspect.Parameter]) -> list[str]:
    pieces: list[str] = []
    kinds = [parameter.kind for parameter in parameters]
    for i, parameter in enumerate(parameters):
        if parameter.kind == inspect.Parameter.KEYWORD_ONLY and not {*kinds[:i]} & {
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        }:
            pieces.append("*")
        pieces.append(_parameter(parameter))
        if parameter.kind == inspect.Parameter.POSITIONAL_ONLY and parameter.kind not in kinds[i + 1 :]:
            pieces.append("/")
    return pieces


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    annotation = _annotation(parameter.annotation)
    text = f"{stars}{parameter.name}" + (f": {annotation}" if annotation else "")
    if parameter.default is inspect.Parameter.empty:
        return text
    default = _default(parameter.default)
    return f"{text} = {default}" if annotation else f"{text}={default}"


def _default(value: Any) -> str:
    """A default as it is written; `...` for one whose text would have an address of this process, or is long."""
    if callable(value):
        return getattr(value, "__name__", "...")
    text = repr(value)
    return "..." if " at 0x" in text or len(text) > 40 else text.replace("'", '"')


def _annotation(annotation: Any) -> str:
    if annotation is inspect.Parameter.empty:
        return ""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:[a-z_]\w*\.)+(?=[A-Z])", "", text)


def return_type(function: Callable[..., Any]) -> str:
    """What a function says it returns; empty where it doesn't say."""
    return _annotation(inspect.signature(function).return_annotation)
