"""A function of the user as text and syntax tree, and the edits that rewrite it. Unedited text stays."""

from __future__ import annotations

import ast
import builtins
import io
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from keyword import iskeyword
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from explorer.capture.safe_reading import is_exactly, member
from explorer.capture.sources import Span, parse
from explorer.model.declared import cached_property
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import Edit, first_line

_Node = TypeVar("_Node", bound=ast.AST)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPOUND = (*_FUNCTIONS, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try)
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
_BLANKS = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
_DEPTHS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_IMPORTS = {"jax.numpy": ("jnp", "import jax.numpy as jnp")}


class RewriteUncertain(Exception):
    """The rewrite may change more than it should, so it isn't offered."""


class _Token(NamedTuple):
    kind: int
    text: str
    span: Span


@dataclass
class Unit:
    """Outermost function around a piece of text, or the statement outside of any function."""

    file: str  # the name that frames carry
    text: str  # all of the file
    start: int  # start, end: the first and last line of the function, from 1
    end: int
    names: Mapping[str, Any]  # what the names of its module stand for
    main: int = 0  # the first line of the function that was linted, if it is in this file
    imports: list[str] = field(default_factory=list[str])  # the statements that a rewrite turned out to need
    # what a rewrite adds to the parameters of that function: an expression for each first argument
    new_parameters: dict[str, str] = field(default_factory=dict[str, str])
    evidence: Evidence | None = None  # of the trace that the findings are of
    root: ast.AST = field(default_factory=ast.Pass)  # the function or statement itself

    @cached_property
    def lines(self) -> Sequence[str]:
        return self.text.splitlines(keepends=True)

    @cached_property
    def _nodes(self) -> list[Any]:
        return [node for node in ast.walk(self.root) if hasattr(node, "lineno")]

    def nodes(self, *kinds: type[_Node], within: Span | None = None) -> Iterator[_Node]:
        """Yield the nodes of some types in the order of the text, optionally within a span."""
        nodes = [
            node for node in self._nodes if isinstance(node, kinds) and (within is None or Span.of(node) in within)
        ]
        yield from sorted(nodes, key=lambda node: (Span.of(node)[:2], [-n for n in Span.of(node)[2:]]))

    def around(self, span: Span, *kinds: type[_Node]) -> Iterator[_Node]:
        """Yield the nodes of some types that contain a span, innermost first."""
        nodes = [node for node in self._nodes if isinstance(node, kinds) and span in Span.of(node)]
        yield from sorted(nodes, key=lambda node: (Span.of(node)[2:], [-n for n in Span.of(node)[:2]]))

    def near(self, span: Span, *kinds: type[_Node]) -> Iterator[_Node]:
        """Yield the nodes of some types around a span, then those within it."""
        yield from chain(self.around(span, *kinds), self.nodes(*kinds, within=span))

    def exactly(self, span: Span, kind: type[_Node]) -> _Node | None:
        """Return the node of a type with exactly this span; None without one."""
        return next((node for node in self.around(span, kind) if Span.of(node) == span), None)

    def call_on_line(self, span: Span) -> ast.Call:
        """Return the call with this very span, or the smallest around it on its line; else raise RewriteUncertain."""
        for node in self.around(span, ast.Call):
            if Span.of(node) == span or node.lineno == span.line:
                return node
        raise RewriteUncertain(f"no call at line {span.line}")

    def block_around(self, span: Span) -> list[ast.stmt]:
        """Return the innermost block of statements that contains a span, or raise RewriteUncertain."""
        for node in self.around(span, ast.stmt, ast.ExceptHandler):
            for name in ("body", "orelse", "finalbody"):
                block: list[ast.stmt] = getattr(node, name, [])
                if any(span in Span.of(statement) for statement in block):
                    return block
        raise RewriteUncertain("it is in no function")

    # Text

    def source(self, node: ast.expr) -> str:
        """Return the text of an expression, with its brackets."""
        text = self.piece(self._grouped(node)) if hasattr(node, "lineno") else ""
        try:  # Python 3.11 has other places for what is in an f-string
            is_there = ast.dump(ast.parse(f"({text})", mode="eval").body) == ast.dump(node)
        except SyntaxError:
            is_there = False
        return text if is_there else ast.unparse(node)

    def parenthesized(self, node: ast.expr) -> str:
        """Return the text of an expression, in brackets unless any operator may follow."""
        text = self.source(node)
        is_number = isinstance(node, ast.Constant) and not isinstance(node.value, str)
        is_grouped = self._grouped(node) != Span.of(node)
        return text if isinstance(node, _ATOMS) or is_number or is_grouped else f"({text})"

    def piece(self, span: Span) -> str:
        # Columns of a syntax tree count bytes of UTF-8.
        lines = [line.encode() for line in self.lines[span.line - 1 : span.end_line]]
        lines[-1] = lines[-1][: span.end_column]
        lines[0] = lines[0][span.column :]
        return b"".join(lines).decode()

    @cached_property
    def _all_tokens(self) -> list[_Token]:
        own = [*self.lines[self.start - 1 : self.end]]
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO("".join(own)).readline))
        except (tokenize.TokenError, SyntaxError) as error:
            raise RewriteUncertain("the source isn't plain Python") from error

        # `tokenize` counts characters, syntax trees count bytes.
        def column(line: int, characters: int) -> int:
            return len(own[line - 1][:characters].encode()) if line <= len(own) else 0

        above = self.start - 1
        return [
            _Token(
                token.type,
                token.string,
                Span(token.start[0] + above, column(*token.start), token.end[0] + above, column(*token.end)),
            )
            for token in tokens
        ]

    @cached_property
    def _tokens(self) -> list[_Token]:
        return [token for token in self._all_tokens if token.kind not in _BLANKS]

    def comments(self, first: int, last: int) -> list[str]:
        return [one.text for one in self._all_tokens if one.kind == tokenize.COMMENT and first <= one.span.line <= last]

    def _grouped(self, node: ast.AST) -> Span:
        """Return the span of an expression with the brackets around it alone."""
        span = Span.of(node)
        while (outer := self._brackets_around(span)) is not None:
            span = outer
        return span

    def _brackets_around(self, span: Span) -> Span | None:
        before = [one for one in self._tokens if one.span[2:] <= span[:2]][-2:]
        after = next((one for one in self._tokens if one.span[:2] >= span[2:]), None)
        if not before or after is None or (before[-1].text, after.text) != ("(", ")"):
            return None
        is_call = len(before) > 1 and _ends_operand(before[0])
        return None if is_call else Span(*before[-1].span[:2], *after.span[2:])

    def _is_grouped(self, node: ast.AST) -> bool:
        return self._grouped(node) != Span.of(node)

    def arguments(self, call: ast.Call) -> list[tuple[ast.expr | ast.keyword, Span]]:
        """Return the arguments of a call in the order of the text, with their spans including brackets."""
        nodes = sorted([*call.args, *call.keywords], key=lambda node: Span.of(node)[:2])
        return list(zip(nodes, self._listed(Span(*Span.of(call.func)[2:], *Span.of(call)[2:])), strict=True))

    def _listed(self, within: Span) -> list[Span]:
        """Return the spans between the commas in the first brackets of a span."""
        depth, listed = 0, [list[_Token]()]
        for token in self._tokens:
            if token.span not in within or (not depth and token.text != "("):
                continue
            depth += _DEPTHS.get(token.text, 0) if token.kind == tokenize.OP else 0
            if not depth:
                break
            if depth == 1 and token.text == ",":
                listed.append([])
            elif depth > 1 or token.text != "(":
                listed[-1].append(token)
        return [Span(*tokens[0].span[:2], *tokens[-1].span[2:]) for tokens in listed if tokens]

    # Edits

    def replace(self, node: ast.AST, text: str) -> Edit:
        """Return the edit that replaces a node and the brackets around it.

        Raises:
            RewriteUncertain: A comment would be lost.
        """
        span = self._grouped(node) if isinstance(node, ast.expr) else Span.of(node)
        for one in self._all_tokens:
            if one.kind == tokenize.COMMENT and one.span in span and one.text not in text:
                raise RewriteUncertain("a comment would be lost")
        return Edit(self.file, span, text)

    def above(self, statement: ast.stmt, text: str) -> Edit:
        """Return the edit that inserts a line above a statement, below its comments."""
        line = self.lines[statement.lineno - 1]
        indent = line[: len(line) - len(line.lstrip())]
        if len(indent) != statement.col_offset:
            raise RewriteUncertain("it isn't the first statement of its line")
        return self.insert(Span.of(statement)[:2], f"{text}\n{indent}")

    def insert(self, at: tuple[int, int], text: str) -> Edit:
        return Edit(self.file, Span(*at, *at), text)

    def line_below(self, node: ast.AST, text: str) -> Edit:
        """Return the edit that inserts a line below the last line of a node, after its comment."""
        line = Span.of(node).end_line
        end = len(self.lines[line - 1].rstrip("\r\n").encode())
        return self.insert((line, end), f"\n{text}")

    def to_colon(self, loop: ast.For) -> Span:
        colons = (one.span for one in self._tokens if one.text == ":" and one.span[:2] >= Span.of(loop.iter)[2:])
        return Span(*Span.of(loop)[:2], *next(colons)[2:])

    def without(self, statement: ast.stmt, block: Sequence[ast.stmt]) -> Edit:
        """Return the edit that deletes a statement with its line.

        Raises:
            RewriteUncertain: A comment would be lost, or the block would be empty.
        """
        first, last = statement.lineno, statement.end_lineno or 0
        above = self.lines[first - 2].strip()
        if not above or above.startswith("#") or self.comments(last, last) or len(block) == 1:
            raise RewriteUncertain("a comment would be lost")
        return Edit(self.file, Span(first, 0, last + 1, 0), "")

    def is_alone(self, statement: ast.stmt) -> bool:
        """Return True if a statement's lines hold nothing else but comments."""
        span = Span.of(statement)
        others = (token for token in self._tokens if token.span not in span)
        return not any(span.line <= one.span.end_line and one.span.line <= span.end_line for one in others)

    def with_parameter(self, function: ast.FunctionDef, name: str) -> Edit:
        """Return the edit that adds a keyword-only parameter, so that the positions of the others stay."""
        star = "" if function.args.vararg or function.args.kwonlyargs else "*, "
        listed = self._listed(Span(*Span.of(function)[:2], *Span.of(function.body[0])[:2]))
        if function.args.kwarg is not None:
            return self.insert(listed[-1][:2], f"{star}{name}, ")
        if listed:
            return self.insert(listed[-1][2:], f", {star}{name}")
        opening = next(one.span for one in self._tokens if one.text == "(" and one.span[:2] > Span.of(function)[:2])
        return self.insert(opening[2:], f"{star}{name}")

    def edited(self, edits: Iterable[Edit]) -> str:
        lines = [line.encode() for line in self.lines]
        # From the last: those before it keep their places.
        for edit in sorted(edits, key=lambda edit: edit.span, reverse=True):
            span = edit.span
            last = lines[span.end_line - 1] if span.end_line <= len(lines) else b""
            changed = lines[span.line - 1][: span.column] + edit.after.encode() + last[span.end_column :]
            lines[span.line - 1 : span.end_line] = [changed] if changed else []
        return b"".join(lines).decode()

    def standalone_code(self, text: str) -> str:
        """Return the function from a text of its file, not indented, under the imports that it needs."""
        below = len(self.lines) - self.end
        lines = text.splitlines(keepends=True)
        own = replace(self, text=text, end=len(lines) - below)
        first = lines[self.start - 1]
        indent = first[: len(first) - len(first.lstrip())]
        texts = {
            line
            for token in own._all_tokens
            if token.kind not in (*_BLANKS, tokenize.OP)
            for line in range(token.span.line + 1, token.span.end_line + 1)
        }
        code = "".join(
            line if number in texts else line.removeprefix(indent)
            for number, line in enumerate(lines[self.start - 1 : own.end], self.start)
        )
        imports = dict.fromkeys(self.imports)
        return "".join(f"{line}\n" for line in imports) + ("\n\n" if imports else "") + code

    # Names

    @cached_property
    def bound(self) -> frozenset[str]:
        """Names that the function binds, including nested functions."""
        return frozenset(map(bound_name, ast.walk(self.root))) - {""}

    def unused_name(self, name: str) -> str:
        taken = {getattr(node, "id", getattr(node, "arg", "")) for node in self._nodes} | self.bound | set(self.names)
        return next(one for one in (name, *(f"{name}_{i}" for i in range(2, 1000))) if one not in taken)

    def resolve(self, node: ast.expr) -> Any:
        """Return the value of a name, or of attributes of a module; `...` if unknown."""
        if isinstance(node, ast.Name):
            return ... if node.id in self.bound else self.names.get(node.id, getattr(builtins, node.id, ...))
        owner = self.resolve(node.value) if isinstance(node, ast.Attribute) else ...
        return member(owner, node.attr) if isinstance(node, ast.Attribute) and is_exactly(owner, ModuleType) else ...

    def qualified_name(self, path: str) -> str:
        """Return how to write `jax.debug.print` here: by the module's alias, or by an import, added to `imports`."""
        parts = path.split(".")
        for i in range(len(parts) - 1, 0, -1):  # `jnp.sin` if the module knows jax.numpy, else from what jax is called
            imported = sys.modules.get(".".join(parts[:i]))
            aliases = (name for name, value in self.names.items() if value is imported is not None)
            for alias in aliases:
                if alias not in self.bound and not alias.startswith("_"):
                    return ".".join((alias, *parts[i:]))
        root, statement = _IMPORTS.get(".".join(parts[:-1]), (parts[0], f"import {parts[0]}"))
        if root in self.bound or self.names.get(root, ...) is not ...:
            raise RewriteUncertain(f"{root} stands for something else")
        self.imports.append(statement)
        return f"{root}.{parts[-1]}" if root == "jnp" else path


def _ends_operand(token: _Token) -> bool:
    is_name = token.kind == tokenize.NAME and not iskeyword(token.text)
    return is_name or token.text in (")", "]", "}")


def bound_name(node: ast.AST) -> str:
    """Return the name that a node binds, or ""."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return name
        case ast.alias(name=name, asname=other):
            return other or name.partition(".")[0]
        case ast.ExceptHandler(name=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name or ""
        case _:
            return ""


def is_simple(node: ast.AST) -> bool:
    return isinstance(node, ast.stmt) and not isinstance(node, (*_COMPOUND, ast.TryStar, ast.Match))


def unit_at(whole: Unit, line: int) -> Unit:
    """Return the unit of the outermost function around a line, or of the statement outside of any function."""
    node: Any = parse(whole.text) or ast.Module([], [])
    while isinstance(node, (ast.Module, ast.ClassDef)):
        node = next((part for part in node.body if _has_line(part, line)), None)
    if node is None:
        raise RewriteUncertain("the source differs from the code that ran")
    # A `def` below an `if` or `with` of the module is one of its own.
    root = next((part for part in ast.walk(node) if isinstance(part, _FUNCTIONS) and _has_line(part, line)), node)
    copied = {"imports": [*whole.imports], "new_parameters": {**whole.new_parameters}}
    return replace(whole, start=first_line(root), end=root.end_lineno, root=root, **copied)


def _has_line(node: Any, line: int) -> bool:
    return first_line(node) <= line <= (node.end_lineno or 0)


def finding_span(finding: Finding) -> Span:
    return Span(finding.line, finding.column, finding.end_line, finding.end_column)
