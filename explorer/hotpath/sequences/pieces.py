"""A function made of statements of a cell or script."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from explorer.hotpath.proof.syntax import Piece, set_piece

_INDENT = "    "
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class Names:
    """The names that statements read and give.

    Args:
        reads: Those whose value from before the statements may be read, in the order of the text; free names of
            functions and comprehensions inside included.
        gives: Those that get a value, in that order.
    """

    reads: tuple[str, ...]
    gives: tuple[str, ...]


def names_of(statements: Iterable[ast.stmt]) -> Names:
    """The names of some assignments, one after another."""
    reads: dict[str, None] = {}
    gives: dict[str, None] = {}
    for statement in statements:
        uses = list(_uses(statement, frozenset()))
        if isinstance(statement, ast.AugAssign):
            uses.append((ast.unparse(statement.target), False))
        reads.update((name, None) for name, is_given in uses if not is_given and name not in gives)
        gives.update((name, None) for name, is_given in uses if is_given)
    return Names(tuple(reads), tuple(gives))


def _uses(node: ast.AST, bound: frozenset[str]) -> Iterable[tuple[str, bool]]:
    """Each name, and whether it gets a value; without those that lambdas and comprehensions bind for themselves."""
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node.id, not isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, _COMPREHENSIONS):
        yield from _uses(node.generators[0].iter, bound)  # evaluated outside
    inner = bound | _bound_by(node)
    for child in ast.iter_child_nodes(node):
        # The defaults of a lambda are evaluated outside, too.
        yield from _uses(child, bound if isinstance(child, ast.arguments) else inner)


def _bound_by(node: ast.AST) -> set[str]:
    """The names that a lambda or comprehension has for itself."""
    if isinstance(node, ast.Lambda):
        return {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    targets = [generator.target for generator in node.generators] if isinstance(node, _COMPREHENSIONS) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def make_function(
    name: str, statements: Sequence[ast.stmt], parameters: Sequence[str], file: str, namespace: dict[str, Any]
) -> FunctionType:
    """A function that does what statements do, and gives a tuple of what they give names.

    Its lines are those of the statements. Who counts calls doesn't count this one's: its code has no name.

    Args:
        name: Its name.
        statements: Assignments to names.
        parameters: The names that it is given; others it reads from the namespace.
        file: Where the statements stand.
        namespace: The cell's or script's.
    """
    gives = names_of(statements).gives
    first, last = statements[0], statements[-1]
    result = ast.Return(ast.Tuple([ast.Name(one, ast.Load()) for one in gives], ast.Load()))
    for node in ast.walk(result):
        if isinstance(node, (ast.expr, ast.stmt)):
            ast.copy_location(node, last)
    node = ast.FunctionDef(
        name,
        ast.arguments([], [ast.arg(one) for one in parameters], None, [], [], None, []),
        [*copy.deepcopy(list(statements)), result],
        [],
    )
    if "type_params" in ast.FunctionDef._fields:  # from Python 3.12 on
        setattr(node, "type_params", [])  # noqa: B010 - the types are those of 3.11
    ast.copy_location(node, first)
    ast.fix_missing_locations(node)
    top = compile(ast.Module([node], []), file, "exec", dont_inherit=True)
    code = next(constant for constant in top.co_consts if isinstance(constant, CodeType))
    function = FunctionType(code.replace(co_name="<piece>"), namespace, name)
    function.__qualname__ = name
    set_piece(function, Piece(node, frozenset(names_of(statements[:-1]).gives)))
    return function


def text_of(name: str, statements: Sequence[ast.stmt], parameters: Sequence[str], lines: Sequence[str]) -> str:
    """The same function as a person would write it.

    Args:
        lines: Of the cell or script; none where they can't be had.
    """
    first, last = statements[0], statements[-1]
    kept = [line.rstrip() for line in lines[first.lineno - 1 : last.end_lineno]]
    if kept and not kept[0][: first.col_offset].strip() and first.lineno != getattr(last, "lineno", 0):
        margin = first.col_offset
        kept = [line[margin:] if not line[:margin].strip() else line for line in kept]
    else:  # on one line with others
        kept = [ast.unparse(statement) for statement in statements]
    gives = ", ".join(names_of(statements).gives)
    body = [f"{_INDENT}{line}".rstrip() for line in kept]
    return "\n".join([f"def {name}({', '.join(parameters)}):", *body, f"{_INDENT}return {gives}"])


def name_of(statements: Sequence[ast.stmt], taken: Mapping[str, Any]) -> str:
    """A name for what statements do: after what they carry on from turn to turn, else after what comes last."""
    names = names_of(statements)
    carried = [name for name in names.gives if name in names.reads]
    what = "update_" + "_and_".join(carried[:2]) if carried else f"compute_{names.gives[-1]}"
    name, count = what, 1
    while name in taken:
        count += 1
        name = f"{what}_{count}"
    return name
