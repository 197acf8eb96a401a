"""Loops of a source file, with the text that runs in each turn."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from explorer.capture.sources import Span, parse, read_source
from explorer.pitfalls.function_source import last_name

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True, eq=False)
class Loop:
    node: ast.AST  # `for`, `while`, or a comprehension
    body: tuple[Span, ...]  # what runs in each turn
    header: Span  # what a person points at
    function: Span | None  # span of the enclosing `def`

    @property
    def is_comprehension(self) -> bool:
        return isinstance(self.node, _COMPREHENSIONS)

    @property
    def _head(self) -> Any:
        """Node with the loop's `target` and `iter`; the `while` itself, which has neither."""
        return self.node.generators[0] if isinstance(self.node, _COMPREHENSIONS) else self.node

    @property
    def source(self) -> str:
        return ast.unparse(self._head.iter) if hasattr(self._head, "iter") else ""

    @property
    def target(self) -> str:
        return ast.unparse(self._head.target) if hasattr(self._head, "target") else ""

    @property
    def range_arguments(self) -> list[str]:
        """Arguments of the loop's `range()`; empty for other loops."""
        match getattr(self.node, "iter", None):
            case ast.Call(func=ast.Name(id="range"), args=args, keywords=[]):
                return list(map(ast.unparse, args))
            case _:
                return []

    @property
    def collected(self) -> list[str]:
        """Names of the lists that each turn appends to."""
        names: dict[str, None] = {}
        for part in self._parts:
            match part:
                case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append")):
                    names[name] = None
                case _:
                    continue
        return list(names)

    @property
    def carried(self) -> list[str]:
        """Names that a turn reads before it assigns them."""
        named = [part for part in self._parts if isinstance(part, ast.Name)]
        reads_first: dict[str, bool] = {}
        # As a statement runs: what it reads before what it stores.
        for name in sorted(named, key=lambda name: (name.lineno, isinstance(name.ctx, ast.Store))):
            reads_first.setdefault(name.id, isinstance(name.ctx, ast.Load))
        # `x += 1` reads x, though the syntax tree has the store only.
        reads_first |= {last_name(part.target): True for part in self._parts if isinstance(part, ast.AugAssign)}
        stored = dict.fromkeys(name.id for name in named if isinstance(name.ctx, ast.Store))
        carried = [name for name in stored if reads_first[name]]
        return list(filter(lambda name, own=self._comprehended: name not in own, carried))

    @property
    def _comprehended(self) -> set[str]:
        """Variables of comprehensions in the body, which are their own."""
        targets = [part.target for part in self._parts if isinstance(part, ast.comprehension)]
        return {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}

    @property
    def _parts(self) -> list[ast.AST]:
        body = self.node.body if isinstance(self.node, (ast.For, ast.While)) else []
        return [part for statement in body for part in ast.walk(statement)]


class FileLoops(NamedTuple):
    loops: Sequence[Loop] = ()
    functions: Sequence[Span] = ()

    def around(self, span: Span) -> Loop | None:
        """Return the innermost loop of the same function whose turns run a span; None without one."""
        if not self.loops:
            return None
        function = min((function for function in self.functions if span in function), key=_size, default=None)
        around = (loop for loop in self.loops if loop.function == function and any(span in part for part in loop.body))
        return min(around, key=lambda loop: _size(loop.body[0]), default=None)


def loops_of(file: str) -> FileLoops:
    source = read_source(file)
    return _loops_in(source.text) if source is not None else FileLoops()


def _size(span: Span) -> tuple[int, int]:
    return span.end_line - span.line, span.end_column - span.column


@lru_cache(maxsize=32)
def _loops_in(text: str) -> FileLoops:
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
        whole = Span(*Span.of(node.body[0])[:2], *Span.of(node.body[-1])[2:])
        body = (whole, *((Span.of(head),) if isinstance(node, ast.While) else ()))
        yield Loop(node, body, Span(node.lineno, node.col_offset, *Span.of(head)[2:]), function)
    elif isinstance(node, _COMPREHENSIONS):
        parts = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        yield Loop(node, tuple(map(Span.of, parts)), Span.of(node), function)
    for part in ast.iter_child_nodes(node):
        yield from _inside(part, function, functions)
