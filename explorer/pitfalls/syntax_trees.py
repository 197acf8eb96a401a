"""What rules ask of the nodes of syntax trees."""

from __future__ import annotations

import ast
from typing import Any


def parameters_of(function: Any) -> list[ast.arg]:
    """The parameters of a `def` or `lambda`, those by name and `*args`, `**kwargs` last."""
    arguments: ast.arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [parameter for parameter in (arguments.vararg, arguments.kwarg) if parameter is not None]


def first_line(node: Any) -> int:
    """Where a statement starts: a function or class with its first decorator."""
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])


def last_name(node: ast.AST) -> str:
    """`sum` of `jnp.sum`, and of `sum`; empty for what is neither a name nor an attribute."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def root_of(path: str) -> str:
    """`state` of `state['step']`, `self` of `self.weights`."""
    return path.partition("[")[0].partition(".")[0]
