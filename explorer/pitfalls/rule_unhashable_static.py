"""Static arguments: JAX looks up programs by their hash, which must exist and not change."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import numpy as np

from explorer._jax.arguments import Array, static_arguments
from explorer.capture.safe_reading import attributes, class_variables, init_parameters, is_a, is_users_class, kind_of
from explorer.capture.safe_reading import is_plain as is_plain_value
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.text import with_article
from explorer.pitfalls.evidence import Evidence, parameter_location
from explorer.pitfalls.function_source import CallArgument, FunctionSource, decorator, hash_of, short_name, source_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.state import exact_items


@rule("unhashable-static", "EX021", "error", "jit-compilation.html#marking-arguments-as-static", passive=True)
def unhashable_static(evidence: Evidence) -> Iterator[Finding]:
    """A static argument needs a hash by value: without a hash the call fails, and each new object with a hash by
    identity compiles again.
    """
    for argument in evidence.call_arguments:
        if argument.static and argument.name != "self":  # `jit-on-method` reports it
            yield from _passed(evidence, argument)
    yield from _kept(evidence)
    for function in evidence.functions:
        for call, jitted in function.jitted.items():
            yield from _called(function, call, jitted)


def _passed(evidence: Evidence, argument: CallArgument) -> Iterator[Finding]:
    function = source_of(evidence.function)
    # Prefer the decorator, which declares static_argnums.
    node = None if function is None else decorator(function)
    span = Span.of(node) if node is not None else None if function is None else function.parameter_span(argument.name)
    what = f"the static argument `{argument.name}` of {evidence.name}"
    if (bad := _unhashable(argument.value, argument.name)) is not None:
        path, kind = bad
        where = "" if path == argument.name else f" (`{path}`)"
        yield unhashable_static.finding(
            f"{what} is {with_article(kind)}{where}, which has no hash: every call fails",
            at=(function, span),
            evidence=f"`{path}` is {with_article(kind)}",
            fix=_hashable(argument, path, kind),
        )
    elif _by_identity(kind_of(argument.value)):
        kind = short_name(kind_of(argument.value))
        yield unhashable_static.finding(
            f"{what} is hashed by identity: each new {kind} recompiles, and changes to this one have no effect",
            at=(function, span),
            evidence=f"{kind} hashes by identity (object.__hash__)",
            fix=_by_value(argument.value),
            severity="warning",
        )


def _kept(evidence: Evidence) -> Iterator[Finding]:
    """Yield findings for arrays in static fields: with another object JAX compares them, which fails."""
    reported: set[type] = set()
    for kind, data in evidence.tree_nodes():
        # Not `in`: a metaclass may have an `==` of its own.
        if any(kind is one for one in _WITHOUT_FIELDS):
            continue
        array = None if kind in reported else next(_arrays(data), None)
        if array is not None:
            reported.add(kind)
            held = ((argument.name, argument.value) for argument in evidence.call_arguments if not argument.static)
            owner = short_name(kind)
            path = next(filter(None, (_path_to(array, value, name) for name, value in held)), f"a field of {owner}")
            yield unhashable_static.finding(
                f"`{path}` is an array, and {owner} keeps it as a static field: a call with another {owner} fails, "
                "since JAX has to compare the two",
                evidence=f"{owner} keeps it as static data, not as a leaf of the arguments",
                fix=f"have `{path}` traced: its field without pytree_node=False, or static=True; "
                "or keep a tuple of its numbers",
                **parameter_location(evidence, path),
            )


_WITHOUT_FIELDS = (dict, list, tuple)  # nodes of a tree that keep nothing but their keys, which have a hash


def _arrays(data: Any, depth: int = 0) -> Iterator[Any]:
    if is_a(data, jax.Array, Array, np.ndarray):
        yield data
    elif depth < 4:
        for part in exact_items(data) or ():
            yield from _arrays(part, depth + 1)


def _path_to(array: Any, value: Any, path: str, depth: int = 0) -> str:
    if value is array:
        return path
    if depth > 4 or is_a(value, jax.Array, np.ndarray):
        return ""
    items: list[tuple[str, Any]] = [(f".{name}", held) for name, held in attributes(value).items()]
    if kind_of(value) is dict:
        items = [(f"[{name!r}]", held) for name, held in value.items() if type(name) is str]
    elif kind_of(value) in (tuple, list):
        items = [(f"[{at}]", held) for at, held in enumerate(value[:100])]
    return next(filter(None, (_path_to(array, held, path + step, depth + 1) for step, held in items)), "")


def _called(function: FunctionSource, call: ast.Call, target: Any) -> Iterator[Finding]:
    for node in _static_nodes(call, target):
        callee, source, kind = function.source(call.func), function.source(node), _display(function, node)
        store = _changed_after(function, call, node.id) if isinstance(node, ast.Name) and not kind else None
        if kind in _FIXES:
            yield unhashable_static.finding(
                f"`{source}` is given to {callee} as a static argument, and {with_article(kind)} has no hash: "
                "the call fails",
                at=(function, node),
                evidence=f"{with_article(kind)} has no hash",
                fix=_FIXES[kind].format(source),
            )
        elif kind:
            yield unhashable_static.finding(
                f"`{source}` is created for each call of {callee}, which recompiles each time: "
                f"{with_article(kind)} is hashed by identity",
                at=(function, node),
                evidence=f"a new {kind} in each call",
                fix=f"make it once, outside of {function.executed.code.co_name}, and give {callee} that one",
                severity="warning",
            )
        elif store is not None:
            yield unhashable_static.finding(
                f"`{source}` is changed here after {callee} was compiled with it as a static argument: "
                f"{callee} keeps using the old value",
                at=(function, store),
                evidence=f"{callee} was called with it in line {call.lineno}",
                fix=f"a new object instead of {source}: for a dataclass, dataclasses.replace makes one",
                severity="warning",
            )


def _static_nodes(call: ast.Call, target: Any) -> list[ast.expr]:
    numbers, names = static_arguments(target)
    positional = [node for i, node in enumerate(call.args) if i in numbers]
    return positional + [keyword.value for keyword in call.keywords if keyword.arg in names]


_FIXES = {
    "list": "tuple({})",
    "dict": "tuple(sorted({}.items())), and dict(…) of the argument inside the function",
    "set": "frozenset({})",
    "array": "take it out of static_argnums: {} is an array, which is traced",
}


_DISPLAYS: dict[type[ast.AST], str] = {
    **dict.fromkeys((ast.List, ast.ListComp), "list"),
    **dict.fromkeys((ast.Dict, ast.DictComp), "dict"),
    **dict.fromkeys((ast.Set, ast.SetComp), "set"),
    ast.Lambda: "lambda",
}


def _display(function: FunctionSource, node: ast.expr) -> str:
    """Return the class name of a new object that an expression makes; "" for one with a hash by value, or unknown."""
    callee: Any = function.value(node.func) if isinstance(node, ast.Call) else None
    is_builtin = any(callee is kind for kind in (partial, list, dict, set))
    if is_builtin or (is_a(callee, type) and _by_identity(callee)):
        return short_name(callee)
    return _DISPLAYS.get(type(node), "")


def _changed_after(function: FunctionSource, call: ast.Call, name: str) -> ast.AST | None:
    for node in function.walk(ast.Attribute, ast.Subscript, ast.Name):
        if node.lineno <= call.lineno or not isinstance(node.ctx, ast.Store):
            continue
        if isinstance(node, ast.Name):
            if node.id == name:
                return None
        elif isinstance(node.value, ast.Name) and node.value.id == name and _calls_again(function, call, node):
            return node
    return None


def _calls_again(function: FunctionSource, call: ast.Call, after: ast.AST) -> bool:
    """Return True if the same function is called again below, or in the next turn of a loop around both."""
    callee = function.source(call.func)
    line: int = getattr(after, "lineno", 0)
    calls, loops = function.calls, function.walk(ast.For, ast.While)
    return any(later.lineno > line and function.source(later.func) == callee for later in calls) or any(
        loop.lineno < call.lineno <= line <= loop.end_lineno for loop in loops
    )


def _unhashable(value: Any, path: str, depth: int = 0) -> tuple[str, str] | None:
    """Return (path, class name) of the first part without a hash, or None. Classes decide: nothing is hashed."""
    kind = kind_of(value)
    if is_a(value, jax.Array, Array, np.ndarray):
        return path, "array"
    if hash_of(kind) is None:
        return path, short_name(kind)
    parts = _hashed_parts(value, path).items() if depth < 4 else ()
    return next(filter(None, (_unhashable(part, inner, depth + 1) for inner, part in parts)), None)


def _hashed_parts(value: Any, path: str) -> dict[str, Any]:
    """Return the parts that the hash of a tuple or a dataclass is computed from, by path."""
    variables = class_variables(kind_of(value))
    if kind_of(value) is tuple:
        return {f"{path}[{i}]": item for i, item in enumerate(value[:100])}
    params = variables.get("__dataclass_params__")
    if not (getattr(params, "frozen", False) or getattr(params, "unsafe_hash", False)):
        return {}
    fields: dict[str, Any] = variables["__dataclass_fields__"]
    hashed = {name for name, field in fields.items() if field.compare and field.hash is not False}
    return {f"{path}.{name}": item for name, item in attributes(value).items() if name in hashed}


def _by_identity(kind: type) -> bool:
    return hash_of(kind) is object.__hash__ and is_users_class(kind)


def _hashable(argument: CallArgument, path: str, kind: str) -> str:
    name = argument.name
    if path != name:
        if kind == "array":
            return f"exclude `{path}` from the comparison, or pass it as a separate argument, which is traced"
        return f"make `{path}` a tuple" if kind == "list" else f"make `{path}` something with a hash"
    if kind == "array":
        return f"take `{name}` out of static_argnums: an array is traced"
    return f"at the call {name}={_FIXES[kind].format(name)}" if kind in _FIXES else _by_value(argument.value)


def _by_value(value: Any) -> str:
    """Return how to hash a class by value. A class without fields would make all objects equal."""
    kind, name = kind_of(value), short_name(kind_of(value))
    variables, fields = class_variables(kind), attributes(value)
    if "__dataclass_params__" in variables:
        return f"@dataclass(frozen=True) on class {name} hashes it by its fields"
    is_plain = fields and set(fields) == init_parameters(value) and all(map(is_plain_value, fields.values()))
    if is_plain and "__eq__" not in variables:
        written = "; ".join(f"{field}: {short_name(kind_of(held))}" for field, held in fields.items())
        return f"@dataclass(frozen=True) on class {name}, with the fields {written} instead of its __init__"
    return f"__eq__ and __hash__ in class {name}, both computed from the same fields, which must not change later"
