"""Objects that keep a random key, whose methods draw with it: each call gives the same numbers.

That is the point of a random function (a Brownian path, random features), and a mistake where fresh noise is wanted:
which of the two it is, the code doesn't say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from itertools import islice
from types import MethodType, ModuleType
from typing import Any, cast

import jax

from explorer.capture.safe_reading import attributes, class_name, is_a, is_exactly, is_plain, is_tracer, kind_of
from explorer.model.graph import Frame
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.locations import span_of

_DEEPEST = 4  # equinox keeps a bound method's object two attributes below it
_MOST = 64  # attributes or items of one container


def key_holder(evidence: Evidence, frames: Sequence[Frame]) -> str:
    """The class of an object that keeps a key and whose method one of some frames calls; empty if there is none.

    Args:
        frames: Of one stack, innermost first. The outermost is who calls: what it is a method of doesn't count, and
            none keeps the key if it hands one over.
    """
    for i, frame in reversed(list(enumerate(frames))):
        source, node = _call_at(evidence, frame)
        if source is None:
            continue
        is_outermost = i == len(frames) - 1
        if node is not None and is_outermost and _hands_key_over(evidence, source, node):
            return ""
        own = [] if is_outermost else [source.executed.owner]
        callees = [] if node is None else _receivers(evidence, source, node)
        holder = next((value for value in (*own, *callees) if _holds_key(value)), None)
        if holder is not None:
            owner = attributes(holder).get("__self__", holder)  # equinox has bound methods of its own
            return class_name(kind_of(owner)).rpartition(".")[2]
    return ""


def mapped_object(evidence: Evidence, frame: Frame) -> str:
    """The object of which a frame's call maps a method, as `path` in `jax.vmap(path.at)(times)`; empty for none.

    What it keeps isn't known: it is a local variable of a function that has returned.
    """
    source, node = _call_at(evidence, frame)
    match node:
        case ast.Call(func=ast.Call(args=[ast.Attribute(value=ast.Name() as owner), *_])) if source is not None:
            return owner.id if source.value(owner) is ... else ""
        case _:
            return ""


def _call_at(evidence: Evidence, frame: Frame) -> tuple[FunctionSource | None, ast.Call | None]:
    """The innermost of the user's functions that a frame's line is in, and the call there."""
    around = (
        function
        for function in evidence.functions
        if function.file == frame.file and function.node.lineno <= frame.line <= (function.node.end_lineno or 0)
    )
    source = max(around, key=lambda function: function.node.lineno, default=None)
    return source, source.call_at(span_of(frame)) if source is not None else None


def _hands_key_over(evidence: Evidence, source: FunctionSource, node: ast.Call) -> bool:
    """Whether an argument of a call is made of a key."""
    calls = [call for call, _, other in evidence.call_nodes() if other is node]
    types = {name: kind for call in calls for name, kind in call.traced.items()}
    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
    parts = [part for argument in arguments for part in ast.walk(argument)]
    return any(
        _is_key_type(types.get(part.id, "")) if isinstance(part, ast.Name) else _is_key(source.resolve(part))
        for part in parts
        if isinstance(part, (ast.Name, ast.Attribute))
    )


def _is_key_type(text: str) -> bool:
    return "key<" in text or text.endswith(("uint32[2]", "uint32[4]"))


def _receivers(evidence: Evidence, source: FunctionSource, node: ast.Call) -> list[Any]:
    """The object that a call is a method of, or calls itself, as far as it is known."""
    callee = source.resolve(node.func)
    if callee is not ... and not is_exactly(callee, MethodType):
        return [callee]
    recorded = [call.receiver for call, _, other in evidence.call_nodes() if other is node]
    # 3.11 doesn't see the object of a method that is behind a descriptor, as equinox's are.
    return [*recorded, source.resolve(getattr(node.func, "value", node.func))]


def _holds_key(value: Any, depth: int = 0) -> bool:
    if is_tracer(value) or is_a(value, jax.Array):
        return _is_key(value)
    if value is ... or is_plain(value) or is_a(value, ModuleType) or depth > _DEEPEST:
        return False
    return any(_holds_key(item, depth + 1) for item in islice(_inside(value), _MOST))


def _inside(value: Any) -> Iterable[Any]:
    if is_exactly(value, list, tuple):
        return cast(Iterable[Any], value)
    return list(cast(dict[Any, Any], value).values()) if type(value) is dict else attributes(value).values()


def _is_key(value: Any) -> bool:
    """Whether it is a random key, typed or raw, traced or not."""
    if not (is_tracer(value) or is_a(value, jax.Array)):
        return False
    dtype, shape = str(value.aval.dtype), value.aval.shape
    return dtype.startswith("key<") or (dtype == "uint32" and shape[-1:] in ((2,), (4,)))
