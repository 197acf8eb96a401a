"""Objects that keep a random key, whose methods draw with it: each call gives the same numbers.

That is the point of a random function (a Brownian path, random features), and a mistake where fresh noise is wanted:
which of the two it is, the code doesn't say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import ModuleType
from typing import Any, cast

import jax

from explorer.model.graph import Frame
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.locations import span_of
from explorer.pitfalls.safe import attributes, class_name, is_a, is_exactly, is_plain, is_tracer, kind_of

_DEEPEST = 4  # equinox keeps a bound method's object two attributes below it
_MOST = 64  # attributes or items of one container


def key_holder(evidence: Evidence, frames: Sequence[Frame]) -> str:
    """The class of an object that keeps a key and whose method one of some frames calls; empty if there is none.

    Args:
        frames: Of one stack, innermost first. What the outermost is a method of doesn't count: it is who calls.
    """
    for i, frame in enumerate(frames):
        source = _function_at(evidence, frame)
        if source is None:
            continue
        callees = list(_receivers(evidence, source, frame))
        own = [source.executed.owner] if i < len(frames) - 1 else []
        holder = next((value for value in (*callees, *own) if _holds_key(value)), None)
        if holder is not None:
            return class_name(kind_of(holder)).rpartition(".")[2]
    return ""


def mapped_object(evidence: Evidence, frame: Frame) -> str:
    """The object of which a frame's call maps a method, as `path` in `jax.vmap(path.at)(times)`; empty for none.

    What it keeps isn't known: it is a local variable of a function that has returned.
    """
    source = _function_at(evidence, frame)
    node = source.call_at(span_of(frame)) if source is not None else None
    match node:
        case ast.Call(func=ast.Call(args=[ast.Attribute(value=ast.Name() as owner), *_])) if source is not None:
            return owner.id if source.value(owner) is ... else ""
        case _:
            return ""


def _function_at(evidence: Evidence, frame: Frame) -> FunctionSource | None:
    """The innermost of the user's functions that a frame's line is in."""
    around = (
        function
        for function in evidence.functions
        if function.file == frame.file and function.node.lineno <= frame.line <= (function.node.end_lineno or 0)
    )
    return max(around, key=lambda function: function.node.lineno, default=None)


def _receivers(evidence: Evidence, source: FunctionSource, frame: Frame) -> Iterator[Any]:
    """The objects that a frame's call may be a method of, or calls themselves."""
    node = source.call_at(span_of(frame))
    if node is None:
        return
    yield from (
        call.receiver for call, function, other in evidence.call_nodes() if function is source and other is node
    )
    # 3.11 doesn't see the object of a method that is behind a descriptor, as equinox's are.
    yield source.resolve(getattr(node.func, "value", node.func))


def _holds_key(value: Any, depth: int = 0) -> bool:
    if is_tracer(value) or is_a(value, jax.Array):
        return _is_key(value.aval)
    if value is ... or is_plain(value) or is_a(value, ModuleType) or depth > _DEEPEST:
        return False
    return any(_holds_key(item, depth + 1) for item in islice(_inside(value), _MOST))


def _inside(value: Any) -> Iterable[Any]:
    if is_exactly(value, list, tuple):
        return cast(Iterable[Any], value)
    return list(cast(dict[Any, Any], value).values()) if type(value) is dict else attributes(value).values()


def _is_key(aval: Any) -> bool:
    """Whether a type is that of a random key, typed or raw."""
    name = str(aval.dtype)
    return name.startswith("key<") or (name == "uint32" and aval.shape[-1:] in ((2,), (4,)))
