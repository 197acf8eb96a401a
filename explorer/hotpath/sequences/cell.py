"""A cell or script whose loops are watched while it runs."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import CodeType
from typing import Any
from warnings import catch_warnings, simplefilter

from explorer.hotpath.sequences.cutting import instrument, with_target
from explorer.hotpath.sequences.turns import HotPaths, Turns
from explorer.model.results.hot_paths import LeftStatement, ProposedFunction

Compile = Callable[[ast.Module, str, str], CodeType]  # as Python's own, and IPython's


class Prepared:
    """A cell or script, ready to run; `prepare` makes it.

    Attributes:
        code: To be run by `exec` in the namespace that it was prepared for.
    """

    def __init__(self, code: CodeType, turns: Turns | None) -> None:
        self.code, self._turns = code, turns

    @property
    def proposed(self) -> tuple[ProposedFunction, ...]:
        """The functions that were made of statements so far."""
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

    Args:
        tree: What was parsed; it is left as it is.
        file: Its name, as frames and `linecache` have it.
        namespace: In which it will be run, by `exec(prepared.code, namespace)`.
        paths: Hot paths that are on when it runs.
        compile: Python's, or one like it: IPython's, which knows the notebook's `from __future__`.

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
