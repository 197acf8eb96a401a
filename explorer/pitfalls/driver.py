"""Drivers: plain Python functions that run jitted steps and read their results. They are read, not traced.

A trace of `for batch in batches: params, loss = step(params, batch); print(float(loss))` would end at `float(loss)`,
which is right as it is: nobody compiles the loop. To run it would train the model.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from inspect import signature
from types import FunctionType, MethodType
from typing import Any

from explorer._jax.arguments import is_jitted
from explorer.capture.safe_reading import closure_variables
from explorer.capture.sources import Span
from explorer.pitfalls.evidence import Evidence, comprehensions
from explorer.pitfalls.function_source import (
    FunctionSource,
    function_source,
    is_compiled,
    jitted_calls,
    last_name,
    targets_of,
)
from explorer.pitfalls.recorder import Call, ExecutedFunction, Recording

_TAKING = frozenset(("float", "int", "bool", "str", "print", "device_get", "block_until_ready", "format"))
_TAKING_METHODS = frozenset(("item", "tolist", "block_until_ready"))
_PASSES = 2  # over assignments: what is computed of a result is a result, and what is computed of that


def read_driver(evidence: Evidence) -> bool:
    """Fill an evidence from the text, if its function is a driver, and return True; else return False."""
    function: Any = evidence.function
    plain = function.__func__ if type(function) is MethodType else function
    if type(plain) is not FunctionType or is_jitted(evidence.target) or evidence.is_jitted:
        return False
    if not _names_jitted(plain):
        return False
    owner = function.__self__ if type(function) is MethodType else None
    executed = _executed(plain, owner, evidence.args, evidence.kwargs)
    inner = [_of_code(code, executed) for code in comprehensions(plain.__code__)]
    source = function_source(executed, inner)
    if source is None or next(taken_results(source), None) is None:
        return False
    recording = Recording(watched=plain.__code__)
    recording.executed = {one.code: one for one in (executed, *inner)}
    for node in source.calls:
        if callee := source.callees[node]:
            recording.keep(Call(plain.__code__, Span.of(node), callee, _receiver(source, node)))
    evidence.recording, evidence.is_driver = recording, True
    return True


def _names_jitted(function: FunctionType) -> bool:
    """Return True if a function names a jitted function, or `jit`: most name none, and are not parsed for this."""
    code, values = function.__code__, {**function.__globals__, **closure_variables(function)}
    names = {*code.co_names, *code.co_freevars, *(name for one in comprehensions(code) for name in one.co_names)}
    return any("jit" in name or is_compiled(values.get(name, ...)) for name in names)


def _executed(plain: FunctionType, owner: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> ExecutedFunction:
    """Return the record of a function with all of its code marked as executed; the function doesn't run."""
    try:
        given = args if owner is None else (owner, *args)
        arguments = dict(signature(plain).bind(*given, **kwargs).arguments)
    except TypeError:  # arguments that don't fit
        arguments = {}
    one = ExecutedFunction(plain.__code__, plain.__globals__, closure_variables(plain), owner, arguments=arguments)
    return _of_code(plain.__code__, one)


def _of_code(code: Any, outer: ExecutedFunction) -> ExecutedFunction:
    offsets = set(range(0, len(code.co_code), 2))
    return ExecutedFunction(code, outer.globals, outer.free, outer.owner, offsets=offsets, arguments=outer.arguments)


def _receiver(source: FunctionSource, node: ast.Call) -> Any:
    value = source.value(node.func.value) if isinstance(node.func, ast.Attribute) else ...
    return None if value is ... else value


def result_names(source: FunctionSource) -> dict[str, str]:
    """Return the names, as keys, that have results of jitted calls or what is computed of them; each value is ""."""
    called = {id(call) for call in jitted_calls(source)}
    names: dict[str, str] = {}
    assigned = [node for node in source.walk(ast.Assign, ast.AugAssign, ast.AnnAssign) if node.value is not None]
    for _ in range(_PASSES):
        for node in assigned:
            parts = list(ast.walk(node.value))
            is_result = any(id(part) in called for part in parts) or any(
                isinstance(part, ast.Name) and part.id in names for part in parts
            )
            if is_result and not any(_takes(source, part, names, called) for part in parts):
                names |= {last_name(target): "" for target in targets_of(node) if isinstance(target, ast.Name)}
        names |= dict.fromkeys(_lists_of_results(source, names, called), "")
    return names


def _lists_of_results(source: FunctionSource, names: dict[str, str], called: set[int]) -> Iterator[str]:
    """Yield the names of the lists that results are appended to as they are."""
    for node in source.calls:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[given]):
                if _result_in(source, [given], names, called) and not _takes(source, given, names, called):
                    yield name
            case _:
                continue


def taken_results(source: FunctionSource) -> Iterator[tuple[Any, str]]:
    """Yield (syntax node, text of the result) where Python takes the value of a result of a jitted call."""
    called = {id(call) for call in jitted_calls(source)}
    names = result_names(source) if called else {}
    for node in source.nodes if called else ():
        taken = _takes(source, node, names, called)
        if taken:
            yield node, taken


def _takes(source: FunctionSource, node: ast.AST, names: dict[str, str], called: set[int]) -> str:
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in _TAKING_METHODS:
            return _result_in(source, [owner], names, called)
        case ast.Call(func=function, args=given):
            callee = source.callees[node]
            takes = last_name(function) in _TAKING or callee.startswith(("numpy.", "builtins.print"))
            is_jax = callee.startswith("jax.") and last_name(function) not in _TAKING
            return _result_in(source, given, names, called) if takes and not is_jax else ""
        case ast.FormattedValue(value=value):
            return _result_in(source, [value], names, called)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            # `is None` asks nothing of an array.
            is_plain = isinstance(test, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in test.ops)
            return "" if is_plain or isinstance(test, ast.Call) else _result_in(source, [test], names, called)
        case _:
            return ""


def _result_in(source: FunctionSource, nodes: Sequence[ast.AST], names: dict[str, str], called: set[int]) -> str:
    for node in nodes:
        for part in ast.walk(node):
            if id(part) in called or (isinstance(part, ast.Name) and part.id in names):
                return source.short(part)
    return ""
