"""Rules about functions given to jax.jit: new functions each time, and methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from itertools import islice
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy as np

from explorer._jax.arguments import Array, is_jitted, static_arguments
from explorer.capture.safe_reading import (
    attributes,
    class_variables,
    init_parameters,
    is_a,
    is_exactly,
    is_tracer,
    kind_of,
    mro,
)
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.stage import is_library_file
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, decorator, hash_of, is_jit_call, short_name, source_of
from explorer.pitfalls.rule import rule

_LOOPS = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_DERIVING = ("grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "checkpoint", "remat", "linearize")


@rule("rejit-in-loop", "EX022", "warning", "jit-compilation.html#jit-and-caching", drivers=True)
def rejit_in_loop(evidence: Evidence) -> Iterator[Finding]:
    """jax.jit of a new lambda, partial() or bound method compiles again each time.

    JAX looks up compiled programs by the identity of the function, and each of these is a new object.
    """
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
                yield _again(evidence, function, Span.of(node), node.args[0], made, loop)
    for node in defined.values():
        wraps, loop = decorator(function, node), _loop_around(function, node)
        if wraps is not None and (loop is not None or function.executed.count > 1):
            yield _again(evidence, function, Span.of(wraps), node, f"the function {node.name}", loop)


def _loop_around(function: FunctionSource, node: ast.AST) -> ast.AST | None:
    span = Span.of(node)
    loops = (loop for loop in function.walk(*_LOOPS) if any(span in Span.of(part) for part in _turns(loop)))
    return next(loops, None)


def _again(
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
        fix=_hoisted(function, what, loop),
    )


def _hoisted(function: FunctionSource, what: ast.AST, loop: ast.AST | None) -> str:
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


@rule("jit-on-method", "EX023", "warning", "faq.html#how-to-use-jit-with-methods", passive=True)
def jit_on_method(evidence: Evidence) -> Iterator[Finding]:
    """jax.jit on a method makes `self` an argument: the call fails, or `self` is kept alive and hashed by identity.

    As a traced argument `self` must be a pytree. As a static argument it must have a hash by value.
    """
    seen: set[int] = set()
    for function, jitted, owner in _methods(evidence):
        if id(jitted) not in seen:
            seen.add(id(jitted))
            yield from _judged(function, jitted, owner)


def _methods(evidence: Evidence) -> Iterator[tuple[FunctionSource | None, Any, Any]]:
    target = evidence.target
    if type(target) is MethodType and is_jitted(target.__func__):
        yield source_of(getattr(target.__func__, "__wrapped__", None)), target.__func__, target.__self__
    for function in evidence.functions:
        owner, name = function.executed.owner, function.executed.code.co_name
        classes = map(class_variables, mro(owner)) if owner is not None else ()
        jitted = next((variables[name] for variables in classes if name in variables), None)
        if jitted is not None and is_jitted(jitted):
            yield function, jitted, owner


def _judged(function: FunctionSource | None, jitted: Any, owner: Any) -> Iterator[Finding]:
    if is_a(owner, type) or is_tracer(owner):
        return
    kind, name, span = short_name(kind_of(owner)), "the method", None
    if function is not None:
        name, span = function.executed.code.co_name, Span.of(decorator(function) or function.node)
    numbers, _ = static_arguments(jitted)
    if 0 in numbers:
        if hash_of(kind_of(owner)) in (None, object.__hash__):
            yield _static(function, span, name, kind, owner)
    elif jax.tree_util.all_leaves([owner]):
        yield jit_on_method.finding(
            f"jax.jit takes `self` of {kind}.{name} for an argument to be traced, and a {kind} is no "
            "array: every call fails",
            at=(function, span),
            evidence=f"{kind} is no pytree",
            fix=_registered(kind, owner, name),
            severity="error",
        )


def _static(function: FunctionSource | None, span: Span | None, name: str, kind: str, owner: Any) -> Finding:
    if hash_of(kind_of(owner)) is None:
        message = f"`self` of {kind}.{name} is static, and a {kind} has no hash: every call fails"
        evidence, severity = f"{kind} defines __eq__ and no __hash__", "error"
    else:
        message = (
            f"`self` of {kind}.{name} is static and hashed by identity: each new {kind} recompiles "
            "and is kept alive by JAX's cache, and later changes to it have no effect"
        )
        evidence, severity = f"{kind} hashes by identity (object.__hash__)", "warning"
    fields = ", ".join(f"self.{field}" for field in islice(attributes(owner), 3))
    return jit_on_method.finding(
        message,
        at=(function, span),
        evidence=evidence + (f"; it holds {fields}" if fields else ""),
        fix=f"plain @jax.jit, and {_registered(kind, owner, name)}",
        severity=severity,
    )


def _registered(kind: str, owner: Any, method: str) -> str:
    """Return how to make an object's arrays arguments: by its class, if the class can be rebuilt from its fields."""
    fields = attributes(owner)
    data = [name for name, value in fields.items() if _is_data(value)]
    if fields and set(fields) == init_parameters(owner):
        meta = [name for name in fields if name not in data]
        return (
            f"jax.tree_util.register_dataclass({kind}, data_fields={data}, meta_fields={meta}), "
            "so that its arrays are arguments"
        )
    arrays = data or ["arrays"]
    return (
        f"a jitted function of the arrays it needs: def {method}({', '.join(arrays)}, …), "
        f"called with {', '.join(f'self.{name}' for name in arrays)}"
    )


def _is_data(value: Any) -> bool:
    leaves = jax.tree_util.tree_leaves(value) if is_exactly(value, list, tuple, dict) else [value]
    return bool(leaves) and all(is_a(leaf, jax.Array, np.ndarray, float, complex, Array) for leaf in leaves)
