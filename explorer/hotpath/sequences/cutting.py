"""The statements in the loops of a cell or script that might be compiled, each with a question before it.

    for step in range(100):                  for step in range(100):
        h = jnp.tanh(x @ w)                      if 0 in TURNS: h = jnp.tanh(x @ w)
        w = w - 0.1 * (x.T @ h)        ─▶        if 1 in TURNS: w = w - 0.1 * (x.T @ h)
        print(h.mean())                          if -1 in TURNS: pass
                                                 print(h.mean())

Every statement stays where it stands, in the frame and with the position that it had: what runs as it was written is
what was written. Whoever is asked may have done what a statement does, and its neighbours, and says so. Neighbours that
only compute become a function, `make_function`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from explorer.hotpath.proof.syntax import Piece, set_piece

_MARK = "<explorer: who is asked>"
_Simple = ast.Assign | ast.AugAssign
_NEVER = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)  # in a statement that moves into a function


@dataclass(frozen=True, slots=True)
class Run:
    """Statements one after another in one block of a loop, each of which might be compiled."""

    first: int  # the number of its first statement; the others count on
    statements: tuple[_Simple, ...]  # the statements


@dataclass(frozen=True, slots=True)
class Questions:
    body: list[ast.stmt]  # its statements
    runs: tuple[Run, ...]  # what is asked about, in the order of the text


def instrument(tree: ast.Module) -> Questions:
    """Put questions before the statements in a module's loops, in a copy of it.

    What can't be moved is left alone: functions and classes, and all of a module that awaits something at its top.
    """
    if any(isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in _own(tree.body)):
        return Questions(tree.body, ())
    walker = _Instrumenter()
    return Questions(walker.block(copy.deepcopy(tree).body, is_in_loop=False), tuple(walker.runs))


def with_target(code: CodeType, target: object) -> CodeType:
    """The code with somebody to ask: `target` gets each question by `in`."""
    return code.replace(co_consts=tuple(target if constant == _MARK else constant for constant in code.co_consts))


class _Instrumenter:
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self._count = 0

    def block(self, body: Sequence[ast.stmt], is_in_loop: bool) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        run: list[_Simple] = []
        for statement in body:
            if is_in_loop and isinstance(statement, _Simple) and may_move(statement):
                run.append(statement)
                continue
            result += self._instrumented(run)
            run = []
            self._go_into(statement, is_in_loop)
            result.append(statement)
        return result + self._instrumented(run)

    def _go_into(self, statement: ast.stmt, is_in_loop: bool) -> None:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return
        is_loop = isinstance(statement, (ast.For, ast.While))
        for name in ("body", "orelse", "finalbody"):
            inner: list[ast.stmt] | None = getattr(statement, name, None)
            if inner:
                setattr(statement, name, self.block(inner, is_in_loop or (is_loop and name == "body")))
        for holder in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            holder.body = self.block(holder.body, is_in_loop)

    def _instrumented(self, run: Sequence[_Simple]) -> list[ast.stmt]:
        if not run:
            return []
        first = self._count
        self._count += len(run)
        self.runs.append(Run(first, tuple(run)))
        questions: list[ast.stmt] = [_query(first + at, one, [one]) for at, one in enumerate(run)]
        return [*questions, _query(-len(self.runs), run[-1], [ast.copy_location(ast.Pass(), run[-1])])]


def _query(number: int, place: ast.stmt, body: list[ast.stmt]) -> ast.If:
    question = ast.If(
        ast.Compare(ast.Constant(number), [ast.In()], [ast.Constant(_MARK)]),
        body,
        [],
    )
    for node in (question, *ast.walk(question.test)):
        if isinstance(node, (ast.expr, ast.stmt)):
            ast.copy_location(node, place)
    return question


def may_move(statement: _Simple) -> bool:
    """Whether a statement might do the same in a function: it gives names what an expression computes."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return (
        all(map(_are_names, targets))
        and _computes(statement.value)
        and not any(isinstance(node, _NEVER) for node in ast.walk(statement))
    )


def _are_names(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_are_names, target.elts))
    return isinstance(target, ast.Name)


def _computes(value: ast.expr) -> bool:
    """Whether there is something in it to compile: an operation, a call, an index."""
    kinds = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Compare)
    return any(isinstance(node, kinds) for node in ast.walk(value))


def _own(body: Iterable[ast.stmt]) -> Iterable[ast.AST]:
    """The nodes of a module without those of functions and classes in it."""
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(node))


_INDENT = "    "
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class Names:
    # those whose value from before the statements may be read, in the order of the text; free names of functions and
    # comprehensions inside included
    reads: tuple[str, ...]
    gives: tuple[str, ...]  # those that get a value, in that order


def names_of(statements: Iterable[ast.stmt]) -> Names:
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
    """The same function as a person would write it."""
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
