"""The statements in the loops of a cell or script that might be compiled, each with a question before it.

    for step in range(100):                  for step in range(100):
        h = jnp.tanh(x @ w)                      if 0 in TURNS: h = jnp.tanh(x @ w)
        w = w - 0.1 * (x.T @ h)        ─▶        if 1 in TURNS: w = w - 0.1 * (x.T @ h)
        print(h.mean())                          if -1 in TURNS: pass
                                                 print(h.mean())

Every statement stays where it stands, in the frame and with the position that it had: what runs as it was written is
what was written. Whoever is asked may have done what a statement does, and its neighbours, and says so.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import CodeType

_MARK = "<explorer: who is asked>"
_Simple = ast.Assign | ast.AugAssign
_NEVER = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)  # in a statement that moves into a function


@dataclass(frozen=True, slots=True)
class Run:
    """Statements one after another in one block of a loop, each of which might be compiled.

    Args:
        first: The number of its first statement; the others count on.
        statements: The statements.
    """

    first: int
    statements: tuple[_Simple, ...]


@dataclass(frozen=True, slots=True)
class Questions:
    """A module with its questions.

    Args:
        body: Its statements.
        runs: What is asked about, in the order of the text.
    """

    body: list[ast.stmt]
    runs: tuple[Run, ...]


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
