"""Loops at the top of a cell or script: their turns are counted, looked at, and run by compiled functions.

The first turns run as they are written. Once they took long enough, each statement of one turn is proven by itself
before it runs, and what it gave is looked at after. Neighbours that only compute become a function; it is counted,
compiled, compared and measured as any other (`hot.HotFunction`), but as long as it isn't trusted the statements
run where they stand. So an error comes from the user's own line, with all that was assigned until then.
"""

from __future__ import annotations

import ast
import builtins
import linecache
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, Protocol, cast
from warnings import catch_warnings, simplefilter

import jax
import numpy as np

from explorer.hotpath.arguments import ARRAYS
from explorer.hotpath.proof import Proof, Refusal, prove
from explorer.hotpath.sequences.cutting import (
    Names,
    Run,
    instrument,
    make_function,
    name_of,
    names_of,
    text_of,
    with_target,
)
from explorer.model.results.hot_paths import LeftStatement, ProposedFunction

_leaves: Callable[[Any], list[Any]] = cast(Any, jax.tree).leaves
_TURNS = 3  # before anything is looked at
_SHARE = 0.2  # of the time after which a function is compiled
_NUMBERS = (bool, int, float, complex, str)


class Hot(Protocol):
    """A function that is called often; `hot.HotFunction`."""

    @property
    def state(self) -> str: ...

    def ran_before(self, calls: int, seconds: float) -> None: ...

    def entrance(self) -> Callable[..., tuple[Any, Any]]: ...


class HotPaths(Protocol):
    """Who has functions compiled; `auto.AutoCompile`."""

    @property
    def on(self) -> bool: ...

    @property
    def least_seconds(self) -> float: ...

    def adopt(self, function: FunctionType) -> Hot: ...


class Turns:
    """Asked before each statement in the loops of one cell or script: `number in turns` says if it is to run."""

    def __init__(self, runs: Sequence[Run], file: str, namespace: dict[str, Any], paths: HotPaths) -> None:
        self.proposed: list[ProposedFunction] = []
        self.left: dict[int, LeftStatement] = {}
        self.problem = ""
        self._file, self._namespace, self._paths = file, namespace, paths
        self._seconds = _SHARE * paths.least_seconds
        self._loops = [_Loop(run) for run in runs]
        self._loop_of = {loop.run.first + at: loop for loop in self._loops for at in range(len(loop.run.statements))}
        self._pieces: dict[int, _CutPiece] = {}
        self._current: _CutPiece | None = None  # the piece whose statements come now
        self._is_done = False  # whether it has run, compiled
        self._mark: Any = None

    def __contains__(self, number: int) -> bool:
        current = self._current
        if current is not None:
            if current.first < number < current.end:
                return not self._is_done
            self._current = self._mark = None
        piece = self._pieces.get(number)
        try:
            return self._look(number) if piece is None else self._enter(piece)
        except Exception as fault:  # of ours; the program goes on as it is written
            self.problem = f"looking at the loop failed: {fault!r:.200}"
            self._pieces.clear()
            self._loops, self._loop_of, self._current = [], {}, None
            return True

    def _enter(self, piece: _CutPiece) -> bool:
        """A piece begins: whether its statements run as they are written."""
        namespace = self._namespace
        if piece.hot.state == "eager":
            del self._pieces[piece.first]
            return True
        if not self._paths.on:
            return True
        try:
            values = [namespace[name] for name in piece.parameters]
        except KeyError:  # deleted: the statement says so itself
            return True
        result, mark = piece.enter(*values)
        self._current, self._is_done, self._mark = piece, result is not None, mark
        if result is None:
            return True
        namespace.update(zip(piece.gives, result, strict=True))
        return False

    # Before there are pieces ------------------------------------------------------------------------------------------

    def _look(self, number: int) -> bool:
        """A statement comes, or the end of its run: learn from the turns until there is enough to cut."""
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
                self._end_turn(loop)
        return False

    def _end_turn(self, loop: _Loop) -> None:
        loop.turns += 1
        loop.seconds += perf_counter() - loop.begun
        if loop.is_ready:
            loop.is_open = False
            self._judge_last(loop, len(loop.run.statements))
            if len(loop.proofs) == len(loop.run.statements):
                self._cut(loop)
            return
        loop.note_numbers(self._namespace)
        loop.is_ready = self._paths.on and loop.turns >= _TURNS and loop.seconds >= self._seconds

    def _look_at(self, loop: _Loop, at: int) -> None:
        """Prove a statement by itself, with the values that it is about to read."""
        if at == 0:
            loop.proofs.clear()
        self._judge_last(loop, at)
        names = loop.names[at]
        changing = next((name for name in names.reads if name in loop.changing), None)
        outcome: Proof | Refusal
        if changing is not None:
            outcome = Refusal(f"`{changing}` is another number at each turn", cure="keep it in an array")
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
            return Refusal("it computes with arrays of NumPy's", cure="make them JAX's before: jnp.asarray")
        function = make_function("statement", statements, parameters, self._file, self._namespace)
        return prove(function, values, {})

    def _parameters(self, names: Names) -> list[str]:
        """What of its names a function takes: those that hold arrays, or that it gives again. It reads the others."""
        return [
            name
            for name in names.reads
            if name in self._namespace and (name in names.gives or _holds_arrays(self._namespace[name]))
        ]

    def _judge_last(self, loop: _Loop, at: int) -> None:
        """Look at what the statement before this one gave."""
        if at == 0 or len(loop.proofs) < at:
            return
        values = [self._namespace.get(name) for name in loop.names[at - 1].gives]
        leaves = _leaves(values)
        if isinstance(loop.proofs[at - 1], Proof) and not (leaves and all(type(leaf) in ARRAYS for leaf in leaves)):
            loop.proofs[at - 1] = Refusal("it gives something other than arrays")

    def _cut(self, loop: _Loop) -> None:
        """Make functions of neighbours that only compute."""
        piece: list[int] = []
        given: set[str] = set()
        for at, proof in enumerate(loop.proofs):
            if isinstance(proof, Refusal):
                statement = loop.run.statements[at]
                line = proof.line or statement.lineno
                self.left[loop.run.first + at] = LeftStatement(proof.file or self._file, line, proof.reason, proof.cure)
            # What a statement calls may read names of the module that a function before it would keep to itself.
            is_apart = isinstance(proof, Refusal) or self._reads_any(proof, given)
            if is_apart and piece:
                self._add(loop, piece)
                piece, given = [], set()
            if isinstance(proof, Proof):
                piece.append(at)
                given.update(loop.names[at].gives)
        if piece:
            self._add(loop, piece)

    def _reads_any(self, proof: Proof, names: set[str]) -> bool:
        return any(
            read.where == "global" and read.holder is self._namespace and read.key in names for read in proof.reads
        )

    def _add(self, loop: _Loop, places: Sequence[int]) -> None:
        statements = [loop.run.statements[at] for at in places]
        names = names_of(statements)
        parameters = self._parameters(names)
        name = name_of(statements, {one.name: one for one in self.proposed})
        function = make_function(name, statements, parameters, self._file, self._namespace)
        hot = self._paths.adopt(function)
        # About: it only says when it is compiled.
        hot.ran_before(loop.turns, loop.seconds * len(places) / len(loop.run.statements))
        first = loop.run.first + places[0]
        self._pieces[first] = _CutPiece(first, first + len(places), parameters, names.gives, hot)
        self.proposed.append(
            ProposedFunction(
                name, self._file, statements[0].lineno, statements[-1].end_lineno or 0,
                text_of(name, statements, parameters, linecache.getlines(self._file)), loop.turns,
            )
        )  # fmt: skip


class _Loop:
    """One run of statements, and what its turns showed so far."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.names = [names_of([statement]) for statement in run.statements]
        self.turns, self.seconds, self.begun = 0, 0.0, 0.0
        self.is_open, self.is_ready = True, False
        self.changing: set[str] = set()
        self.proofs: list[Proof | Refusal] = []
        self._numbers: dict[str, Any] = {}

    def note_numbers(self, namespace: Mapping[str, Any]) -> None:
        """Note which numbers and texts that the statements read are others than a turn ago."""
        for name in {name for names in self.names for name in names.reads}:
            value = namespace.get(name)
            if type(value) in _NUMBERS:
                before = self._numbers.setdefault(name, value)
                if type(before) is not type(value) or before != value:
                    self.changing.add(name)


class _CutPiece:
    def __init__(self, first: int, end: int, parameters: Sequence[str], gives: Sequence[str], hot: Hot) -> None:
        self.first, self.end, self.parameters, self.gives, self.hot = first, end, parameters, gives, hot
        self.enter = hot.entrance()


def _holds_arrays(value: Any) -> bool:
    """Whether a value is an array, or a list, tuple or dict with one in it."""
    if type(value) in ARRAYS or isinstance(value, np.ndarray):
        return True
    if not isinstance(value, (list, tuple, dict)):
        return False
    return any(type(leaf) in ARRAYS or isinstance(leaf, np.ndarray) for leaf in _leaves(cast(Any, value)))


Compile = Callable[[ast.Module, str, str], CodeType]  # as Python's own, and IPython's


class Prepared:
    """A cell or script, ready to run; `prepare` makes it."""

    def __init__(self, code: CodeType, turns: Turns | None) -> None:
        self.code, self._turns = code, turns

    @property
    def proposed(self) -> tuple[ProposedFunction, ...]:
        return tuple(self._turns.proposed) if self._turns is not None else ()

    @property
    def left(self) -> tuple[LeftStatement, ...]:
        """The statements in loops that run as they were written, and why; as far as loops took long enough to look."""
        return tuple(left for _, left in sorted(self._turns.left.items())) if self._turns is not None else ()

    @property
    def problem(self) -> str:
        """Why loops weren't looked at any more; empty where they were."""
        return self._turns.problem if self._turns is not None else ""


def compile_tree(tree: ast.Module, file: str, mode: str) -> CodeType:
    """Python's own compile, with none of this file's `from __future__`."""
    return compile(tree, file, mode, dont_inherit=True)


def prepare(
    tree: ast.Module, file: str, namespace: dict[str, Any], paths: HotPaths, *, compile: Compile = compile_tree
) -> Prepared:
    """Compile a cell or script so that what its loops compute over and over is run by compiled functions.

    It does what it does without that: the same names, prints and errors, from the same lines.

    Raises:
        SyntaxError: It is none of Python's; so `compile` says.
    """
    plain = compile(tree, file, "exec")  # its warnings and errors, as they are
    try:
        questions = instrument(tree)
        if not questions.runs:
            return Prepared(plain, None)
        turns = Turns(questions.runs, file, namespace, paths)
        with catch_warnings():
            simplefilter("ignore")
            code = compile(ast.Module(questions.body, tree.type_ignores), file, "exec")
    except (RecursionError, SyntaxError, ValueError):  # too deep to be walked, or to be one level deeper
        return Prepared(plain, None)
    return Prepared(with_target(code, turns), turns)
