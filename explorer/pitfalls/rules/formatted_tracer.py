"""f-strings and str() of traced values: the text says `JitTracer(float32[3])`, not the numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.flow import list_traced, traced_in, traced_names
from explorer.pitfalls.formats import as_format
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.syntax_trees import last_name

_STRINGS = ("builtins.str", "builtins.repr", "builtins.format", "builtins.ascii")
# Of which `impure-print` says that they run only while tracing.
_PRINTING = ("builtins.print", "pprint.", "rich.print", "logging.", "warnings.", "_warnings.", "absl.logging.")

_ERROR_TEXTS = ("error_if", "branched_error_if", "warn_if")  # equinox's and those made like them


def check(evidence: Evidence) -> Iterator[Finding]:
    refused = list(_refused(evidence))
    yield from refused
    ended = {(one.file, one.line, one.column) for one in refused}
    for function in evidence.functions:
        for node in function.walk(ast.JoinedStr, ast.Call, ast.BinOp):
            pieces = [piece for piece in _formatted(function, node) if function.reached(node)]
            is_minor = _is_minor(evidence, function, node) if pieces else None
            shown = _traced_pieces(evidence, function, pieces) if is_minor is not None else []
            # A text that ended the trace was never made: it says nothing.
            is_made = (function.file, node.lineno, node.col_offset) not in ended
            if shown and is_made and any(map(function.reached, pieces)):
                yield _finding(evidence, function, node, shown, bool(is_minor))


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """`f"{x:.2f}"`: the trace ended there."""
    error, step = evidence.error, evidence.failed_step
    function = evidence.by_code.get(step.frame.f_code) if step is not None else None
    if step is None or function is None or type(error) is not TypeError or "__format__" not in str(error):
        return
    texts = (node for node in function.walk(ast.JoinedStr, ast.Call) if step.span in Span.of(node))
    for node in islice((node for node in texts if _formatted(function, node)), 1):
        shown = _traced_pieces(evidence, function, _formatted(function, node))
        arguments = as_format([node]) or _plain(shown)
        yield RULE.finding(
            f"`{function.source(node)}` can't be made while tracing: {' and '.join(shown) or 'what it shows'} has no "
            "numbers to be formatted",
            function=function,
            span=Span.of(node),
            evidence=f"the trace ended there: {error}",
            fix=f"jax.debug.print({arguments}) formats while the program runs",
            severity="error",
        )


def _traced_pieces(evidence: Evidence, function: FunctionSource, pieces: Sequence[ast.expr]) -> list[str]:
    """The names of traced values that a text is made of, each once."""
    names = traced_names(evidence, function)
    return list(dict.fromkeys(name for piece in pieces for name in traced_in(piece, names)))


def _formatted(function: FunctionSource, node: Any) -> list[ast.expr]:
    """What goes into the text that a node makes; nothing if it makes none."""
    match node:
        case ast.JoinedStr(values=values):
            return [piece.value for piece in values if isinstance(piece, ast.FormattedValue)]
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str()), attr="format"), args=args, keywords=keywords):
            return [*args, *(keyword.value for keyword in keywords)]
        case ast.Call(func=ast.Name(), args=[first, *_]) if function.callee(node) in _STRINGS:
            return [first]
        case ast.BinOp(left=ast.Constant(value=str()), op=ast.Mod(), right=right):
            return list(right.elts) if isinstance(right, ast.Tuple) else [right]
        case _:
            return []


def _is_minor(evidence: Evidence, function: FunctionSource, node: ast.AST) -> bool | None:
    """Whether that a text has no numbers is worth no warning; None if it isn't made in any trace.

    `impure-print` says of one that it is printed while tracing. One that only `equinox.error_if` takes is made before
    it is known whether it will ever be read, and nothing that is computed then could be in it.
    """
    named = _readers(function, node)
    if named and all(any(map(_is_error_text, function.around(reader))) for reader in named):
        return True
    for outer in function.around(node):
        if isinstance(outer, (ast.Raise, ast.Assert, ast.JoinedStr)):
            return None
        if _is_error_text(outer):
            return True
        callee = function.callee(outer) if isinstance(outer, ast.Call) else ""
        if callee in _STRINGS:
            return None  # the outer text is enough
        if isinstance(outer, ast.Call) and callee.startswith(_PRINTING):
            return True
    return False


def _readers(function: FunctionSource, node: ast.AST) -> list[ast.Name]:
    """Where the name is read that a text is given; nothing where it is given none, or more."""
    match function.parents.get(node):
        case ast.Assign(targets=[ast.Name(id=given)]):
            return [name for name in function.walk(ast.Name) if name.id == given and isinstance(name.ctx, ast.Load)]
        case _:
            return []


def _is_error_text(node: ast.AST) -> bool:
    """Whether a node raises an error, now or while the program runs, with a text that it is given finished."""
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and last_name(node.func) in _ERROR_TEXTS)


def _debug_print(function: FunctionSource, node: ast.AST) -> ast.Call | None:
    """The jax.debug.print that a text is for."""
    outer = function.parents.get(node)
    if isinstance(outer, ast.Call) and outer.args[:1] == [node]:
        callee = function.callee(outer)
        return outer if (callee.startswith("jax.") and callee.endswith(".debug_print")) or _is_debug(outer) else None
    return None


def _is_debug(call: ast.Call) -> bool:
    return ast.unparse(call.func) in ("jax.debug.print", "debug.print")


def _plain(names: Sequence[str]) -> str:
    """What jax.debug.print takes to show some values and no more."""
    return f'"{" ".join("{}" for _ in names)}", {", ".join(names)}'


def _finding(evidence: Evidence, function: FunctionSource, node: Any, shown: list[str], is_minor: bool) -> Finding:
    printed = _debug_print(function, node)
    values = list_traced(traced_names(evidence, function), shown)
    if printed is not None:
        arguments = as_format([node, *printed.args[1:]]) or _plain(shown)
        return RULE.finding(
            f"jax.debug.print was given a finished text: each call prints what {', '.join(shown)} looked like while "
            "it was traced, not its numbers",
            function=function,
            span=Span.of(printed),
            evidence=f"the text was made of {values}, while tracing",
            fix=f"jax.debug.print({arguments})",
        )
    return RULE.finding(
        f"`{function.source(node)}` is made while tracing, where {', '.join(shown)} has no numbers to show",
        function=function,
        span=Span.of(node),
        evidence=f"it was made of {values}: the text says JitTracer, in every call the same",
        fix=f"jax.debug.print({as_format([node]) or _plain(shown)}) shows numbers while the program runs; "
        f"{shown[0]}.shape and {shown[0]}.dtype can be told while tracing",
        severity="note" if is_minor else None,
    )


RULE = Rule(
    "formatted-tracer",
    "EX029",
    "warning",
    "A text made of a traced value says what kind of tracer it is, and no numbers.",
    "https://docs.jax.dev/en/latest/debugging/print_breakpoint.html",
    check,
)
