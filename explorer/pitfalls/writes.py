"""Who wrote what a trace left changed: the call of a container's method, or the assignment."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from explorer.capture.safe_reading import is_a
from explorer.capture.sources import Span
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.state import Change

MUTATORS = frozenset[str]().union(
    ("append", "extend", "insert", "pop", "remove", "clear", "sort", "reverse", "update"),
    ("setdefault", "popitem", "add", "discard", "appendleft", "popleft", "extendleft", "rotate"),
    ("fill", "put", "resize", "itemset", "partition", "subtract", "move_to_end", "difference_update"),
    ("intersection_update", "symmetric_difference_update", "__setitem__", "__delitem__"),
    ("__setattr__", "__iadd__"),
)


@dataclass(frozen=True, repr=False)
class Write:
    """A piece of the user's text that changed something outside of its function.

    Args:
        function: That it stands in.
        node: The call or the assignment.
        span: Of it.
        count: How often it ran; 0 where that isn't known.
    """

    function: FunctionSource
    node: ast.AST
    span: Span
    count: int = 0

    @property
    def text(self) -> str:
        """Its first line."""
        return self.function.source(self.node).split("\n")[0].strip()


def write_of(evidence: Evidence, change: Change) -> Write | None:
    """What in the functions that ran made a change; None where that can't be told."""
    return next(_calls(evidence, change), None) or _assignment(evidence, change)


def _calls(evidence: Evidence, change: Change) -> Iterator[Write]:
    for call, function, node in evidence.call_nodes():
        is_own = call.receiver is change.holder is not None and call.callee.rpartition(".")[2] in MUTATORS
        if is_own or (call.callee in ("builtins.setattr", "builtins.delattr") and _sets(function, node, change)):
            yield Write(function, node, call.span, call.count)


def _sets(function: FunctionSource, node: ast.Call, change: Change) -> bool:
    """Whether `setattr(holder, "name", …)` is what made a change."""
    match node.args:
        case [holder, name, *_] if change.holder is not None and function.resolve(holder) is change.holder:
            return not isinstance(name, ast.Constant) or change.path == f"{change.holder_path}.{name.value}"
        case _:
            return False


def _assignment(evidence: Evidence, change: Change) -> Write | None:
    """The assignment to just that; else the only one that could be to it."""
    possible: list[Write] = []
    # A constructor's come last: it ran when the object was made, which was mostly before what changed was looked at.
    for function in sorted(evidence.functions, key=lambda function: function.executed.code.co_name == "__init__"):
        for node in function.walk(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.For, ast.NamedExpr):
            for target in targets_of(node):
                fits = _fits(function, target, node, change)
                if fits is not False and function.reached(node):
                    write = Write(function, node, Span.of(node))
                    if fits:
                        return write
                    possible.append(write)
    return possible[0] if len(possible) == 1 else None


def targets_of(node: Any) -> Iterator[ast.expr]:
    """What an assignment, a `del` or a `for` sets, those in tuples one by one."""
    waiting: list[ast.expr] = list(getattr(node, "targets", None) or [node.target])
    while waiting:
        target = waiting.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            waiting += target.elts
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        else:
            yield target


def _fits(function: FunctionSource, target: ast.expr, node: ast.AST, change: Change) -> bool | None:
    """Whether an assignment made a change; None where that can't be excluded."""
    if isinstance(target, ast.Name) and target.id in function.declared:
        return change.path == target.id
    if change.holder is None:
        return False
    # `log += […]` changes a list in place.
    if isinstance(node, ast.AugAssign) and function.resolve(target) is change.holder:
        return True
    match target:
        case ast.Attribute(attr=name) if change.path != f"{change.holder_path}.{name}":
            return False
        case ast.Subscript(slice=key) if not _may_be_at(key, change):
            return False
        case ast.Attribute(value=owner) | ast.Subscript(value=owner):
            holder = function.resolve(owner)
            return None if holder is ... else holder is change.holder
        case _:
            return False


def _may_be_at(key: ast.expr, change: Change) -> bool:
    """Whether `holder[key]` may be where a change was."""
    if change.path.startswith(f"{change.holder_path}."):
        return False
    if isinstance(key, ast.Constant) and is_a(change.holder, dict):
        return change.path == f"{change.holder_path}[{key.value!r}]"
    return True


def holds_tracer(evidence: Evidence, value: Any) -> bool:
    """Whether a value is traced, or a list, tuple or dict with such a value."""
    if evidence.is_traced(value):
        return True
    if is_a(value, list, tuple):
        return any(map(evidence.is_traced, list[Any].__iter__(value) if is_a(value, list) else tuple(value)))
    return is_a(value, dict) and any(map(evidence.is_traced, dict[Any, Any].values(value)))
