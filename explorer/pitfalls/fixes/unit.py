"""A function of the user's as a concrete syntax tree: what rewrites work on."""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from explorer.capture.safe_reading import is_exactly, member
from explorer.capture.sources import Span, parse
from explorer.model.attached import cached_property
from explorer.model.findings import Finding
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.syntax_trees import first_line

_Node = TypeVar("_Node", bound=cst.CSTNode)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class RewriteUncertain(Exception):
    """A rewrite that may change more than it should; it isn't offered."""


@dataclass
class Unit:
    """The outermost function around a piece of text, or the statement, where it stands in none.

    Args:
        file: The name that frames carry.
        text: All of the file.
        start, end: The first and last line of the function, from 1.
        names: What the names of its module stand for.
        main: The first line of the function that was linted, if it is in this file.
        imports: The statements that a rewrite turned out to need.
        new_parameters: What a rewrite adds to the parameters of that function: an expression for each first argument.
        evidence: Of the trace that the findings are of.
    """

    file: str
    text: str
    start: int
    end: int
    names: Mapping[str, Any]
    main: int = 0
    imports: list[str] = field(default_factory=list[str])
    new_parameters: dict[str, str] = field(default_factory=dict[str, str])
    evidence: Evidence | None = None

    @cached_property
    def lines(self) -> Sequence[str]:
        return self.text.splitlines(keepends=True)

    @cached_property
    def own(self) -> str:
        """The function's own lines."""
        return "".join(self.lines[self.start - 1 : self.end])

    @cached_property
    def _head(self) -> str:
        """What has to stand above lines that are indented, for them to be a module's."""
        return "if 1:\n" if self.own.startswith((" ", "\t")) else ""

    @cached_property
    def _wrapper(self) -> MetadataWrapper:
        return MetadataWrapper(cst.parse_module(self._head + self.own))

    def parsed(self, own: str) -> cst.Module:
        """Another text of the function's own lines, as `module` is."""
        return cst.parse_module(self._head + own)

    @property
    def module(self) -> cst.Module:
        return self._wrapper.module

    @cached_property
    def _spans(self) -> Mapping[cst.CSTNode, Any]:
        return self._wrapper.resolve(PositionProvider)

    def span(self, node: cst.CSTNode) -> Span:
        """Where a node is in the file, as Python counts."""
        place = self._spans[node]
        down = self.start - 1 - bool(self._head)
        first, last = place.start.line + down, place.end.line + down
        return Span(first, self._bytes(first, place.start.column), last, self._bytes(last, place.end.column))

    def _bytes(self, line: int, column: int) -> int:
        text = self.lines[line - 1] if 0 < line <= len(self.lines) else ""
        return len(text[:column].encode())

    def nodes(self, kind: type[_Node], within: Span | None = None) -> Iterator[_Node]:
        """The nodes of a kind, in the order of the text; those within a piece of it, if one is given."""
        nodes = [node for node in self._spans if isinstance(node, kind)]
        nodes = [node for node in nodes if within is None or self.span(node) in within]
        yield from sorted(nodes, key=lambda node: (self.span(node)[:2], [-n for n in self.span(node)[2:]]))

    def around(self, kind: type[_Node], span: Span) -> Iterator[_Node]:
        """The nodes of a kind that a piece of the text is in, the innermost first."""
        nodes = [node for node in self._spans if isinstance(node, kind) and span in self.span(node)]
        yield from sorted(nodes, key=lambda node: (self.span(node)[2:], [-n for n in self.span(node)[:2]]))

    def at(self, span: Span, kind: type[_Node]) -> _Node:
        """The node that is exactly there, or else the smallest around it in the same line."""
        for node in self.around(kind, span):
            if self.span(node) == span or self.span(node).line == span.line:
                return node
        raise RewriteUncertain(f"no {kind.__name__} at line {span.line}")

    def source(self, node: cst.CSTNode) -> str:
        return self.module.code_for_node(node)

    @cached_property
    def bound(self) -> frozenset[str]:
        """The names that the function binds itself, in nested functions too."""
        tree = parse(self._head + self.own)
        return frozenset() if tree is None else frozenset(map(_bound_name, ast.walk(tree))) - {""}

    def unused_name(self, name: str) -> str:
        """A name that nothing has here yet."""
        attributes = {id(node.attr) for node in self.nodes(cst.Attribute)}
        taken = {node.value for node in self.nodes(cst.Name) if id(node) not in attributes} | set(self.names)
        return next(one for one in (name, *(f"{name}_{i}" for i in range(2, 1000))) if one not in taken)

    def resolve(self, node: cst.BaseExpression) -> Any:
        """What a name, or attributes of a module's name, stand for; `Ellipsis` if that isn't known."""
        if isinstance(node, cst.Name):
            if node.value in self.bound:
                return ...
            return self.names.get(node.value, getattr(builtins, node.value, ...))
        if isinstance(node, cst.Attribute):
            owner = self.resolve(node.value)
            return member(owner, node.attr.value) if is_exactly(owner, ModuleType) else ...
        return ...

    def qualified_name(self, path: str) -> str:
        """How to write `jax.debug.print` here: by the module's own name for what is in it, else with an import."""
        parts = path.split(".")
        for i in range(len(parts) - 1, 0, -1):  # `jnp.sin` if the module knows jax.numpy, else from what jax is called
            alias = self._alias(".".join(parts[:i]))
            if alias:
                return ".".join((alias, *parts[i:]))
        root, statement = _IMPORTS.get(".".join(parts[:-1]), (parts[0], f"import {parts[0]}"))
        if root in self.bound or self.names.get(root, ...) is not ...:
            raise RewriteUncertain(f"{root} stands for something else")
        self.imports.append(statement)
        return f"{root}.{parts[-1]}" if root == "jnp" else path

    def _alias(self, module: str) -> str:
        """The name that the user's module has for another; empty if it has none that holds in the function."""
        imported = sys.modules.get(module)
        aliases = (name for name, value in self.names.items() if value is imported is not None)
        return next((name for name in aliases if name not in self.bound and not name.startswith("_")), "")

    def file_text(self, changed: cst.Module) -> str:
        """All of the file, with the function as it is now."""
        own = changed.code
        if self._head:
            own = own.partition("\n")[2]
        return "".join(self.lines[: self.start - 1]) + own + "".join(self.lines[self.end :])

    def standalone_code(self, changed: cst.Module) -> str:
        """The function as it is now, by itself: not indented, under the imports that it needs."""
        first: Any = changed.body[0]
        text = (cst.Module(body=[*first.body.body]) if self._head else changed).code
        imports = [*dict.fromkeys(self.imports)]
        return "".join(f"{line}\n" for line in imports) + ("\n\n" if imports else "") + text.lstrip("\n")


def _bound_name(node: ast.AST) -> str:
    """The name that a node binds; empty if it binds none."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()) | ast.arg(arg=name):
            return name
        case ast.alias(name=name, asname=other):
            return other or name.partition(".")[0]
        case ast.ExceptHandler(name=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name or ""
        case _:
            return ""


_IMPORTS = {"jax.numpy": ("jnp", "import jax.numpy as jnp")}


def unit_at(whole: Unit, line: int) -> Unit:
    """The outermost function of a file around a line; the statement, where it stands in none."""
    tree = parse(whole.text)
    block: Sequence[ast.AST] = tree.body if tree is not None else ()
    while True:
        node: Any = next((one for one in block if first_line(one) <= line <= getattr(one, "end_lineno", 0)), None)
        if node is None:
            raise RewriteUncertain("the text isn't what ran")
        inner = [
            part for part in ast.walk(node) if isinstance(part, _FUNCTIONS) and first_line(part) <= line <= _last(part)
        ]
        if isinstance(node, ast.ClassDef):
            block = node.body
            continue
        # A `def` below an `if` or `with` of the module is one of its own.
        outermost = next(iter(inner), node)
        return replace(
            whole,
            start=first_line(outermost),
            end=_last(outermost),
            imports=[*whole.imports],
            new_parameters={**whole.new_parameters},
        )


def _last(node: Any) -> int:
    return node.end_lineno or node.lineno


def finding_span(finding: Finding) -> Span:
    """The piece of the file that a finding means."""
    return Span(finding.line, finding.column, finding.end_line, finding.end_column)


def replace_node(unit: Unit, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    changed = unit.module.deep_replace(old, new)
    assert isinstance(changed, cst.Module)
    return changed


def descendants(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all that it is made of, in the order of the text."""
    yield node
    for child in node.children:
        yield from descendants(child)


class _Replacing(cst.CSTTransformer):
    def __init__(self, new: Sequence[tuple[cst.CSTNode, cst.CSTNode]]) -> None:
        super().__init__()
        self.new = {id(old): one for old, one in new}

    def on_leave(self, original_node: Any, updated_node: Any) -> Any:
        return self.new.get(id(original_node), updated_node)


def replace_parts(node: _Node, new: Sequence[tuple[cst.CSTNode, cst.CSTNode]]) -> _Node:
    """A node with others in the place of several of its parts."""
    changed: Any = node.visit(_Replacing(new))
    return changed


def parenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """An expression as it can stand beside any operator."""
    simple = isinstance(node, cst.Name | cst.Attribute | cst.Call | cst.Subscript | cst.BaseNumber) or node.lpar
    return node if simple else node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def parse_expression(text: str) -> cst.BaseExpression:
    return cst.parse_expression(re.sub(r"\s*\n\s*", " ", text) if "\n" in text and "(" not in text else text)
