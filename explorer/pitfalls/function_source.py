"""Syntax trees of the functions that ran, positions in the user's text, and facts about `jax.jit` functions."""

from __future__ import annotations

import ast
import builtins
import sys
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from types import CodeType, FunctionType, MethodType
from typing import Any

import jax

from explorer._jax.arguments import is_jitted, static_arguments
from explorer.capture.safe_reading import (
    attributes,
    callee_name,
    class_name,
    class_variables,
    closure_variables,
    find,
    kind_of,
    member,
)
from explorer.capture.sources import Span, label, parse, read_source, syntax_at
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file
from explorer.model.text import root_of
from explorer.pitfalls.recorder import ExecutedFunction

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(eq=False, repr=False)
class FunctionSource:
    """Source text of a function that ran, and the facts about it that the rules read."""

    executed: ExecutedFunction  # the function
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda  # its `def` or `lambda`
    text: str  # all of its file
    inner: tuple[ExecutedFunction, ...] = ()  # its comprehensions and generators, which Python 3.11 makes functions of

    def __post_init__(self) -> None:
        # All computed now: the rules read plain data.
        self.file = self.executed.code.co_filename
        self.nodes = _body_nodes(self.node)
        self.by_type: dict[type[ast.AST], list[Any]] = defaultdict(list)
        for node in self.nodes:
            self.by_type[type(node)].append(node)
        self.calls: list[ast.Call] = self.by_type[ast.Call]
        self.calls_by_end = {(call.end_lineno, call.end_col_offset): call for call in self.calls}
        whole = list(ast.walk(self.node))
        self.parents = {child: node for node in whole for child in ast.iter_child_nodes(node)}
        declarations = (*self.by_type[ast.Global], *self.by_type[ast.Nonlocal])
        self.declared = frozenset(name for node in declarations for name in node.names)
        self.locals = self._local_names()
        # Values by name: those from outside, and with those of names that are assigned once.
        self.values: dict[str, Any] = defaultdict(lambda: ...)
        self.values |= {name: self.lookup(name) for name in {n.id for n in whole if isinstance(n, ast.Name)}}
        assigned = self._assigned_values()
        self._resolved: dict[str, Any] = defaultdict(lambda: ...)
        self._resolved |= {name: self._resolve_name(name, assigned) for name in self.values}
        # What each call calls, by its qualified name, "" if unknown; and the jitted functions among the callees.
        called = [(call, self.value(call.func)) for call in whole if isinstance(call, ast.Call)]
        self.callees = {call: "" if callee is ... else callee_name(callee)[0] for call, callee in called}
        self.jitted = {call: callee for call, callee in called if is_jitted(callee)}
        self._ran = sorted(span for one in (self.executed, *self.inner) for span in one.reached)

    def _local_names(self) -> frozenset[str]:
        codes = [function.code for function in (self.executed, *self.inner)]
        own = {name for code in codes for name in (*code.co_varnames, *code.co_cellvars)}
        # Python 3.11 has functions of their own for comprehensions, and their names are in no code of this one.
        names: list[ast.Name] = self.by_type[ast.Name]
        return frozenset(own | ({name.id for name in names if isinstance(name.ctx, ast.Store)} - self.declared))

    def _assigned_values(self) -> dict[str, list[ast.expr | None]]:
        """Return the expressions assigned to each name; None for one that is not a plain assignment."""
        assigned: dict[str, list[ast.expr | None]] = {}
        plain = {id(node.targets[0]): node.value for node in self.walk(ast.Assign) if len(node.targets) == 1}
        for name in self.by_type[ast.Name]:
            if not isinstance(name.ctx, ast.Load):
                assigned.setdefault(name.id, []).append(plain.get(id(name)))
        return assigned

    def line(self, number: int) -> str:
        lines = self.text.splitlines()
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""

    def source(self, node: ast.AST) -> str:
        return ast.get_source_segment(self.text, node) or ""

    def walk(self, *kinds: type[ast.AST]) -> list[Any]:
        """Return the nodes of some types in the body, in the order of the text, without those of inner functions."""
        return [node for node in self.nodes if isinstance(node, kinds)]

    @property
    def header(self) -> Span:
        """Span of the first line, for findings that have no line of their own."""
        first = self.node.lineno
        return Span(first, self.node.col_offset, first, len(self.text.splitlines()[first - 1].encode()))

    def call_at(self, span: Span) -> ast.Call | None:
        """Return the call that ends where `span` ends, or None.

        The start isn't compared: Python versions disagree where a call over several lines starts.
        """
        return self.calls_by_end.get(span[2:])

    def reached(self, node: ast.AST) -> bool:
        """Return True if any part of a node ran."""
        place, pieces = Span.of(node), self._ran
        for at in range(bisect_left(pieces, place[:2]), len(pieces)):
            if pieces[at][:2] > place[2:]:
                break
            if pieces[at][2:] <= place[2:]:
                return True
        return False

    def around(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes around a node, innermost first."""
        while (outer := self.parents.get(node)) is not None:
            yield outer
            node = outer

    def value(self, node: ast.AST) -> Any:
        """Return the value of a name, attribute or item from outside; `...` if it is local or unknown.

        Nothing that could run code is read: see `safe_reading.find`.
        """
        return find(node, self.values.__getitem__)

    def resolve(self, node: ast.AST) -> Any:
        """Return the value of an expression, also of parameters and names that are assigned once; `...` if unknown."""
        return find(node, self._resolved.__getitem__)

    def _resolve_name(self, name: str, assigned: Mapping[str, list[ast.expr | None]], depth: int = 0) -> Any:
        value, sources = self.values[name], assigned.get(name, [])
        if value is not ... or depth > 4:  # `a = b; b = a` is a cycle
            return value
        if name in self.parameters and not sources:
            return self.executed.arguments.get(name, ...)
        alias = sources[0] if len(sources) == 1 else None
        return ... if alias is None else find(alias, lambda inner: self._resolve_name(inner, assigned, depth + 1))

    def lookup(self, name: str) -> Any:
        """Return the value of a name from outside, `...` if it is local or unknown; `self` is a method's object."""
        if name == "self" and self.executed.owner is not None:
            return self.executed.owner
        return ... if name in self.locals else self.executed.lookup(name)

    def is_builtin(self, node: ast.AST) -> bool:
        """Return True if a name means Python's builtin, not shadowed in the function or module."""
        name = node.id if isinstance(node, ast.Name) else ""
        return name in vars(builtins) and name not in (*self.locals, *self.executed.free, *self.executed.globals)

    @property
    def parameters(self) -> tuple[str, ...]:
        return tuple(parameter.arg for parameter in parameters_of(self.node))

    def parameter_span(self, path: str) -> Span | None:
        """Return the span of the parameter that a path such as `state['step']` starts with; None without one."""
        nodes = (node for node in parameters_of(self.node) if node.arg == root_of(path))
        return next(map(Span.of, nodes), None)

    def short(self, node: ast.AST, width: int = 60) -> str:
        """Return the text of a node in one line of at most `width` characters."""
        text = " ".join(self.source(node).split())
        return text if len(text) <= width else f"{text[: width - 3]}…"


def _body_nodes(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[Any]:
    body = function.body if isinstance(function.body, list) else [function.body]
    waiting: list[ast.AST] = list(reversed(body))
    nodes: list[ast.AST] = []
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            waiting.extend(reversed(list(ast.iter_child_nodes(node))))
    return nodes


def function_source(executed: ExecutedFunction, inner: Iterable[ExecutedFunction] = ()) -> FunctionSource | None:
    """Return the source of a function, or None if the text is missing or was edited. `inner` are its comprehensions."""
    code = executed.code
    source = read_source(code.co_filename)
    if source is None:
        return None
    # By its first line, which is its first decorator's, and its name; several lambdas may start in one line.
    nodes = _functions(source.text).get((code.co_firstlineno, code.co_name), ())
    node = next((node for node in nodes if _has_parameters(node, code)), None)
    return None if node is None else FunctionSource(executed, node, source.text, tuple(inner))


def source_of(function: Any) -> FunctionSource | None:
    """Return the source of a function or method that need not have run; None for other callables."""
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
    """Return the parameters of a `def` or `lambda`, with `*args` and `**kwargs` last."""
    arguments: ast.arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return named + [parameter for parameter in (arguments.vararg, arguments.kwarg) if parameter is not None]


def first_line(node: Any) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", ()))])


def last_name(node: ast.AST) -> str:
    """Return `sum` for `jnp.sum` and for `sum`; "" for other expressions."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def targets_of(node: Any) -> Iterator[ast.expr]:
    """Yield the targets of an assignment, `del` or `for`, with tuples unpacked, the last first."""
    waiting: list[ast.expr] = list(getattr(node, "targets", None) or [node.target])
    while waiting:
        target = waiting.pop()
        if isinstance(target, (ast.Tuple, ast.List)):
            waiting += target.elts
        elif isinstance(target, ast.Starred):
            waiting.append(target.value)
        else:
            yield target


# Methods of `x.at[…]` by the operator of an augmented assignment.
AT_METHODS: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "subtract",
    ast.Mult: "multiply",
    ast.Div: "divide",
    ast.Pow: "power",
}


@dataclass(frozen=True)
class Edit:
    """Replacement of a piece of a file."""

    file: str  # file, span: where
    span: Span
    after: str  # what to write there
    before: str = ""  # as it is written
    text: str = ""  # the same as Python writes it


def span_of(frame: Frame) -> Span:
    return Span(frame.line, frame.column, frame.end_line, frame.end_column)


def expression_at(frame: Frame | None) -> ast.expr | None:
    """Return the expression with exactly the span of a frame, or None."""
    path = syntax_at(frame.file, span_of(frame)) if frame is not None else ()
    return path[-1] if path and isinstance(path[-1], ast.expr) else None


def short_text(node: ast.expr) -> str:
    """Return an expression in one line of at most 60 characters."""
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


def text_at(frame: Frame | None, otherwise: str = "this line") -> str:
    """Return the expression at a frame in backticks, as a message names it; `otherwise` without one."""
    node = expression_at(frame)
    return f"`{short_text(node)}`" if node is not None else otherwise


def frame_location(frame: Frame | None) -> dict[str, Any]:
    """Return the location fields of a finding at a frame, as `span_location`; {} for None."""
    return span_location(frame.file, span_of(frame)) if frame is not None else {}


def span_location(file: str, span: Span, text: str | None = None) -> dict[str, Any]:
    """Return the location fields of a finding (`file`, `line`, `text`, …) by name, for a piece of a file."""
    return {
        "file": file,
        "label": label(file),
        "text": _line(file, span.line).strip() if text is None else text,
        "line": span.line,
        "column": span.column,
        "end_line": span.end_line,
        "end_column": span.end_column,
    }


def expression_on_line(file: str, line: int, predicate: Callable[[ast.expr], bool]) -> Span:
    """Return the span of the smallest expression on a line that satisfies a predicate, else of the whole line."""
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


# jax.jit -------------------------------------------------------------------------------------------------------------

_JITS = ("jax.jit", "jax.pmap", "equinox.filter_jit", "equinox._jit.filter_jit", "flax.nnx.jit")


@dataclass(frozen=True)
class CallArgument:
    name: str  # of the parameter; of one in `*args`, as Python would write it: `args[1]`
    value: Any  # what was given
    static: bool  # True if it is a static argument of `jax.jit`


def call_arguments(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[CallArgument]:
    """Yield the arguments of a call of `target`, including `self` of a jitted bound method."""
    if type(target) is MethodType and is_jitted(target.__func__):
        target, args = target.__func__, (target.__self__, *args)
    numbers, names = static_arguments(target)
    parameters = _parameters(target)
    count = len(args)
    for i, value in enumerate(args):
        name = parameters[i] if i < len(parameters) else f"args[{i - len(parameters)}]"
        yield CallArgument(name, value, i in numbers or i - count in numbers or name in names)
    for name, value in kwargs.items():
        yield CallArgument(name, value, name in names)


def _parameters(target: Any) -> tuple[str, ...]:
    """Return the names of the positional parameters, from the code object: a signature might run user code."""
    for _ in range(100):
        if type(target) is MethodType:
            return _parameters(target.__func__)[1:]
        if isinstance(target, partial):
            return _parameters(target.func)[len(target.args) :]
        if type(target) is FunctionType:
            return target.__code__.co_varnames[: target.__code__.co_argcount]
        target = getattr(target, "__dict__", {}).get("__wrapped__")
    return ()


def decorator(function: FunctionSource, node: ast.AST | None = None) -> ast.expr | None:
    """Return the decorator that jits a `def`, `node` or else the function itself; None without one."""
    decorators: list[ast.expr] = getattr(node or function.node, "decorator_list", [])
    return next((expression for expression in decorators if is_jit(function, expression)), None)


def is_jit(function: FunctionSource, node: ast.expr) -> bool:
    """Return True for `jax.jit`, `jax.jit(…)` with options alone, and `partial(jax.jit, …)`.

    `jax.pmap`, `equinox.filter_jit` and `flax.nnx.jit` count too.
    """
    if isinstance(node, ast.Call):
        if function.value(node.func) is partial and node.args:
            return is_jit(function, node.args[0])
        return not node.args and is_jit(function, node.func)
    value = function.value(node)
    name = f"{value.__module__}.{value.__qualname__}" if type(value) is FunctionType else ""
    return value is jax.jit or value is jax.pmap or name in _JITS


def jitted_calls(function: FunctionSource) -> list[ast.Call]:
    """Return the calls of jitted functions of the user, and of those that the function itself makes with jax.jit."""
    made = {
        target.id
        for node in function.by_type[ast.Assign]
        if isinstance(node.value, ast.Call) and is_jit_call(function, node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    made |= {node.name for node in function.by_type[ast.FunctionDef] if decorator(function, node) is not None}
    whole = (node for node in ast.walk(function.node) if isinstance(node, ast.Call))
    return [node for node in whole if last_name(node.func) in made or is_compiled(function.resolve(node.func))]


# The classes of what other libraries' jit return; not of their jitted methods, which are rare in drivers.
_COMPILED = ("equinox._jit._JitWrapper", "explorer.jitted.jit.Jitted")
_OF_NNX = "flax.nnx.transforms.compilation."


def is_compiled(value: Any) -> bool:
    """Return True for what the jit of JAX, Explorer, equinox or flax.nnx returns, unless it is JAX's own function."""
    name = "" if value is ... else class_name(kind_of(value))
    return is_users_jitted(value) or name in _COMPILED or name.startswith(_OF_NNX)


def is_jit_call(function: FunctionSource, node: ast.Call) -> bool:
    """Return True for a call that makes a jitted function: `jax.jit(f)`, `partial(jax.jit, static_argnums=0)(f)`."""
    return bool(node.args) and function.value(node.func) is not partial and is_jit(function, node.func)


def hash_of(kind: type) -> Any:
    """Return a class's `__hash__`: None for unhashable, `object.__hash__` for identity."""
    bases: tuple[type, ...] = type.__dict__["__mro__"].__get__(kind)
    return next((held["__hash__"] for base in bases if "__hash__" in (held := class_variables(base))), None)


def short_name(kind: type) -> str:
    return class_name(kind).rpartition(".")[2]


def is_users_jitted(value: Any) -> bool:
    """Return True for a jitted function that isn't one of JAX's own, such as `jnp.exp`."""
    wrapped = attributes(value).get("__wrapped__") if is_jitted(value) else None
    if type(wrapped) is not FunctionType:
        return wrapped is not None
    # A library's function that the user jits isn't what the library's module has under its name.
    module = sys.modules.get(str(wrapped.__globals__.get("__name__")))
    is_own = not is_library_file(wrapped.__code__.co_filename)
    return is_own or not module or member(module, wrapped.__name__) is not value
