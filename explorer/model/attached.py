"""Methods that a value declares and another room answers.

A value knows nothing of who analyses, writes or shows it, and still a user asks the value: `graph.where(query)`,
`capture.to_html(path)`. So the value declares the method, with its signature and documentation and no body, and
`explorer/attachments.py`, the one place that knows both sides, names the function that is called with the same
arguments:

    class Graph:
        @attached
        def where(self, query: str) -> tuple[Node, ...]:
            '''The nodes that a query finds, in program order.'''
            ...

    attach({"Graph.where": "explorer.analysis.query:where"})

The room behind a method is loaded when the method is called first, so that a script pays for what it uses. For a value
computed once, put `@cached_property` above `@attached`; for a class method, `@classmethod`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from importlib import import_module
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_TARGETS: dict[str, str] = {}


def attach(targets: Mapping[str, str]) -> None:
    """Name the functions behind declared methods.

    Args:
        targets: By the method's qualified name (`Graph.where`), `module:function`.
    """
    _TARGETS.update(targets)


def attached(declaration: Callable[P, R]) -> Callable[P, R]:
    """A method that calls the function attached to it; its signature and documentation are those of `declaration`."""
    implementation: list[Callable[P, R]] = []  # of one, once the room behind it is loaded

    @wraps(declaration)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        if not implementation:
            module, _, function = _TARGETS[declaration.__qualname__].partition(":")
            implementation.append(getattr(import_module(module), function))
        return implementation[0](*args, **kwargs)

    return call
