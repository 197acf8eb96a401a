"""The arguments of a traced function, array by array, and where each is written."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, MethodType
from typing import Any, cast

import jax

from explorer.capture.safe_reading import member
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource, source_of
from explorer.pitfalls.locations import span_location
from explorer.pitfalls.reach import reachable
from explorer.pitfalls.state import snapshot


def passed_values(evidence: Evidence) -> Iterator[tuple[str, Any]]:
    """What was passed, array by array, by path."""
    function = _called(evidence)
    if function is None:
        return
    try:
        bound = inspect.signature(function).bind(*evidence.args, **evidence.kwargs).arguments
        flat: list[tuple[str, list[tuple[Any, Any]]]] = [
            (name, cast(list[tuple[Any, Any]], jax.tree_util.tree_flatten_with_path(value)[0]))
            for name, value in bound.items()
        ]
    except Exception:  # arguments that don't fit, or a tree of the user's own that can't be taken apart
        return
    for name, leaves in flat:
        for path, leaf in leaves:
            yield name + jax.tree_util.keystr(path), leaf


def reachable_values(evidence: Evidence) -> dict[str, Any]:
    """What the function has by name besides its arguments, by path."""
    before = evidence.before if evidence.before.holders else snapshot(reachable(evidence.function))
    return before.values


def _called(evidence: Evidence) -> Any:
    """What Python calls: a function or a method with its object; None if that is neither. Asks the object nothing."""
    function: Any = evidence.function
    if type(function) is FunctionType:
        return function
    if type(function) is MethodType:
        return function if type(function.__func__) is FunctionType else None
    call = member(function, "__call__")
    return call if type(call) is MethodType and type(call.__func__) is FunctionType else None


def parameter_location(evidence: Evidence, path: str) -> dict[str, Any]:
    """Where an argument stands in the head of the function; its first line if the argument has no name there."""
    source = source_of_target(evidence)
    if source is None:
        return {}
    return span_location(source.file, source.parameter_span(path) or source.header)


def source_of_target(evidence: Evidence) -> FunctionSource | None:
    """The text of the function itself; of an object, that of its `__call__`."""
    return source_of(_called(evidence))
