"""The map from the numbers in a program's `op_name`s to the equations of its jaxpr.

An equation's path has the numbers of the calls, loops and branches around it, and its own. A function that is called
twice has one number for each equation; the call's number tells the calls apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import count
from operator import attrgetter
from typing import NamedTuple, cast

import numpy as np

from explorer._jax.numbering import NUMBERED_SCOPE
from explorer.model.graph import Graph
from explorer.model.links import EXACT, INFERRED, EquationSets

_NUMBER = re.compile(NUMBERED_SCOPE.format(r"(\d{1,9})"))
_IN_PATH = re.compile("/{0}|{0}/|{0}".format(NUMBERED_SCOPE.format(r"\d{1,9}")))
# XLA makes names of instructions from scopes now and then, with `_` for what a name can't have: `_eq74.8`, `jvp__eq7_`.
# A function `heat_eq2` is the user's.
_IN_NAME = re.compile("(?<![a-zA-Z0-9])" + NUMBERED_SCOPE.replace("~", "_").format(r"\d{1,9}"))
_NAME = re.compile(r"(?<=%)[\w.\-]+")
_NUMBERED_NAME = re.compile(rf"(?<![\w.\-])[\w.\-]*{_IN_NAME.pattern}[\w.\-]*")

# Computations that are part of their caller: their equations are inside the caller's, or equal to it.
_APPLIED = frozenset(("apply", "reducer", "region"))
_PARTS = _APPLIED | {"call", "body", "condition", "branch", "function", "cond", "do"}


def numbers_in(op_name: str) -> list[tuple[int, ...]]:
    """Return the numbers in an `op_name`, for each of the operations that XLA merged into one that has numbers.

    Example:
        >>> numbers_in("jit(f)/jvp(~eq3)/while/body/~eq7/add;jit(f)/~eq9/mul;copy")
        [(3, 7), (9,)]
    """
    return [
        tuple(map(int, numbers)) for part in op_name.split(";") if (numbers := cast("list[str]", _NUMBER.findall(part)))
    ]


def without_numbers(text: str) -> str:
    """Return the text of a numbered program without the scopes that are numbers.

    Example:
        >>> without_numbers('op_name="jit(f)/~eq1/jvp(~eq3)/~eq7/add;~eq9/mul"')
        'op_name="jit(f)/jvp()/add;mul"'
    """
    return _IN_PATH.sub("", text)


def names_without_numbers(names: Iterable[str], taken: Set[str], *, known: Mapping[str, str]) -> dict[str, str]:
    """Return new names by old ones: `known`, and one that isn't `taken` for each further name with a number."""
    renamed, taken = {**known}, {*taken, *known.values()}
    for name in names:
        if name in renamed or _IN_NAME.search(name) is None:
            continue
        stem = _IN_NAME.sub("", name).partition(".")[0].rstrip("0123456789_") or "instruction"
        renamed[name] = next(other for i in count(1) if (other := f"{stem}.{i}") not in taken)
        taken.add(renamed[name])
    return renamed


def rename_numbered(text: str) -> tuple[str, Mapping[str, str]]:
    """Return an HLO text without numbers in names, and the new names by the old ones."""
    if _IN_NAME.search(text) is None:
        return text, {}
    names: list[str] = [name for name in dict.fromkeys(_NUMBERED_NAME.findall(text))]
    renamed = names_without_numbers(names, {*_NAME.findall(text)}, known={})
    return _NUMBERED_NAME.sub(lambda name: renamed.get(name[0], name[0]), text), renamed


class NumberedStage(NamedTuple):
    """A stage without its numbers, and the equations of its nodes."""

    text: str
    graph: Graph
    equations: EquationSets


def read_numbered(text: str, read: Callable[[str], Graph], paths: EquationPaths) -> NumberedStage:
    """Read the text of a stage whose scopes hold equation numbers.

    Return its text and graph without the numbers, and the equations of the jaxpr (of `paths`) that each node is from.
    """
    numbered = read(text)
    _ = numbered.callers_first, numbered.is_equation, numbered.members  # which resolving reads
    text, plain = without_numbers(text), [*map(without_numbers, numbered.scopes)]
    code: dict[str, int] = {}
    codes = np.asarray([code.setdefault(scope, len(code)) for scope in plain] or [0], np.int32)
    scope = np.where(numbered.scope >= 0, codes[numbered.scope], numbered.scope).astype(np.int32)
    equations = equation_sets(numbered, paths)
    return NumberedStage(text, numbered.changed(scope=scope, scopes=[*code]), equations)


class Equations(NamedTuple):
    """Rows of the jaxpr: all of them if `certain`, else one or more of them."""

    rows: tuple[int, ...]
    certain: bool


_NONE = Equations((), True)


class EquationPaths:
    """The equations of a jaxpr by their paths, and the rows of its arguments by the user's names: `params['w']`."""

    def __init__(self, paths: Sequence[tuple[int, ...]], arguments: Mapping[str, int]) -> None:
        self._paths = paths
        self.count = len(paths)
        self.arguments = arguments
        self._row_of_path: dict[tuple[int, ...], int] = {}
        self._rows_of_number: dict[int, list[int]] = {}
        for row, path in enumerate(paths):
            if path:
                self._row_of_path[path] = row
                self._rows_of_number.setdefault(path[-1], []).append(row)
        self._resolved: dict[str, Equations] = {}  # independent of callers
        self._candidates_of: dict[tuple[int, ...], tuple[int, ...]] = {}

    def resolve(self, op_name: str, callers: Sequence[int] = ()) -> Equations:
        """Return the equations of an `op_name` as rows of the jaxpr; not `certain` if a number fits several.

        `callers` are the rows of the equations that call its computation: only equations inside of them count.
        """
        if op_name in self._resolved:
            return self._resolved[op_name]
        rows: set[int] = set()
        certain = is_plain = True
        for numbers in (piece for part in numbers_in(op_name) for piece in self._pieces(part)):
            candidates = self._candidates(numbers)
            if len(candidates) > 1:
                is_plain = False
                inside = self._inside(candidates, callers)
                candidates = [row for rows in inside for row in rows] or candidates
                # In a computation that all callers share, the instruction is one equation of each caller.
                certain = certain and bool(inside) and all(len(rows) == 1 for rows in inside)
            rows.update(candidates)
        equations = Equations(tuple(sorted(rows)), certain)
        if is_plain:
            self._resolved[op_name] = equations
        return equations

    def _pieces(self, numbers: tuple[int, ...]) -> list[tuple[int, ...]]:
        """Split the numbers of names that XLA merged by concatenation into one path each."""
        pieces: list[tuple[int, ...]] = []
        while numbers:
            # A number that no equation has is a piece on its own, without candidates.
            length = next((i for i in range(len(numbers), 1, -1) if self._candidates(numbers[:i])), 1)
            pieces.append(numbers[:length])
            numbers = numbers[length:]
        return pieces

    def _candidates(self, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Return the row of the equation with this path; if it lacks a call's number, all rows that it can be."""
        exact = self._row_of_path.get(numbers)
        if exact is not None:
            return (exact,)
        if numbers not in self._candidates_of:
            rows = self._rows_of_number.get(numbers[-1], ())
            self._candidates_of[numbers] = tuple(row for row in rows if _is_within(numbers, self._paths[row]))
        return self._candidates_of[numbers]

    def _inside(self, rows: Iterable[int], callers: Sequence[int]) -> list[list[int]]:
        """Return, for each caller, the rows that are inside it; an empty list if no row is inside some caller."""
        inside: dict[tuple[int, ...], list[int]] = {self._paths[caller]: [] for caller in callers}
        for row in rows:
            path = self._paths[row]
            for depth in range(len(path)):
                if path[: depth + 1] in inside:
                    inside[path[: depth + 1]].append(row)
        return [*inside.values()] if all(inside.values()) else []


def _is_within(numbers: Sequence[int], path: Sequence[int]) -> bool:
    """Return True if the numbers are in a path in this order, with or without others between them."""
    rest = iter(path)
    return all(number in rest for number in numbers)


def equation_sets(graph: Graph, paths: EquationPaths) -> EquationSets:
    """Return the equations of each node of a stage whose scopes have numbers.

    A node without a number in a computation that its callers apply, such as the sum of a reduction, has the callers'
    equations. A node with the name of an argument is that argument, or a view of it.
    """
    callers = graph.callers
    equations: list[Equations] = [_NONE] * len(graph.names)
    order = [*graph.callers_first, -1]
    kinds = [*map(attrgetter("kind"), graph.groups), ""]
    inside = [*graph.members, np.flatnonzero(graph.group < 0)]  # the last: nodes in no group
    scopes: list[int] = graph.scope.tolist()
    # JAX's unnamed operations in a part belong to it. XLA adds unnamed instructions to a loop that don't.
    is_lowered = any(op.startswith("stablehlo.") for op in graph.ops)
    is_part: list[bool] = (graph.is_equation & is_lowered).tolist()
    # Callers first: a computation that is applied has its callers' equations.
    for group in order:
        kind = kinds[group]
        around = _together([equations[node] for node in callers[group]]) if kind in _PARTS else _NONE
        by_scope: dict[int, Equations] = {}
        nodes: list[int] = inside[group].tolist()
        for node in nodes:
            scope = scopes[node]
            if scope not in by_scope:
                by_scope[scope] = _equations(graph.scopes[scope], kind, around, paths)
            equations[node] = around if is_part[node] and not graph.scopes[scope] else by_scope[scope]
        if kind in _APPLIED:
            _share(equations, nodes, around)
    counts = np.asarray([len(of_node.rows) for of_node in equations], np.int32)
    rows = np.asarray([row for of_node in equations for row in of_node.rows], np.int32)
    grade = np.asarray([EXACT if of_node.certain else INFERRED for of_node in equations], np.int8)
    return EquationSets.of_pairs(np.repeat(np.arange(len(graph.names), dtype=np.int32), counts), rows, grade)


def _share(equations: list[Equations], nodes: Sequence[int], around: Equations) -> None:
    """Give the equations of an applied computation's `nodes` to those that have none, if its callers have none either.

    XLA drops the metadata of a reduction that it computes in parts, not that of the addition which it applies.
    """
    if around.rows:
        return
    applied = _together([equations[node] for node in nodes])
    for node in nodes:
        equations[node] = equations[node] if equations[node].rows else applied


def _equations(scope: str, kind: str, around: Equations, paths: EquationPaths) -> Equations:
    """Return the equations of a node with this `op_name`, in a computation whose callers have `around`."""
    named = paths.resolve(scope, around.rows)
    if named.rows or kind in _APPLIED:
        return named if named.rows else around
    if scope in paths.arguments:
        return Equations((paths.arguments[scope],), True)
    # JAX lowers a primitive through a function of its own, whose operations have no number.
    return around if "/" in scope or (scope and kind == "function") else _NONE


def _together(several: Sequence[Equations]) -> Equations:
    rows = {row for equations in several for row in equations.rows}
    return Equations(tuple(sorted(rows)), all(equations.certain for equations in several))
