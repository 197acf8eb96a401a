"""Iterators, generators and files that are gone through while a function is traced: later calls get no next item."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from explorer.capture.safe_reading import class_name, class_variables, kind_of, mro
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.syntax_trees import last_name

# What takes items from an iterator, by its place among the arguments: all of them for `zip`.
_TAKERS = frozenset(
    ("next", "zip", "enumerate", "map", "filter", "list", "tuple", "set", "dict", "sum", "max", "min", "sorted")
).union(("any", "all", "islice", "takewhile", "chain", "reduce", "deque"))


def check(evidence: Evidence) -> Iterator[Finding]:
    outside = {id(value) for value in evidence.before.values.values()}
    if evidence.recording is not None:
        outside |= {id(value) for value in evidence.recording.arguments_before.values.values()}
    for function in evidence.functions:
        for node, source in _gone_through(function):
            value = function.resolve(source)
            # One that was made in the trace is made anew in the next.
            if value is not ... and id(value) in outside and _is_iterator(value) and function.reached(source):
                yield _found(evidence, function, node, source, value)


def _gone_through(function: FunctionSource) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Each piece of the text that takes items, and what it takes them from."""
    for node in function.walk(ast.For, ast.AsyncFor):
        yield node.iter, node.iter
    for node in function.walk(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp):
        yield from ((part.iter, part.iter) for part in node.generators)
    for node in function.walk(ast.Call):
        match node.func:
            case ast.Attribute(attr="__next__", value=owner):
                yield node, owner
            case called if last_name(called) in _TAKERS:
                yield from ((node, argument) for argument in node.args)
            case _:
                continue
    for node in function.walk(ast.Starred, ast.YieldFrom):
        yield node, node.value


def _is_iterator(value: Any) -> bool:
    return any("__next__" in class_variables(base) for base in mro(value))


def _found(evidence: Evidence, function: FunctionSource, node: ast.AST, source: ast.expr, value: Any) -> Finding:
    name = function.source(source)
    is_next = isinstance(node, ast.Call) and last_name(node.func) in ("next", "__next__")
    took, passed = ("the next item", f"next({name})") if is_next else ("items", f"list({name})")
    return RULE.finding(
        f"`{function.source(node)}` takes {took} of {name} while {evidence.name} is traced: "
        f"calls after that get the same again, and {name} goes no further",
        function=function,
        span=Span.of(node),
        evidence=f"{name} is a {class_name(kind_of(value)).removeprefix('builtins.')} from outside of the trace",
        fix=f"take {'the item' if is_next else 'the items'} where {evidence.name} is called, and pass "
        f"{'it' if is_next else 'them'}: {evidence.name}(…, {passed}); the body of a compiled loop takes an "
        "array with an item for each turn",
    )


RULE = Rule(
    "iterator",
    "EX008",
    "warning",
    "An iterator that a compiled function goes through is gone through once, while it is traced.",
    "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#pure-functions",
    check,
)
