"""Syntax tree of a function, checked against the code that it was compiled to."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

from explorer.capture.sources import Span, compiled_text
from explorer.hotpath.proof.values import NotProven, Read
from explorer.hotpath.swap import code_of

_KEY = "__explorer_piece__"  # in a function's __dict__, which copies inherit


@dataclass(frozen=True, slots=True)
class Piece:
    """Source of a function that Explorer built from statements of a loop."""

    node: ast.FunctionDef
    gives: frozenset[str]  # names that it assigns before its last statement; in the module they are set only at its end


def set_piece(function: FunctionType, piece: Piece) -> None:
    function.__dict__[_KEY] = piece


def piece_of(function: FunctionType) -> Piece | None:
    piece = function.__dict__.get(_KEY)
    return piece if isinstance(piece, Piece) else None


def check_names(function: FunctionType, reads: Iterable[Read]) -> None:
    """Raise NotProven if functions called by a piece read module names that the piece assigns: they would see old
    values.

    A piece is a function that Explorer built from statements of a loop.
    """
    piece = piece_of(function)
    if piece is None:
        return
    for read in reads:
        if read.where == "global" and read.holder is function.__globals__ and read.key in piece.gives:
            raise NotProven(f"it changes `{read.key}`, which a function that it calls reads", "pass it as an argument")


_FUTURE = 0x1FF_0000  # code flags of `from __future__ import`
FunctionNode = ast.FunctionDef | ast.Lambda


def node_of(function: FunctionType) -> FunctionNode | None:
    """Return the `def` or `lambda` of a function; None if its source is unavailable or isn't what was compiled.

    The source is compiled again and the code compared, which detects edited files and source rewritten by a tool.
    """
    piece = piece_of(function)
    if piece is not None:
        return piece.node
    code = code_of(function)
    text, flags = compiled_text(code.co_filename), code.co_flags & _FUTURE
    for is_cell in (False, True):
        pairs = _functions(text, code.co_filename, flags, is_cell)
        for node, compiled in pairs.get((code.co_firstlineno, code.co_name), ()):
            if _is_equal(code, compiled):
                return node
    return None


# A file is compiled again to compare its functions' codes: once for all of them.
@lru_cache(maxsize=64)
def _functions(
    text: str, file: str, flags: int, is_cell: bool
) -> dict[tuple[int, str], list[tuple[FunctionNode, CodeType]]]:
    """Return the functions of a source text with their code, by first line and name.

    IPython compiles each statement of a cell separately, which gives other code: a method call on a name imported in
    the same module is compiled as attribute and call (CPython's is_import_originated).
    """
    try:
        tree = ast.parse(text)
        parts = [ast.Module([statement], []) for statement in tree.body] if is_cell else [tree]
        tops = [compile(part, file, "exec", flags=flags, dont_inherit=True) for part in parts]
    except (SyntaxError, ValueError, RecursionError):
        return {}
    nodes: dict[tuple[int, str], list[FunctionNode]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            nodes.setdefault((node.lineno, "<lambda>"), []).append(node)
        elif isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            nodes.setdefault((first, node.name), []).append(node)
    functions: dict[tuple[int, str], list[tuple[FunctionNode, CodeType]]] = {}
    for code in (code for top in tops for code in _codes(top)):
        key = code.co_firstlineno, code.co_name
        node = next((node for node in nodes.get(key, ()) if _holds(node, code)), None)
        if node is not None:
            functions.setdefault(key, []).append((node, code))
    return functions


def own_nodes(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield nodes and their children, without the insides of functions and classes."""
    for node in nodes:
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            yield from own_nodes(ast.iter_child_nodes(node))


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _holds(node: FunctionNode, code: CodeType) -> bool:
    """Return True if the code's parameters and positions belong to the node."""
    arguments = node.args
    names = tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    if names != code.co_varnames[: len(names)]:
        return False
    if isinstance(node, ast.FunctionDef):
        return True
    body = Span.of(node.body)
    # A position without width is no expression but the RESUME instruction.
    places = [(p[0], p[2]) for p in code.co_positions() if None not in p and (p[0], p[2]) != (p[1], p[3])]
    return bool(places) and all(body[:2] <= place < body[2:] for place in places)


def _is_equal(first: CodeType, second: CodeType) -> bool:
    same = (
        first.co_code == second.co_code
        and first.co_names == second.co_names
        and first.co_varnames == second.co_varnames
        and first.co_freevars == second.co_freevars
        and first.co_cellvars == second.co_cellvars
        and first.co_exceptiontable == second.co_exceptiontable
        and len(first.co_consts) == len(second.co_consts)
    )
    return same and all(map(_is_same_constant, first.co_consts, second.co_consts))


def _is_same_constant(first: object, second: object) -> bool:
    if isinstance(first, CodeType) and isinstance(second, CodeType):
        return _is_equal(first, second)
    # By text: 0.0 equals -0.0, and a tuple with 1 one with True.
    return type(first) is type(second) and repr(first) == repr(second)
