"""f-strings and str() of traced values: the text contains `JitTracer(float32[3])`, not the numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from string import Formatter
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence, list_traced, traced_in, traced_names
from explorer.pitfalls.function_source import FunctionSource, last_name
from explorer.pitfalls.rule import rule

_STRINGS = ("builtins.str", "builtins.repr", "builtins.format", "builtins.ascii")
# `impure-print` reports these.
_PRINTING = ("builtins.print", "pprint.", "rich.print", "logging.", "warnings.", "_warnings.", "absl.logging.")

_ERROR_TEXTS = ("error_if", "branched_error_if", "warn_if")  # equinox's and those made like them


@rule("formatted-tracer", "EX029", "warning", "debugging/print_breakpoint.html")
def formatted_tracer(evidence: Evidence) -> Iterator[Finding]:
    """Text made from a traced value describes the tracer, and contains no numbers."""
    refused = list(_refused(evidence))
    yield from refused
    ended = {(one.file, one.line, one.column) for one in refused}
    for function in evidence.functions:
        for node in function.nodes:
            pieces = _formatted(function, node)
            position = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))
            # A text that ended the trace was never made.
            if not pieces or (function.file, *position) in ended or not function.reached(node):
                continue
            is_minor = _is_minor(function, node)
            shown = _traced_pieces(evidence, function, pieces) if is_minor is not None else []
            if shown and any(map(function.reached, pieces)):
                yield _finding(evidence, function, node, shown, bool(is_minor))


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the trace ended at a format such as `f"{x:.2f}"`."""
    error, step = evidence.error, evidence.failed_step
    function = evidence.by_code.get(step.frame.f_code) if step is not None else None
    if step is None or function is None or type(error) is not TypeError or "__format__" not in str(error):
        return
    texts = (node for node in function.walk(ast.JoinedStr, ast.Call) if step.span in Span.of(node))
    for node in islice((node for node in texts if _formatted(function, node)), 1):
        shown = _traced_pieces(evidence, function, _formatted(function, node))
        arguments = as_format([node]) or _plain(shown)
        yield formatted_tracer.finding(
            f"`{function.source(node)}` can't be made while tracing: {' and '.join(shown) or 'what it shows'} has no "
            "numbers to be formatted",
            at=(function, node),
            evidence=f"the trace ended there: {error}",
            fix=f"jax.debug.print({arguments}) formats while the program runs",
            severity="error",
        )


def _traced_pieces(evidence: Evidence, function: FunctionSource, pieces: Sequence[ast.expr]) -> list[str]:
    names = traced_names(evidence, function)
    return list(dict.fromkeys(name for piece in pieces for name in traced_in(piece, names)))


def _formatted(function: FunctionSource, node: Any) -> list[ast.expr]:
    match node:
        case ast.JoinedStr(values=values):
            return [piece.value for piece in values if isinstance(piece, ast.FormattedValue)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format"), args=args, keywords=keywords):
            return [*args, *(keyword.value for keyword in keywords)]
        case ast.Call(func=ast.Name(), args=[first, *_]) if function.callees[node] in _STRINGS:
            return [first]
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
            return list(right.elts) if isinstance(right, ast.Tuple) else [right]
        case _:
            return []


def _is_minor(function: FunctionSource, node: ast.AST) -> bool | None:
    """Return True if a text without numbers deserves a note, False for a warning, None for no finding.

    `impure-print` reports texts that are printed. `equinox.error_if` needs its text before the program runs.
    """
    named = _readers(function, node)
    if named and all(any(map(_is_error_text, function.around(reader))) for reader in named):
        return True
    for outer in function.around(node):
        if isinstance(outer, (ast.Raise, ast.Assert, ast.JoinedStr)):
            return None
        if _is_error_text(outer):
            return True
        callee = function.callees[outer] if isinstance(outer, ast.Call) else ""
        if callee in _STRINGS:
            return None  # the outer text is enough
        if isinstance(outer, ast.Call) and callee.startswith(_PRINTING):
            return True
    return False


def _readers(function: FunctionSource, node: ast.AST) -> list[ast.Name]:
    match function.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=given)]):
            return [name for name in function.walk(ast.Name) if name.id == given and isinstance(name.ctx, ast.Load)]
        case _:
            return []


def _is_error_text(node: ast.AST) -> bool:
    """Return True if a node raises an error, now or at run time, with a text that is finished now."""
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and last_name(node.func) in _ERROR_TEXTS)


def _debug_print(function: FunctionSource, node: ast.AST) -> ast.Call | None:
    outer = function.parents.get(node)
    if isinstance(outer, ast.Call) and outer.args[:1] == [node]:
        callee, name = function.callees[outer], ast.unparse(outer.func)
        is_print = callee.startswith("jax.") and callee.endswith(".debug_print")
        return outer if is_print or name in ("jax.debug.print", "debug.print") else None
    return None


def _plain(names: Sequence[str]) -> str:
    return f'"{" ".join("{}" for _ in names)}", {", ".join(names)}'


def _finding(evidence: Evidence, function: FunctionSource, node: Any, shown: list[str], is_minor: bool) -> Finding:
    printed = _debug_print(function, node)
    values = list_traced(traced_names(evidence, function), shown)
    if printed is not None:
        arguments = as_format([node, *printed.args[1:]]) or _plain(shown)
        return formatted_tracer.finding(
            f"jax.debug.print was given a finished text: each call prints what {', '.join(shown)} looked like while "
            "it was traced, not its numbers",
            at=(function, printed),
            evidence=f"the text was made of {values}, while tracing",
            fix=f"jax.debug.print({arguments})",
        )
    return formatted_tracer.finding(
        f"`{function.source(node)}` is made while tracing, where {', '.join(shown)} has no numbers to show",
        at=(function, node),
        evidence=f"it was made of {values}: the text contains JitTracer, the same on every call",
        fix=f"jax.debug.print({as_format([node]) or _plain(shown)}) shows numbers while the program runs; "
        f"{shown[0]}.shape and {shown[0]}.dtype are known while tracing",
        severity="note" if is_minor else None,
    )


_CONVERSION = re.compile(r"%(?:(%)|(s)|(\.\d+[fe]))")  # conversions that arrays support
_MAKERS = ("str", "repr", "format", "ascii", "join")  # of texts, by name


def as_format(arguments: Sequence[ast.expr]) -> str:
    """Return the arguments of jax.debug.print for those of print: `"loss {} at {step:.2f}", loss, step=step`.

    Return "" if uncertain: `*args`, or nested formats.
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
    """Return one argument as a piece of a format with its values; None for texts made in another way."""
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
    """Return True if a node turns values into text, which shows tracers without numbers."""
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
    """Return True if a format takes exactly its positional arguments in order."""
    try:
        fields = [field for _, *field in Formatter().parse(text) if field[0] is not None]
    except ValueError:
        return False
    is_plain = all(name == "" and "{" not in (spec or "") for name, spec, _ in fields)
    return is_plain and len(fields) == len(args) and not any(isinstance(arg, ast.Starred) for arg in args)


def _percent(text: str, values: Sequence[ast.expr]) -> tuple[str, list[str]] | None:
    """Return `"x %s of %.2f" % (a, b)` as a format; None for conversions that arrays may not support."""
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
        spec = "" if form is None else _plain_spec(form)
        if spec is None:
            return None
        conversion = f"!{chr(piece.conversion)}" if piece.conversion > 0 else ""
        text += "{" + conversion + (f":{spec}" if spec else "") + "}"
        values.append(ast.unparse(piece.value))
    return text, values


def _plain_spec(form: ast.expr) -> str | None:
    pieces = form.values if isinstance(form, ast.JoinedStr) else [form]
    if all(isinstance(piece, ast.Constant) for piece in pieces):
        return "".join(str(piece.value) for piece in pieces if isinstance(piece, ast.Constant))
    return None


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
