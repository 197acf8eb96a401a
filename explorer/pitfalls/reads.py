"""What the functions that ran read from outside: globals, closures, attributes; and who may change it later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from types import FunctionType, MethodType
from typing import Any

import jax
import numpy as np

from explorer.capture.safe_reading import is_a, is_exactly, is_plain, is_tracer
from explorer.capture.sources import Span
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.reach import named_in
from explorer.pitfalls.state import Snapshot, same


@dataclass(frozen=True, repr=False)
class Read:
    """A value from outside that a function read while it was traced.

    Args:
        function: That read it.
        node: The name, or the attribute or item of a name.
        path: As the snapshots around the trace name it; its text where they don't.
        value: What it was.
        holder: The object or container whose attribute or item it is; None for a name.
    """

    function: FunctionSource
    node: ast.expr
    path: str
    value: Any
    holder: Any = None

    @property
    def span(self) -> Span:
        return Span.of(self.node)

    @property
    def text(self) -> str:
        return ast.unparse(self.node)

    @property
    def root(self) -> str:
        """The name that it starts with."""
        node = self.node
        while isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        return node.id if isinstance(node, ast.Name) else ""


def reads(evidence: Evidence) -> Iterator[Read]:
    """Each value once, where it was first read."""
    seen: set[str] = set()
    for function in evidence.functions:
        for node in function.walk(ast.Name, ast.Attribute, ast.Subscript):
            if not isinstance(node.ctx, ast.Load) or _is_inner(function, node):
                continue
            data = _innermost_data(function, node)
            if data is None or not function.reached(data[0]):
                continue
            read = _read(function, *data, evidence.before)
            if read is not None and read.path not in seen and not _is_state(read, evidence):
                seen.add(read.path)
                yield read


def _is_state(read: Read, evidence: Evidence) -> bool:
    return bool({id(read.value), id(read.holder)} & evidence.captured)


def _is_inner(function: FunctionSource, node: ast.AST) -> bool:
    """Whether more of the same path follows."""
    outer = function.parents.get(node)
    return isinstance(outer, (ast.Attribute, ast.Subscript)) and outer.value is node and isinstance(outer.ctx, ast.Load)


def _innermost_data(function: FunctionSource, node: ast.expr) -> tuple[ast.expr, Any] | None:
    """The longest path to data: of `scale.sum()` that is `scale`."""
    root: ast.AST = node
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    while isinstance(root, ast.Name):
        value = function.value(node)
        if value is not ... and not is_exactly(value, FunctionType, MethodType):
            return (node, value) if is_data(value) else None
        if not isinstance(node, (ast.Attribute, ast.Subscript)):
            return None
        node = node.value
    return None


def _read(function: FunctionSource, node: ast.expr, value: Any, before: Snapshot) -> Read | None:
    """What was read, as it was before the trace, not as it is when this is asked; None if the trace itself made it."""
    if isinstance(node, ast.Name):
        is_free = node.id in function.executed.free
        own = named_in(node.id, str(function.executed.globals.get("__name__")))
        path = own if not is_free and own in before.values else node.id
        was = before.values.get(path, ...)
        return None if was is ... or (is_free and not same(was, value)) else Read(function, node, path, was)
    assert isinstance(node, (ast.Attribute, ast.Subscript))
    holder = function.value(node.value)
    path = before.path_of(holder) + _own(node) if before.path_of(holder) else ast.unparse(node)
    if path not in before.values and not before.path_of(holder):
        return None
    return Read(function, node, path, before.values.get(path, value), holder)


def _own(node: ast.Attribute | ast.Subscript) -> str:
    """How the path of an attribute or item goes on from what holds it."""
    if isinstance(node, ast.Attribute):
        return f".{node.attr}"
    return f"[{node.slice.value!r}]" if isinstance(node.slice, ast.Constant) else ""


def is_data(value: Any) -> bool:
    """Whether a value goes into a program as numbers, or decides what is in it: not functions, classes or modules."""
    if is_a(value, np.generic, np.ndarray, jax.Array):
        return not is_tracer(value)
    return value is not None and (is_plain(value) or is_exactly(value, list, dict, set))


def holds_data(value: Any, depth: int = 0) -> bool:
    """Whether a list or dict has something in it that goes into a program: no registry of functions."""
    if not is_exactly(value, list, dict):
        return is_data(value)
    items: Iterator[Any] = iter(value.values() if is_exactly(value, dict) else value)
    return depth < 4 and any(holds_data(item, depth + 1) for item in islice(items, 8))


def is_constant(name: str) -> bool:
    """Whether its author calls it a constant."""
    return name.isupper() or (name.startswith("__") and name.endswith("__"))
