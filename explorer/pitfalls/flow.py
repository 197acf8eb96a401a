"""Which expressions of a function have values that are traced, told from its text and from what its names stood for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.pitfalls.evidence import Evidence
    from explorer.pitfalls.function_source import FunctionSource

__all__ = ["listed", "traced_in", "traced_names"]

# What is known of an array while it is traced, and so isn't traced itself.
_KNOWN = frozenset(
    ("shape", "ndim", "dtype", "size", "itemsize", "nbytes", "aval", "weak_type", "sharding", "__class__", "__name__")
)
_ASKING = frozenset[str]().union(
    ("len", "type", "isinstance", "issubclass", "id", "hasattr", "callable", "shape", "ndim", "size"),
    ("result_type", "typeof", "structure", "tree_structure", "eval_shape", "issubdtype"),
    ("iscomplexobj", "isrealobj", "finfo"),
)


def traced_in(node: ast.AST, names: Mapping[str, str]) -> list[str]:
    """The names in an expression whose traced values its value is made of, each once."""
    return list(dict.fromkeys(name for name in _names(node) if name in names))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif not _is_known(node):
        for part in ast.iter_child_nodes(node):
            yield from _names(part)


def _is_known(node: ast.AST) -> bool:
    """Whether a value isn't traced though what it is asked of may be."""
    match node:
        case ast.Attribute(attr=name):
            return name in _KNOWN
        case ast.Call(func=called):
            return _last(called) in _ASKING
        case ast.Compare(ops=operators):
            return all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in operators)
        case _:
            return isinstance(node, ast.Lambda)


def _last(function: ast.AST) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def traced_names(evidence: Evidence, function: FunctionSource) -> dict[str, str]:
    """A function's own names that stood for traced values, with their types where those were seen.

    What was seen: at its calls. What is told by its text: names given what operators and JAX make of traced values.
    """
    codes = {function.executed.code, *(one.code for one in function.inner)}
    recording = evidence.recording
    found: dict[str, str] = dict(function.executed.traced)
    for call in recording.calls if recording is not None else ():
        if call.code in codes:
            found |= call.traced
    assigned = [node for node in function.walk(ast.Assign, ast.AugAssign, ast.AnnAssign) if node.value is not None]
    for _ in range(2):  # the second time for loops
        for node in assigned:
            if _computes(function, node.value, found):
                for target in getattr(node, "targets", None) or [node.target]:
                    found |= {name: "" for name in _stored(target) if name not in found}
    return found


def _computes(function: FunctionSource, node: ast.expr, names: Mapping[str, str]) -> bool:
    """Whether a value is certainly traced: made of traced ones by operators, indexing and JAX's functions."""
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.BinOp(left=left, right=right):
            return any(_computes(function, side, names) for side in (left, right))
        case ast.UnaryOp(operand=operand) if not isinstance(node.op, ast.Not):
            return _computes(function, operand, names)
        case ast.Compare(left=left, comparators=others) if all(isinstance(op, _ORDER) for op in node.ops):
            return any(_computes(function, side, names) for side in (left, *others))
        case ast.Subscript(value=value):
            return _computes(function, value, names)
        case ast.Call(func=called, args=arguments):
            is_jax = function.callee(node).startswith(("jax.", "jaxlib.")) and _last(called) not in _ASKING
            return is_jax and any(_computes(function, argument, names) for argument in arguments)
        case _:
            return False


_ORDER = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def _stored(target: ast.AST) -> Iterator[str]:
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, (ast.Tuple, ast.List)):
        for part in target.elts:
            yield from _stored(part)


def listed(names: Mapping[str, str], some: list[str]) -> str:
    """`x, a traced float32[3], and y`."""
    told = [f"{name}, a traced {names[name]}" if names.get(name) else name for name in some]
    return " and ".join(told) if len(told) < 3 else "; ".join(told[:-1]) + f"; and {told[-1]}"
