"""What a traced function printed for certain, by its text alone: for captures, whose trace was not recorded."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

from explorer.capture.safe_reading import closure_variables, is_a
from explorer.capture.sources import Span
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.flow import traced_in, traced_names
from explorer.pitfalls.function_source import FunctionSource, function_source
from explorer.pitfalls.recorder import Call, ExecutedFunction
from explorer.pitfalls.syntax_trees import root_of

_DEEPEST = 10  # functions that call functions
# What is inside of these may not have run, or not then.
_MAYBE = (
    ast.If, ast.IfExp, ast.BoolOp, ast.Try, ast.TryStar, ast.While, ast.Match, ast.Lambda, ast.FunctionDef,
    ast.AsyncFunctionDef, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


def definite_prints(evidence: Evidence) -> Iterator[tuple[Call, FunctionSource]]:
    """The calls of `print` that every trace of the function makes."""
    function: Any = evidence.function
    function = function.__func__ if type(function) is MethodType else function
    if evidence.error is None and type(function) is FunctionType and _may_print(function, _DEEPEST):
        yield from _prints_in(evidence, function, _types(evidence), _DEEPEST)


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
    """The calls in some statements or an expression that are made for certain, before any return."""
    for part in parts:
        if isinstance(part, _MAYBE):
            if isinstance(part, (ast.If, ast.Try, ast.TryStar, ast.While, ast.Match)) and _leaves(part):
                return
            continue
        yield from _calls(ast.iter_child_nodes(part))
        if isinstance(part, ast.Call):
            yield part


def _leaves(statement: ast.stmt) -> bool:
    """Whether what comes after a statement may not be reached."""
    return any(isinstance(node, (ast.Return, ast.Raise, ast.Break, ast.Continue)) for node in ast.walk(statement))


def _may_print(function: FunctionType, left: int) -> bool:
    """Whether `print` is among the names of a function, or of one that it names: most texts need not be read."""
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
    """The parameters that were traced: the first types of each."""
    types: dict[str, str] = {}
    jaxpr = evidence.jaxpr
    names, avals = ((), ()) if jaxpr is None else (jaxpr.debug_info.arg_names or (), jaxpr.in_avals)
    for name, aval in zip(names, avals, strict=False):
        types.setdefault(root_of(name) if is_a(name, str) else "", aval.str_short())
    return types
