"""Which expressions of a function have traced values, by its text and by what its names stood for."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import FunctionSource
from explorer.pitfalls.syntax_trees import last_name

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
            return last_name(called) in _ASKING
        case ast.Compare(ops=operators):
            return all(isinstance(operator, (ast.Is, ast.IsNot)) for operator in operators)
        case _:
            return isinstance(node, ast.Lambda)


def traced_names(evidence: Evidence, function: FunctionSource) -> dict[str, str]:
    """A function's own names that stood for traced values, with their types where those were recorded.

    Recorded are those at its calls. The others follow from its text: names that are assigned what operators and JAX
    make of traced values.
    """
    codes = {executed.code for executed in (function.executed, *function.inner)}
    names: dict[str, str] = dict(function.executed.traced)
    for call in evidence.recording.calls if evidence.recording is not None else ():
        if call.code in codes:
            names |= call.traced
    assigned = [node for node in function.walk(ast.Assign, ast.AugAssign, ast.AnnAssign) if node.value is not None]
    # Two passes reach what one turn of a loop hands to the next; a chain over more turns is left out, not guessed.
    for _ in range(2):  # the second time for what a loop's turn reads of the one before
        for node in assigned:
            if _computes(function, node.value, names):
                targets = getattr(node, "targets", None) or [node.target]
                names = {name: "" for target in targets for name in _stored(target)} | names
    return names


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
            is_jax = function.callee(node).startswith(("jax.", "jaxlib.")) and last_name(called) not in _ASKING
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


def list_traced(names: Mapping[str, str], some: list[str]) -> str:
    """`x, a traced float32[3], and y`."""
    parts = [f"{name}, a traced {names[name]}" if names.get(name) else name for name in some]
    return " and ".join(parts) if len(parts) < 3 else "; ".join(parts[:-1]) + f"; and {parts[-1]}"
