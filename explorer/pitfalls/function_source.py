"""The user's text as syntax trees: the functions that ran, and pieces of a file as the fields of a finding."""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType, MethodType
from typing import Any

from explorer.capture.safe_reading import callee_name, closure_variables, find
from explorer.capture.sources import Span, label, parse, read_source, syntax_at
from explorer.model.declared import cached_property
from explorer.model.graph import Frame
from explorer.pitfalls.recorder import ExecutedFunction

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, eq=False, repr=False)
class FunctionSource:
    """A function that ran, as its author wrote it."""

    executed: ExecutedFunction  # the function
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda  # its `def` or `lambda`
    text: str  # all of its file
    inner: tuple[ExecutedFunction, ...] = ()  # what Python made functions of in it: comprehensions, generators

    @property
    def file(self) -> str:
        return self.executed.code.co_filename

    @property
    def label(self) -> str:
        return label(self.file)

    def line(self, number: int) -> str:
        """A line of the file, stripped."""
        lines = self.text.splitlines()
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        return ast.get_source_segment(self.text, node) or ""

    def walk(self, *kinds: type[ast.AST]) -> Iterator[Any]:
        """The nodes of these kinds in its body; those of functions inside it are theirs, if they ran."""
        return (node for node in self._nodes if isinstance(node, kinds))

    @cached_property
    def _nodes(self) -> list[ast.AST]:
        body = self.node.body if isinstance(self.node.body, list) else [self.node.body]
        waiting: list[ast.AST] = list(reversed(body))
        nodes: list[ast.AST] = []
        while waiting:
            node = waiting.pop()
            nodes.append(node)
            if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                waiting.extend(reversed(list(ast.iter_child_nodes(node))))
        return nodes

    @property
    def header(self) -> Span:
        """Its first line: where what has no line of its own is said."""
        first = self.node.lineno
        return Span(first, self.node.col_offset, first, len(self.text.splitlines()[first - 1].encode()))

    def at(self, span: Span) -> ast.AST | None:
        """The node that takes up exactly this piece of the text."""
        return next((n for n in self.walk(ast.expr, ast.stmt) if Span.of(n) == span), None)

    def call_at(self, span: Span) -> ast.Call | None:
        """The call that ends where this piece does: where one over several lines starts is given in several ways."""
        return self._calls.get(span[2:])

    @cached_property
    def _calls(self) -> dict[tuple[int, int], ast.Call]:
        return {Span.of(node)[2:]: node for node in self.walk(ast.Call)}

    def reached(self, node: ast.AST) -> bool:
        """Whether anything of a node ran."""
        place, pieces = Span.of(node), self._reached
        for at in range(bisect_left(pieces, place[:2]), len(pieces)):
            if pieces[at][:2] > place[2:]:
                break
            if pieces[at][2:] <= place[2:]:
                return True
        return False

    @cached_property
    def _reached(self) -> list[Span]:
        return sorted(span for one in (self.executed, *self.inner) for span in one.reached)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """What each node of its body stands in."""
        return {child: node for node in ast.walk(self.node) for child in ast.iter_child_nodes(node)}

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """What a node stands in, from the innermost out to the function."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def value(self, node: ast.AST) -> Any:
        """What a name, attributes and items of a name, stood for; `Ellipsis` where that is local or can't be known.

        Nothing that could run code is read: see `safe_reading.find`.
        """
        return find(node, self.lookup)

    def resolve(self, node: ast.AST) -> Any:
        """Like `value`, but parameters and names that are given once stand for what they were given as well."""
        return find(node, self._resolve_name)

    def _resolve_name(self, name: str, depth: int = 0) -> Any:
        value = self.lookup(name)
        assigned = self._assigned.get(name, [])
        if value is not ... or depth > 4:  # `a = b; b = a` would go on
            return value
        if name in self.parameters and not assigned:
            return self.executed.arguments.get(name, ...)
        alias = assigned[0] if len(assigned) == 1 else None
        return ... if alias is None else find(alias, lambda inner: self._resolve_name(inner, depth + 1))

    @cached_property
    def _assigned(self) -> dict[str, list[ast.expr | None]]:
        """What each of its own names is given; None for what is no plain assignment."""
        assigned: dict[str, list[ast.expr | None]] = {}
        plain = {id(node.targets[0]): node.value for node in self.walk(ast.Assign) if len(node.targets) == 1}
        for node in self.walk(ast.Name):
            if not isinstance(node.ctx, ast.Load):
                assigned.setdefault(node.id, []).append(plain.get(id(node)))
        return assigned

    def lookup(self, name: str) -> Any:
        """What a name from outside stood for; `self` is the object whose method this is."""
        if name == "self" and self.executed.owner is not None:
            return self.executed.owner
        return ... if name in self.locals else self.executed.lookup(name)

    def callee(self, call: ast.Call) -> str:
        """What a call calls, with its module: `numpy.random.default_rng`; empty where that can't be known."""
        callee = self.value(call.func)
        return "" if callee is ... else callee_name(callee)[0]

    def is_builtin(self, node: ast.AST) -> bool:
        """Whether a name is one of Python's own, given no other meaning in the function or its module."""
        name = node.id if isinstance(node, ast.Name) else ""
        return name in vars(builtins) and name not in (*self.locals, *self.executed.free, *self.executed.globals)

    @cached_property
    def locals(self) -> frozenset[str]:
        codes = [function.code for function in (self.executed, *self.inner)]
        names = frozenset(name for code in codes for name in (*code.co_varnames, *code.co_cellvars))
        # Python 3.11 has functions of their own for comprehensions, and their names are in no code of this one.
        return names.union(
            name.id for name in self.walk(ast.Name) if isinstance(name.ctx, ast.Store) and name.id not in self.declared
        )

    @cached_property
    def declared(self) -> frozenset[str]:
        """The names that it says are `global` or `nonlocal`."""
        return frozenset(name for node in self.walk(ast.Global, ast.Nonlocal) for name in node.names)

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(parameter.arg for parameter in parameters_of(self.node))

    def parameter_span(self, path: str) -> Span | None:
        """Where the parameter stands that a path such as `state['step']` starts with; None if it has no such one."""
        nodes = (node for node in parameters_of(self.node) if node.arg == root_of(path))
        return next(map(Span.of, nodes), None)

    def short(self, node: ast.AST, width: int = 60) -> str:
        """The text of a node in one line of at most `width` characters."""
        text = " ".join(self.source(node).split())
        return text if len(text) <= width else f"{text[: width - 3]}…"


def function_source(executed: ExecutedFunction, inner: Iterable[ExecutedFunction] = ()) -> FunctionSource | None:
    """The text of a function; None where it can't be had, or was edited since. For `inner` see `FunctionSource`."""
    code = executed.code
    source = read_source(code.co_filename)
    if source is None:
        return None
    # By its first line, which is its first decorator's, and its name; several lambdas may start in one line.
    nodes = _functions(source.text).get((code.co_firstlineno, code.co_name), ())
    node = next((node for node in nodes if _has_parameters(node, code)), None)
    return None if node is None else FunctionSource(executed, node, source.text, tuple(inner))


def source_of(function: Any) -> FunctionSource | None:
    """The text of a function or method that need not have run; None for other callables."""
    function = function.__func__ if type(function) is MethodType else function
    if type(function) is not FunctionType:
        return None
    return function_source(ExecutedFunction(function.__code__, function.__globals__, closure_variables(function)))


@lru_cache(maxsize=64)
def _functions(text: str) -> dict[tuple[int, str], list[Any]]:
    functions: dict[tuple[int, str], list[Any]] = {}
    tree = parse(text)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, _FUNCTIONS):
            functions.setdefault((first_line(node), getattr(node, "name", "<lambda>")), []).append(node)
    return functions


def _has_parameters(node: Any, code: CodeType) -> bool:
    arguments = node.args
    names = [parameter.arg for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return tuple(names) == code.co_varnames[: len(names)]


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


@dataclass(frozen=True)
class Edit:
    """A piece of a file, and what to write there instead."""

    file: str  # file, span: where
    span: Span
    after: str  # what to write there
    before: str = ""  # as it is written
    text: str = ""  # the same as Python writes it


def span_of(frame: Frame) -> Span:
    return Span(frame.line, frame.column, frame.end_line, frame.end_column)


def expression_at(frame: Frame | None) -> ast.expr | None:
    """What is exactly at a frame; None where that is no expression, or can't be had."""
    way = syntax_at(frame.file, span_of(frame)) if frame is not None else ()
    return way[-1] if way and isinstance(way[-1], ast.expr) else None


def short_text(node: ast.expr) -> str:
    """An expression in one line of at most 60 characters."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def frame_location(frame: Frame | None) -> dict[str, Any]:
    """The fields of a finding at a frame; none for None."""
    return span_location(frame.file, span_of(frame)) if frame is not None else {}


def span_location(file: str, span: Span) -> dict[str, Any]:
    """The fields of a finding at a piece of a file."""
    return {
        "file": file,
        "label": label(file),
        "text": _line(file, span.line).strip(),
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def expression_on_line(file: str, line: int, predicate: Callable[[ast.expr], bool]) -> Span:
    """The smallest expression on a line for which a predicate holds; all of the line where there is none."""
    source = read_source(file)
    tree = parse(source.text) if source is not None else None
    spans = [
        Span.of(node)
        for node in (ast.walk(tree) if tree is not None else ())
        if isinstance(node, ast.expr) and node.lineno <= line <= (node.end_lineno or 0) and predicate(node)
    ]
    text = _line(file, line)
    whole = Span(line, len(text) - len(text.lstrip()), line, len(text.rstrip().encode()))
    return min(spans, key=lambda span: (span.end_line - span.line, span.end_column - span.column), default=whole)


def _line(file: str, number: int) -> str:
    source = read_source(file)
    lines = source.text.splitlines() if source is not None else []
    return lines[number - 1] if 0 < number <= len(lines) else ""
