"""jax.jit of functions that are created again and again: JAX compares functions by identity, so each is compiled."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from types import FunctionType, MethodType
from typing import Any

from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, decorator, is_jit_call
from explorer.pitfalls.rule import rule

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DERIVING = ("grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "checkpoint", "remat", "linearize")


@rule("rejit-in-loop", "EX022", "warning", "jit-compilation.html#jit-and-caching")
def rejit_in_loop(evidence: Evidence) -> Iterator[Finding]:
    """jax.jit of a new lambda, partial() or bound method compiles again each time."""
    for function in evidence.functions:
        yield from _in_text(evidence, function)
    yield from _in_ledger(evidence)


def _in_text(evidence: Evidence, function: FunctionSource) -> Iterator[Finding]:
    defined = {node.name: node for node in function.by_type[ast.FunctionDef]}
    called = {id(node.func) for node in function.calls}
    for node in function.calls:
        if is_jit_call(function, node):
            loop = _loop_around(function, node)
            made = _new_each_time(function, node.args[0], defined, loop)
            if made and (loop is not None or function.executed.count > 1 or id(node) in called):
                yield _finding(evidence, function, Span.of(node), node.args[0], made, loop)
    for node in defined.values():
        wraps, loop = decorator(function, node), _loop_around(function, node)
        if wraps is not None and (loop is not None or function.executed.count > 1):
            yield _finding(evidence, function, Span.of(wraps), node, f"the function {node.name}", loop)


def _loop_around(function: FunctionSource, node: ast.AST) -> ast.AST | None:
    span = Span.of(node)
    loops = (loop for loop in function.walk(*_LOOPS) if any(span in Span.of(part) for part in _turns(loop)))
    return next(loops, None)


def _finding(
    evidence: Evidence, function: FunctionSource, span: Span, what: ast.AST, made: str, loop: ast.AST | None
) -> Finding:
    name = function.executed.code.co_name
    if loop is not None:
        line: int = getattr(loop, "lineno", 0)
        how_often = f"in every turn of the loop in line {line}"
    else:
        how_often = f"in every call of {name}"
    ran = function.executed.count
    made_here = (call.count for call, at, _ in evidence.calls if at is function and call.span == span)
    times = max([0, *made_here])
    seen = [f"{name} ran {ran} times in this trace"] if ran > 1 else []
    seen += [f"jax.jit was called {times} times here"] if times > 1 else []
    return rejit_in_loop.finding(
        f"{made} is created again {how_often}, and jax.jit recompiles it each time: JAX compares functions by identity",
        at=(function, span),
        evidence="; ".join(seen),
        # One call costs nothing extra, and a trace doesn't show whether there are more.
        severity=None if loop is not None or ran > 1 else "note",
        fix=_cure(function, what, loop),
    )


def _cure(function: FunctionSource, what: ast.AST, loop: ast.AST | None) -> str:
    where = "above the loop" if loop is not None else f"outside of {function.executed.code.co_name}"
    if isinstance(what, ast.FunctionDef):
        return f"move `def {what.name}` with its jax.jit {where}, and pass it what changes as arguments"
    return f"jitted = jax.jit({function.short(what)}) once, {where}, and call jitted; pass it what changes as arguments"


def _turns(loop: Any) -> Iterator[ast.AST]:
    if isinstance(loop, (ast.For, ast.While)):
        yield from loop.body
    elif isinstance(loop, ast.DictComp):
        yield from (loop.key, loop.value)
    else:
        yield loop.elt


def _new_each_time(function: FunctionSource, node: ast.expr, defined: dict[str, Any], loop: ast.AST | None) -> str:
    """Return, in words, the function that is new on each evaluation; "" if it stays the same."""
    match node:
        case ast.Lambda():
            return "this lambda"
        case ast.Call():
            callee = function.value(node.func)
            if callee is partial:
                return "this partial()"
            name = callee.__name__ if isinstance(callee, FunctionType) else ""
            if name in _DERIVING and str(callee.__module__).startswith("jax."):
                return f"this jax.{name}(…)"
            return ""
        case ast.Attribute():  # of an object that the trace was given or made: a bound method is new at each look
            unknown = function.value(node.value) is ... and isinstance(node.value, ast.Name)
            bound = type(function.value(node)) is MethodType
            return f"the bound method {function.source(node)}" if unknown or bound else ""
        case ast.Name() if node.id in defined:
            inside = loop is None or Span.of(defined[node.id]) in Span.of(loop)
            return f"the function {node.id}" if inside else ""
        case _:
            return ""


def _in_ledger(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for recompiles in the ledger whose reason is a new function object."""
    by_place: dict[tuple[str, int], list[Any]] = {}
    for event in evidence.events:
        place = event.call_site
        if event.kind == "compile" and event.reason.kind == "function" and place is not None:
            by_place.setdefault((place.file, place.line), []).append(event)
    for (file, line), events in by_place.items():
        if is_library_file(file):
            continue
        place, name = events[0].call_site, events[0].function
        seconds = sum(event.seconds for event in events)
        yield rejit_in_loop.finding(
            f"{name} was compiled again {len(events)} times here because it was another function object each time",
            file=file,
            line=line,
            label=place.label,
            text=place.text,
            evidence=f"{len(events)} compiles took {seconds:.2g} s",
            fix=events[0].reason.fix or f"call jax.jit({name}) once and keep what it returns",
        )
