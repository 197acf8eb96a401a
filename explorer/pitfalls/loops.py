"""The Python loops of a text: which one a piece of it runs in, what it goes through, and what it carries on."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from explorer.capture.sources import Span, parse, read_source
from explorer.pitfalls.syntax_trees import last_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop in Python.

    Args:
        node: `for`, `while`, or a comprehension.
        body: What runs in each turn.
        header: What a person points at.
        function: The span of the `def` that it stands in; None outside of any.
    """

    node: ast.AST
    body: tuple[Span, ...]
    header: Span
    function: Span | None

    @property
    def is_comprehension(self) -> bool:
        return isinstance(self.node, _COMPREHENSIONS)

    @property
    def source(self) -> str:
        """What it goes through; empty for `while`."""
        if isinstance(self.node, ast.For):
            return ast.unparse(self.node.iter)
        return ast.unparse(self.node.generators[0].iter) if isinstance(self.node, _COMPREHENSIONS) else ""

    @property
    def target(self) -> str:
        if isinstance(self.node, ast.For):
            return ast.unparse(self.node.target)
        return ast.unparse(self.node.generators[0].target) if isinstance(self.node, _COMPREHENSIONS) else ""

    @property
    def range_arguments(self) -> list[str]:
        """What is given to the `range()` that it goes through; empty for another loop."""
        match getattr(self.node, "iter", None):
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                return list(map(ast.unparse, args))
            case _:
                return []

    @property
    def collected(self) -> list[str]:
        """The lists that each turn appends to."""
        body = self.node.body if isinstance(self.node, (ast.For, ast.While)) else []
        calls = (part for statement in body for part in ast.walk(statement) if isinstance(part, ast.Call))
        return list(
            dict.fromkeys(
                call.func.value.id
                for call in calls
                if isinstance(call.func, ast.Attribute) and call.func.attr == "append"
                if isinstance(call.func.value, ast.Name)
            )
        )

    @property
    def carried(self) -> list[str]:
        """The names that a turn reads before it assigns them: what one turn hands to the next."""
        if not isinstance(self.node, (ast.For, ast.While)):
            return []
        parts = [part for statement in self.node.body for part in ast.walk(statement)]
        names = sorted((part for part in parts if isinstance(part, ast.Name)), key=_in_order)
        reads_first: dict[str, bool] = {}
        for name in names:
            reads_first.setdefault(name.id, isinstance(name.ctx, ast.Load))
        # `x += 1` reads what it stores, though its only name is the one that is stored.
        changed = {last_name(part.target) for part in parts if isinstance(part, ast.AugAssign)}
        stored = dict.fromkeys(
            part.id for part in parts if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        )
        return [name for name in stored if name in changed or reads_first[name]]


def _in_order(name: ast.Name) -> tuple[int, bool]:
    """As a statement runs: what it reads before what it stores."""
    return name.lineno, isinstance(name.ctx, ast.Store)


class FileLoops(NamedTuple):
    """The loops of a file, and the functions that they stand in."""

    loops: Sequence[Loop] = ()
    functions: Sequence[Span] = ()

    def around(self, span: Span) -> Loop | None:
        """The innermost loop whose turns run what is at a span, in the same function."""
        if not self.loops:
            return None
        function = min((function for function in self.functions if span in function), key=_size, default=None)
        around = (loop for loop in self.loops if loop.function == function and any(span in part for part in loop.body))
        return min(around, key=lambda loop: _size(loop.body[0]), default=None)


def loops_of(file: str) -> FileLoops:
    """The loops of a file as it is now; none if its text can't be had."""
    source = read_source(file)
    return _loops(source.text) if source is not None else FileLoops()


def loop_around(file: str, span: Span) -> Loop | None:
    """The innermost loop of a file whose turns run what is at a span, in the same function."""
    return loops_of(file).around(span)


def _size(span: Span) -> tuple[int, int]:
    return span.end_line - span.line, span.end_column - span.column


@lru_cache(maxsize=32)
def _loops(text: str) -> FileLoops:
    tree = parse(text)
    if tree is None:
        return FileLoops()
    functions: list[Span] = []
    return FileLoops(tuple(_inside(tree, None, functions)), functions)


def _inside(node: ast.AST, function: Span | None, functions: list[Span]) -> Iterator[Loop]:
    if isinstance(node, _FUNCTIONS):
        function = Span.of(node)
        functions.append(function)
    elif isinstance(node, (ast.For, ast.While)):
        head = node.iter if isinstance(node, ast.For) else node.test
        # The condition of a `while` runs in each turn, what a `for` goes through does not.
        body = (_whole(node.body), *((Span.of(head),) if isinstance(node, ast.While) else ()))
        yield Loop(node, body, Span(node.lineno, node.col_offset, *Span.of(head)[2:]), function)
    elif isinstance(node, _COMPREHENSIONS):
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        yield Loop(node, tuple(map(Span.of, parts)), Span.of(node), function)
    for part in ast.iter_child_nodes(node):
        yield from _inside(part, function, functions)


def _whole(statements: Sequence[ast.stmt]) -> Span:
    return Span(*Span.of(statements[0])[:2], *Span.of(statements[-1])[2:])
