"""print() and similar calls: they run once, while the function is traced, and never in the compiled program."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from explorer.capture.safe_reading import closure_variables, is_a
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence, list_traced, traced_in, traced_names
from explorer.pitfalls.function_source import FunctionSource, function_source, root_of
from explorer.pitfalls.recorder import Call, ExecutedFunction
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rules.formatted_tracer import as_format

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
    """Printing in a compiled function happens once, while it is traced."""
    if evidence.recording is None:
        for call, function in definite_prints(evidence):
            yield _finding(evidence, call, function, function.call_at(call.span), "print()")
    for call, function, node in evidence.calls:
        if name := _printing(call):
            yield _finding(evidence, call, function, node, name, "note" if name == "warnings.warn()" else "")
        elif name := _stop(call, function, node):
            yield _stopped(evidence, call, function, name)


def _printing(call: Call) -> str:
    """Return what prints, as a message names it; "" for other calls."""
    callee, name = call.callee, call.callee.rpartition(".")[2]
    if callee in _PRINTS:
        return f"{name}()"
    if callee.startswith(("logging.", "absl.logging.")):
        return f"logging's {name}()" if name in _LOGGING else ""
    if callee in ("warnings.warn", "_warnings.warn"):
        return "warnings.warn()"
    stream = _standard(call.receiver) if callee.startswith(_STREAMS) and name in ("write", "writelines") else ""
    return f"sys.{stream}.write()" if stream else ""


def _finding(
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
        fix=_fix(name, function, node, shown),
        # A print without traced values is often intended: it shows when the function is traced.
        severity=severity or ("warning" if shown or node is None else "note"),
    )


def _fix(name: str, function: FunctionSource | None, node: ast.Call | None, shown: list[str]) -> str:
    is_plain = node is not None and name == "print()" and not node.keywords  # sep, end and file say more
    arguments = as_format(node.args) if node is not None and is_plain else ""
    if arguments:
        return f"jax.debug.print({arguments}) prints in each call, while the program runs"
    if not shown or node is None or function is None:
        return 'jax.debug.print("…") prints in each call; leave this where once per compile is what you want'
    values = ", ".join(shown)
    return f"jax.debug.callback(lambda {values}: {function.source(node)}, {values}) runs in each call"


def _standard(receiver: Any) -> str:
    streams = {"stdout": (sys.stdout, sys.__stdout__), "stderr": (sys.stderr, sys.__stderr__)}
    return next((name for name, files in streams.items() if any(receiver is file for file in files)), "")


def _stop(call: Call, function: FunctionSource | None, node: ast.Call | None) -> str:
    """Return the qualified name of `breakpoint`, `set_trace` or `input`, also if a kernel replaces them."""
    if call.callee in _STOPS or not call.callee.startswith(("builtins.", "sys.", "ipykernel.")):
        return call.callee if call.callee in _STOPS else ""
    name = f"builtins.{node.func.id}" if node is not None and isinstance(node.func, ast.Name) else ""
    is_own = node is not None and function is not None and function.is_builtin(node.func)
    return name if name in _STOPS and is_own else ""


def _stopped(evidence: Evidence, call: Call, function: FunctionSource | None, name: str) -> Finding:
    return impure_print.finding(
        f"{name.rpartition('.')[2]}() ran while {evidence.name} was traced, and does not in later calls",
        at=(function, call.span),
        evidence=f"it ran {call.times}, where traced values have no numbers",
        fix=_STOPS[name],
    )


_MAX_DEPTH = 10  # functions that call functions
# Code inside these nodes may not run, or run later.
_MAYBE = (
    ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.TryStar, ast.While, ast.Match, ast.Lambda, ast.FunctionDef,
    ast.AsyncFunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def definite_prints(evidence: Evidence) -> Iterator[tuple[Call, FunctionSource]]:
    """Yield the calls of `print` that every trace of the function makes."""
    function: Any = evidence.function
    function = function.__func__ if type(function) is MethodType else function
    if evidence.error is None and type(function) is FunctionType and _may_print(function, _MAX_DEPTH):
        yield from _prints_in(evidence, function, _types(evidence), _MAX_DEPTH)


def _prints_in(
    evidence: Evidence, function: FunctionType, traced: dict[str, str], left: int
) -> Iterator[tuple[Call, FunctionSource]]:
    code = function.__code__
    source = function_source(ExecutedFunction(code, function.__globals__, closure_variables(function), traced=traced))
    if source is None:
        return
    names = traced_names(evidence, source)
    body = source.node.body
    for call in _calls(body if isinstance(body, list) else [body]):
        callee = source.value(call.func)
        if callee is print:
            yield Call(code, Span.of(call), "builtins.print", traced=names), source
        elif left and type(callee) is FunctionType and _may_print(callee, left):
            parameters = zip(callee.__code__.co_varnames, call.args, strict=False)
            passed = {name: "" for name, argument in parameters if traced_in(argument, names)}
            yield from _prints_in(evidence, callee, passed, left - 1)


def _calls(parts: Iterable[ast.AST]) -> Iterator[ast.Call]:
    for part in parts:
        if isinstance(part, _MAYBE):
            if isinstance(part, (ast.If, ast.Try, ast.TryStar, ast.While, ast.Match)) and _leaves(part):
                return
            continue
        yield from _calls(ast.iter_child_nodes(part))
        if isinstance(part, ast.Call):
            yield part


def _leaves(statement: ast.stmt) -> bool:
    return any(isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for node in ast.walk(statement))


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
        variables = {**function.__globals__, **closure_variables(function)} if depth else {}
        named = (variables.get(name) for name in (*code.co_names, *code.co_freevars))
        waiting += [(value, depth - 1) for value in named if type(value) is FunctionType]
    return False


def _types(evidence: Evidence) -> dict[str, str]:
    types: dict[str, str] = {}
    jaxpr = evidence.jaxpr
    names, avals = ((), ()) if jaxpr is None else (jaxpr.debug_info.arg_names or (), jaxpr.in_avals)
    for name, aval in zip(names, avals, strict=False):
        types.setdefault(root_of(name) if is_a(name, str) else "", aval.str_short())
    return types
