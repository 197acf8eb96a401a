"""Loops at the top of a cell or script: cut the statements that only compute into functions, and run those compiled.

    for step in range(100):                  for step in range(100):
        h = jnp.tanh(x @ w)                      if 0 in WATCH: h = jnp.tanh(x @ w)
        w = w - 0.1 * (x.T @ h)        ─▶        if 1 in WATCH: w = w - 0.1 * (x.T @ h)
        print(h.mean())                          if -1 in WATCH: pass
                                                 print(h.mean())

Every statement keeps its place, frame and position, so errors come from the user's own line. The first iterations run
as written. Once they have taken long enough, each statement of one iteration is proven before it runs and its results
are checked afterwards. Neighboring statements that only compute become a function, which is counted, compiled, compared
and measured like any other (`hot.HotFunction`); until it is trusted, the statements run where they are.
"""

from __future__ import annotations

import ast
import builtins
import copy
import linecache
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, cast
from warnings import catch_warnings, simplefilter

import jax
import numpy as np

from explorer.hotpath.arguments import ARRAYS
from explorer.hotpath.compiled import Options
from explorer.hotpath.hot import HotFunction
from explorer.hotpath.proof import Proof, Refusal, prove
from explorer.hotpath.proof.syntax import Piece, own_nodes, set_piece
from explorer.model.results.hot_paths import LeftStatement, ProposedFunction

_leaves: Callable[[Any], list[Any]] = cast(Any, jax.tree).leaves
_LEAST_ITERATIONS = 3  # iterations before statements are proven
_SHARE = 0.2  # of the seconds after which a function is compiled
_NUMBERS = (bool, int, float, complex, str)


class LoopOwner:
    """Functions and options of hot paths, to which watched loops add their functions."""

    def __init__(self, functions: dict[FunctionType, HotFunction], options: Options, is_on: Callable[[], bool]) -> None:
        self._functions, self._options, self._is_on = functions, options, is_on
        self.least_seconds = options.seconds

    @property
    def on(self) -> bool:
        return self._is_on()

    def adopt(self, function: FunctionType) -> HotFunction:
        """Return the hot function of `function`, which is watched from now on.

        A function made of statements is never called: its loop runs its entrance.
        """
        hot = self._functions[function] = HotFunction(function, self._options)
        hot.watch()
        return hot


class LoopWatch:
    """Watch of the loops of one cell or script. The code evaluates `number in watch` before each statement."""

    def __init__(
        self, code: CodeType, runs: Sequence[Run], file: str, namespace: dict[str, Any], owner: LoopOwner
    ) -> None:
        # The queries of a code without runs would not exist, so its constants stay the user's.
        self.code = code.replace(co_consts=tuple(self if c == _MARK else c for c in code.co_consts)) if runs else code
        self.proposed: tuple[ProposedFunction, ...] = ()
        self.problem = ""  # reason why loops are no longer watched
        self._left: dict[int, LeftStatement] = {}
        self._file, self._namespace, self._owner = file, namespace, owner
        self._seconds = _SHARE * owner.least_seconds
        self._loops = [_Loop(run) for run in runs]
        self._loop_of = {loop.run.first + at: loop for loop in self._loops for at in range(len(loop.run.statements))}
        self._pieces: dict[int, _CutPiece] = {}
        self._current: _CutPiece | None = None  # the piece whose statements come now
        self._is_done = False  # it has run compiled
        self._mark: Any = None  # kept alive until the piece ends, which ends its timing

    @property
    def left(self) -> tuple[LeftStatement, ...]:
        """Statements of loops that run as written, with reasons; only loops that took long enough are examined."""
        return tuple(left for _, left in sorted(self._left.items()))

    def __contains__(self, number: int) -> bool:
        current = self._current
        if current is not None:
            if current.first < number < current.end:
                return not self._is_done
            self._current = self._mark = None
        piece = self._pieces.get(number)
        try:
            return self._look(number) if piece is None else self._enter(piece)
        except Exception as fault:  # our own fault must not reach the user's program
            self.problem = f"the analysis of the loop failed: {fault!r:.200}"
            self._pieces.clear()
            self._loops, self._loop_of, self._current = [], {}, None
            return True

    def _enter(self, piece: _CutPiece) -> bool:
        """Start a piece: return True if its statements are to run as written.

        Else run its compiled copy, assign the results, and return False.
        """
        namespace = self._namespace
        if piece.hot.state == "eager":
            del self._pieces[piece.first]
            return True
        if not self._owner.on:
            return True
        try:
            values = [namespace[name] for name in piece.parameters]
        except KeyError:  # deleted: the statement itself raises NameError
            return True
        result, mark = piece.enter(*values)
        self._current, self._is_done, self._mark = piece, result is not None, mark
        if result is None:
            return True
        namespace.update(zip(piece.gives, result, strict=True))
        return False

    # Before there are pieces ------------------------------------------------------------------------------------------

    def _look(self, number: int) -> bool:
        """Note a statement and return True, or for a negative number the end of a run and return False.

        After enough iterations the run is cut into functions.
        """
        if number >= 0:
            loop = self._loop_of.get(number)
            if loop is not None and loop.is_open:
                at = number - loop.run.first
                if at == 0:
                    loop.begun = perf_counter()
                if loop.is_ready:
                    self._look_at(loop, at)
            return True
        if -number <= len(self._loops):
            loop = self._loops[-number - 1]
            if loop.is_open and loop.begun:
                self._end_iteration(loop)
        return False

    def _end_iteration(self, loop: _Loop) -> None:
        loop.iterations += 1
        loop.seconds += perf_counter() - loop.begun
        if loop.is_ready:
            loop.is_open = False
            self._judge_last(loop, len(loop.run.statements))
            if len(loop.proofs) == len(loop.run.statements):
                self._cut(loop)
            return
        # A number would be a constant of the program: one that changes must stay out.
        loop.note_numbers(self._namespace)
        loop.is_ready = self._owner.on and loop.iterations >= _LEAST_ITERATIONS and loop.seconds >= self._seconds

    def _look_at(self, loop: _Loop, at: int) -> None:
        if at == 0:
            loop.proofs.clear()
        self._judge_last(loop, at)
        names = loop.names[at]
        changing = next((name for name in names.reads if name in loop.changing), None)
        outcome: Proof | Refusal
        if changing is not None:
            outcome = Refusal(f"`{changing}` is a different number in each iteration", cure="keep it in an array")
        else:
            outcome = self._proven([loop.run.statements[at]], names)
        loop.proofs.append(outcome)

    def _proven(self, statements: Sequence[ast.stmt], names: Names) -> Proof | Refusal:
        missing = [name for name in names.reads if name not in self._namespace and not hasattr(builtins, name)]
        if missing:
            return Refusal(f"`{missing[0]}` has no value yet")
        parameters = self._parameters(names)
        values = [self._namespace[name] for name in parameters]
        if any(isinstance(leaf, np.ndarray) for leaf in _leaves(values)):
            return Refusal("it computes with NumPy arrays", cure="convert them before: jnp.asarray")
        function = make_function("statement", statements, parameters, self._file, self._namespace)
        return prove(function, values, {})

    def _parameters(self, names: Names) -> list[str]:
        """Return the names to be parameters of a function: those that hold arrays or are assigned. Others are read as
        globals.
        """
        return [
            name
            for name in names.reads
            if name in self._namespace and (name in names.gives or _holds_arrays(self._namespace[name]))
        ]

    def _judge_last(self, loop: _Loop, at: int) -> None:
        if at == 0 or len(loop.proofs) < at:
            return
        values = [self._namespace.get(name) for name in loop.names[at - 1].gives]
        leaves = _leaves(values)
        if isinstance(loop.proofs[at - 1], Proof) and not (leaves and all(type(leaf) in ARRAYS for leaf in leaves)):
            loop.proofs[at - 1] = Refusal("it returns something other than arrays")

    def _cut(self, loop: _Loop) -> None:
        piece: list[int] = []
        given: set[str] = set()
        for at, proof in enumerate(loop.proofs):
            if isinstance(proof, Refusal):
                statement = loop.run.statements[at]
                file, line = proof.file or self._file, proof.line or statement.lineno
                self._left[loop.run.first + at] = LeftStatement(file, line, proof.reason, proof.cure)
            # A called function may read a module's name that the piece so far would assign only at its end.
            is_apart = isinstance(proof, Refusal) or any(
                read.where == "global" and read.holder is self._namespace and read.key in given for read in proof.reads
            )
            if is_apart and piece:
                self._add(loop, piece)
                piece, given = [], set()
            if isinstance(proof, Proof):
                piece.append(at)
                given.update(loop.names[at].gives)
        if piece:
            self._add(loop, piece)

    def _add(self, loop: _Loop, places: Sequence[int]) -> None:
        statements = [loop.run.statements[at] for at in places]
        names = names_of(statements)
        parameters = self._parameters(names)
        name = name_of(statements, {one.name: one for one in self.proposed})
        function = make_function(name, statements, parameters, self._file, self._namespace)
        hot = self._owner.adopt(function)
        # An estimate is enough: it only decides when to compile.
        hot.ran_before(loop.iterations, loop.seconds * len(places) / len(loop.run.statements))
        first = loop.run.first + places[0]
        self._pieces[first] = _CutPiece(first, first + len(places), parameters, names.gives, hot)
        first_line, last_line = statements[0].lineno, statements[-1].end_lineno or 0
        text = text_of(name, statements, parameters, linecache.getlines(self._file))
        self.proposed += (ProposedFunction(name, self._file, first_line, last_line, text, loop.iterations),)


class _Loop:
    def __init__(self, run: Run) -> None:
        self.run = run
        self.names = [names_of([statement]) for statement in run.statements]
        self.iterations, self.seconds, self.begun = 0, 0.0, 0.0
        self.is_open, self.is_ready = True, False
        self.changing: set[str] = set()
        self.proofs: list[Proof | Refusal] = []
        self._numbers: dict[str, Any] = {}

    def note_numbers(self, namespace: Mapping[str, Any]) -> None:
        for name in {name for names in self.names for name in names.reads}:
            value = namespace.get(name)
            if type(value) in _NUMBERS:
                before = self._numbers.setdefault(name, value)
                if type(before) is not type(value) or before != value:
                    self.changing.add(name)


class _CutPiece:
    def __init__(self, first: int, end: int, parameters: Sequence[str], gives: Sequence[str], hot: HotFunction) -> None:
        self.first, self.end, self.parameters, self.gives, self.hot = first, end, parameters, gives, hot
        self.enter = hot.entrance()


def _holds_arrays(value: Any) -> bool:
    leaves = _leaves(cast(Any, value)) if isinstance(value, (list, tuple, dict)) else [value]
    return any(type(leaf) in ARRAYS or isinstance(leaf, np.ndarray) for leaf in leaves)


Compile = Callable[[ast.Module, str, str], CodeType]  # as Python's own, and IPython's


def compile_tree(tree: ast.Module, file: str, mode: str) -> CodeType:
    """Return the code of a tree, compiled as Python does, without this file's `from __future__` flags."""
    return compile(tree, file, mode, dont_inherit=True)


def prepare(
    tree: ast.Module, file: str, namespace: dict[str, Any], owner: LoopOwner, *, compile: Compile = compile_tree
) -> LoopWatch:
    """Return the watch of a cell or script, with its code; raise SyntaxError.

    The code has the same names, output and errors, from the same lines, as without. Its loops run repeated computations
    compiled.
    """
    plain = compile(tree, file, "exec")  # first: warnings and errors are those of the user's text
    try:
        body, runs = instrument(tree)
        with catch_warnings():
            simplefilter("ignore")
            code = compile(ast.Module(body, tree.type_ignores), file, "exec") if runs else plain
    except (RecursionError, SyntaxError, ValueError):  # nested too deep to walk, or to nest one level more
        code, runs = plain, []
    return LoopWatch(code, runs, file, namespace, owner)


# Source: statements, names and functions

# A syntax tree can't hold the watch itself: `compile` takes no other objects.
_MARK = "<explorer: watch>"  # constant in the queries, replaced by the `LoopWatch`
_Simple = ast.Assign | ast.AugAssign
_NEVER = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)  # these mean something else inside a function
_COMPUTING = (ast.BinOp, ast.UnaryOp, ast.Call, ast.Subscript, ast.Compare)


@dataclass(frozen=True, slots=True)
class Run:
    """Consecutive statements in one block of a loop that might be compiled."""

    first: int  # number of its first statement
    statements: tuple[_Simple, ...]


def instrument(tree: ast.Module) -> tuple[list[ast.stmt], list[Run]]:
    """Return a copy of the module's statements with queries in its loops, and the runs of statements they ask about.

    A query is `if NUMBER in WATCH:` around a statement. Functions and classes stay untouched, and so does a module with
    `await` at its top level.
    """
    if any(isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) for node in own_nodes(tree.body)):
        return tree.body, []
    walker = _Instrumenter()
    return walker.block(copy.deepcopy(tree).body, is_in_loop=False), walker.runs


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
        queries: list[ast.stmt] = [_query(first + at, one, [one]) for at, one in enumerate(run)]
        # The end has a query of its own: only there are the results of the last statement known.
        return [*queries, _query(-len(self.runs), run[-1], [ast.copy_location(ast.Pass(), run[-1])])]


def _query(number: int, place: ast.stmt, body: list[ast.stmt]) -> ast.If:
    test = ast.Compare(ast.Constant(number), [ast.In()], [ast.Constant(_MARK)])
    return ast.fix_missing_locations(ast.copy_location(ast.If(test, body, []), place))


def may_move(statement: _Simple) -> bool:
    """Return True if a statement might work inside a function: it assigns the result of a computation to names."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    return (
        all(map(_are_names, targets))
        and any(isinstance(node, _COMPUTING) for node in ast.walk(statement.value))
        and not any(isinstance(node, _NEVER) for node in ast.walk(statement))
    )


def _are_names(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_are_names, target.elts))
    return isinstance(target, ast.Name)


_INDENT = "    "
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)


@dataclass(frozen=True, slots=True)
class Names:
    reads: tuple[str, ...]  # names whose earlier value may be read, in order
    gives: tuple[str, ...]  # assigned names, in order


def names_of(statements: Iterable[ast.stmt]) -> Names:
    reads: dict[str, None] = {}
    gives: dict[str, None] = {}
    for statement in statements:
        uses = list(_uses(statement, frozenset()))
        if isinstance(statement, ast.AugAssign):
            # `x += 1` reads `x` too, and the tree shows only the store.
            uses.append((ast.unparse(statement.target), False))
        reads.update((name, None) for name, is_given in uses if not is_given and name not in gives)
        gives.update((name, None) for name, is_given in uses if is_given)
    return Names(tuple(reads), tuple(gives))


def _uses(node: ast.AST, bound: frozenset[str]) -> Iterable[tuple[str, bool]]:
    """Yield pairs of a name and True if it is assigned, False if read, without names bound by lambdas and
    comprehensions.
    """
    if isinstance(node, ast.Name):
        if node.id not in bound:
            yield node.id, not isinstance(node.ctx, ast.Load)
        return
    if isinstance(node, _COMPREHENSIONS):
        yield from _uses(node.generators[0].iter, bound)  # evaluated in the enclosing scope
    inner = bound | _bound_by(node)
    for child in ast.iter_child_nodes(node):
        # So are the defaults of a lambda.
        yield from _uses(child, bound if isinstance(child, ast.arguments) else inner)


def _bound_by(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Lambda):
        return {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
    targets = [generator.target for generator in node.generators] if isinstance(node, _COMPREHENSIONS) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def make_function(
    name: str, statements: Sequence[ast.stmt], parameters: Sequence[str], file: str, namespace: dict[str, Any]
) -> FunctionType:
    """Return a function that runs the statements and returns a tuple of the values that they assign.

    Its lines are those of the statements. Its code has no ordinary name, so that counters of calls ignore it.
    """
    gives = names_of(statements).gives
    first, last = statements[0], statements[-1]
    result = ast.Return(ast.Tuple([ast.Name(one, ast.Load()) for one in gives], ast.Load()))
    ast.copy_location(result, last)
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
    first, last = statements[0], statements[-1]
    kept = [line.rstrip() for line in lines[first.lineno - 1 : last.end_lineno]]
    if kept and not kept[0][: first.col_offset].strip() and first.lineno != getattr(last, "lineno", 0):
        margin = first.col_offset
        kept = [line[margin:] if not line[:margin].strip() else line for line in kept]
    else:  # several statements on one line
        kept = [ast.unparse(statement) for statement in statements]
    gives = ", ".join(names_of(statements).gives)
    body = [f"{_INDENT}{line}".rstrip() for line in kept]
    return "\n".join([f"def {name}({', '.join(parameters)}):", *body, f"{_INDENT}return {gives}"])


def name_of(statements: Sequence[ast.stmt], taken: Mapping[str, Any]) -> str:
    """Return a name that isn't in `taken`: after the variables carried between iterations, else after the last
    assignment.
    """
    names = names_of(statements)
    carried = [name for name in names.gives if name in names.reads]
    what = "update_" + "_and_".join(carried[:2]) if carried else f"compute_{names.gives[-1]}"
    name, count = what, 1
    while name in taken:
        count += 1
        name = f"{what}_{count}"
    return name
