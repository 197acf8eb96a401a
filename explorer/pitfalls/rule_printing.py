"""Rules about text that is printed or made while tracing: print(), logging, f-strings and str()."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

from explorer.capture.safe_reading import closure_variables, is_a
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.model.text import root_of
from explorer.pitfalls.evidence import Evidence, list_traced, traced_in, traced_names
from explorer.pitfalls.fix_prints import as_format
from explorer.pitfalls.function_source import FunctionSource, function_source, last_name
from explorer.pitfalls.recorder import Call, ExecutedFunction
from explorer.pitfalls.rule import rule

_PRINTS = ("builtins.print", "pprint.pprint", "pprint.pp", "rich.print", "IPython.core.display_functions.display")
_STREAMS = ("_io.", "ipykernel.iostream.", "_pytest.capture.")
_STOPS = {
    "builtins.breakpoint": "jax.debug.breakpoint() stops while the program runs",
    "pdb.set_trace": "jax.debug.breakpoint() stops while the program runs",
    "builtins.input": "ask before the call, and pass the answer as an argument",
}
# Reported at any level: a message that another level enables appears in the trace only, too.
_LOGGING = frozenset(("debug", "info", "warning", "warn", "error", "exception", "critical", "fatal", "log"))


@rule("impure-print", "EX001", "warning", "debugging/print_breakpoint.html", passive=True)
def impure_print(evidence: Evidence) -> Iterator[Finding]:
    """Printing in a compiled function happens once, while it is traced.

    `print`, `logging` and similar calls aren't part of the compiled program. `jax.debug.print` prints on each call.
    """
    if evidence.recording is None:
        for call, function in definite_prints(evidence):
            yield _printed(evidence, call, function, function.call_at(call.span), "print()")
    for call, function, node in evidence.calls:
        if name := _printing(call):
            yield _printed(evidence, call, function, node, name, "note" if name == "warnings.warn()" else "")
        elif name := _stop(call, function, node):
            yield impure_print.finding(
                f"{name.rpartition('.')[2]}() ran while {evidence.name} was traced, and doesn't run in later calls",
                at=(function, call.span),
                evidence=f"it ran {call.times}, during the trace: traced values have no numbers yet",
                fix=_STOPS[name],
            )


def _printing(call: Call) -> str:
    """Return the name of what prints, as a message has it: `print()`, `logging's info()`; "" for other calls."""
    callee, name = call.callee, call.callee.rpartition(".")[2]
    if callee in _PRINTS:
        return f"{name}()"
    if callee.startswith(("logging.", "absl.logging.")):
        return f"logging's {name}()" if name in _LOGGING else ""
    if callee in ("warnings.warn", "_warnings.warn"):
        return "warnings.warn()"
    stream = _standard(call.receiver) if callee.startswith(_STREAMS) and name in ("write", "writelines") else ""
    return f"sys.{stream}.write()" if stream else ""


def _standard(receiver: Any) -> str:
    streams = {"stdout": (sys.stdout, sys.__stdout__), "stderr": (sys.stderr, sys.__stderr__)}
    return next((name for name, files in streams.items() if any(receiver is file for file in files)), "")


def _printed(
    evidence: Evidence,
    call: Call,
    function: FunctionSource | None,
    node: ast.Call | None,
    name: str,
    severity: str = "",
) -> Finding:
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)] if node is not None else []
    shown = list(dict.fromkeys(name for argument in arguments for name in traced_in(argument, call.traced)))
    seen = f"it ran {call.times}, while {evidence.name} was traced"
    if shown:
        seen += (
            f", and showed tracers, not numbers: it was given {list_traced(call.traced, shown)}, which had no value yet"
        )
    return impure_print.finding(
        f"{name} ran while {evidence.name} was traced, and runs in no call after that: calls 2, 3, … print nothing",
        at=(function, call.span),
        evidence=seen,
        fix=_print_fix(name, function, node, shown),
        # A print without traced values is often intended: it shows when the function is traced.
        severity=severity or ("warning" if shown or node is None else "note"),
    )


def _print_fix(name: str, function: FunctionSource | None, node: ast.Call | None, shown: list[str]) -> str:
    is_plain = node is not None and name == "print()" and not node.keywords  # sep, end and file say more
    arguments = as_format(node.args) if node is not None and is_plain else ""
    if arguments:
        return f"jax.debug.print({arguments}) prints in each call, while the program runs"
    if not shown or node is None or function is None:
        return 'jax.debug.print("…") prints in each call; leave this where once per compile is what you want'
    values = ", ".join(shown)
    return f"jax.debug.callback(lambda {values}: {function.source(node)}, {values}) runs in each call"


def _stop(call: Call, function: FunctionSource | None, node: ast.Call | None) -> str:
    """Return the qualified name of `breakpoint`, `set_trace` or `input`, also if a kernel replaces them; else ""."""
    if call.callee in _STOPS or not call.callee.startswith(("builtins.", "sys.", "ipykernel.")):
        return call.callee if call.callee in _STOPS else ""
    name = f"builtins.{node.func.id}" if node is not None and isinstance(node.func, ast.Name) else ""
    is_own = node is not None and function is not None and function.is_builtin(node.func)
    return name if name in _STOPS and is_own else ""


_MAX_DEPTH = 10  # functions that call functions
# Code inside these nodes may not run, or run later.
_MAYBE = (
    ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.TryStar, ast.While, ast.Match, ast.Lambda, ast.FunctionDef,
    ast.AsyncFunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def definite_prints(evidence: Evidence) -> Iterator[tuple[Call, FunctionSource]]:
    """Yield the calls of `print` that every trace of the function makes, each with the source that it is in."""
    function: Any = evidence.function
    function = function.__func__ if type(function) is MethodType else function
    if evidence.error is None and type(function) is FunctionType and _may_print(function, _MAX_DEPTH):
        yield from _prints_in(evidence, function, _argument_types(evidence), _MAX_DEPTH)


def _prints_in(
    evidence: Evidence, function: FunctionType, traced: dict[str, str], left: int
) -> Iterator[tuple[Call, FunctionSource]]:
    code = function.__code__
    source = function_source(ExecutedFunction(code, function.__globals__, closure_variables(function), traced=traced))
    if source is None:
        return
    names = traced_names(evidence, source)
    body = source.node.body
    for call in _calls_in(body if isinstance(body, list) else [body]):
        callee = source.value(call.func)
        if callee is print:
            yield Call(code, Span.of(call), "builtins.print", traced=names), source
        elif left and type(callee) is FunctionType and _may_print(callee, left):
            parameters = zip(callee.__code__.co_varnames, call.args, strict=False)
            passed = {name: "" for name, argument in parameters if traced_in(argument, names)}
            yield from _prints_in(evidence, callee, passed, left - 1)


def _calls_in(parts: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for part in parts:
        if isinstance(part, _MAYBE):
            leaves = any(isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for node in ast.walk(part))
            if isinstance(part, (ast.If, ast.Try, ast.TryStar, ast.While, ast.Match)) and leaves:
                return
            continue
        yield from _calls_in(ast.iter_child_nodes(part))
        if isinstance(part, ast.Call):
            yield part


def _may_print(function: FunctionType, left: int) -> bool:
    """Return True if a function or the functions that it names mention `print`, to skip reading most texts."""
    waiting, seen = [(function, left)], set[CodeType]()
    while waiting:
        function, depth = waiting.pop()
        code = function.__code__
        if code in seen or is_library_file(code.co_filename):
            continue
        seen.add(code)
        if "print" in code.co_names:
            return True
        variables = dict(function.__globals__) if depth else {}
        if depth and code.co_freevars:
            variables |= closure_variables(function)
        named = (variables.get(name) for name in (*code.co_names, *code.co_freevars))
        waiting += [(value, depth - 1) for value in named if type(value) is FunctionType]
    return False


def _argument_types(evidence: Evidence) -> dict[str, str]:
    types: dict[str, str] = {}
    jaxpr = evidence.jaxpr
    names, avals = ((), ()) if jaxpr is None else (jaxpr.debug_info.arg_names or (), jaxpr.in_avals)
    for name, aval in zip(names, avals, strict=False):
        types.setdefault(root_of(name) if is_a(name, str) else "", aval.str_short())
    return types


_STRINGS = ("builtins.str", "builtins.repr", "builtins.format", "builtins.ascii")
# `impure-print` reports these.
_PRINTING = ("builtins.print", "pprint.", "rich.print", "logging.", "warnings.", "_warnings.", "absl.logging.")

_ERROR_TEXTS = ("error_if", "branched_error_if", "warn_if")  # equinox's and those made like them


@rule("formatted-tracer", "EX029", "warning", "debugging/print_breakpoint.html")
def formatted_tracer(evidence: Evidence) -> Iterator[Finding]:
    """Text made from a traced value describes the tracer, and contains no numbers.

    f-strings, `str()`, `format` and `%` run while tracing: the text contains `JitTracer(float32[3])`, not the numbers.
    """
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
                yield _text_finding(evidence, function, node, shown, bool(is_minor))


def _refused(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding if the trace ended at a format such as `f"{x:.2f}"`."""
    error, step = evidence.error, evidence.failed_step
    function = evidence.by_code.get(step.frame.f_code) if step is not None else None
    if step is None or function is None or type(error) is not TypeError or "__format__" not in str(error):
        return
    texts = (node for node in function.walk(ast.JoinedStr, ast.Call) if step.span in Span.of(node))
    for node in islice((node for node in texts if _formatted(function, node)), 1):
        shown = _traced_pieces(evidence, function, _formatted(function, node))
        arguments = as_format([node]) or _plain_arguments(shown)
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


def _plain_arguments(names: Sequence[str]) -> str:
    return f'"{" ".join("{}" for _ in names)}", {", ".join(names)}'


def _text_finding(evidence: Evidence, function: FunctionSource, node: Any, shown: list[str], is_minor: bool) -> Finding:
    printed = _debug_print(function, node)
    values = list_traced(traced_names(evidence, function), shown)
    if printed is not None:
        arguments = as_format([node, *printed.args[1:]]) or _plain_arguments(shown)
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
        fix=f"jax.debug.print({as_format([node]) or _plain_arguments(shown)}) shows numbers while the program runs; "
        f"{shown[0]}.shape and {shown[0]}.dtype are known while tracing",
        severity="note" if is_minor else None,
    )
