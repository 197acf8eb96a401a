"""Which instruction of an HLO module makes a value, behind all that only passes it on: tuples, copies, fusions, loops.

What a loop carries has a value of its own in each iteration: an element of its state stands for that, unless the body
gives it back as it came. Nothing is guessed: a computation with several callers, or an operation that isn't named
here, ends the search.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from explorer.model.graph import ComputationCall, Graph

_STEPS = 200  # instructions that pass a value on; a damaged text may have it come from itself
_CALLS = ("fusion", "call")
_PASSED = ("copy", "copy-start", "copy-done", "opt-barrier", "add-dependency")
_BRANCHES = {"true_computation": 1, "false_computation": 2}

Path = tuple[int, ...]
"""Indices into a tuple, and into the tuples in it; none for an array or for all of a tuple."""


class Element(NamedTuple):
    """What a loop carries from one iteration to the next: the `while`, and the place in its state."""

    loop: int
    path: Path


class Place(NamedTuple):
    """A node, or an element of the tuple that it gives."""

    node: int
    path: Path = ()


class Definitions:
    """The instructions of a graph by the values that they make.

    Args:
        graph: Of an HLO module.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._called: dict[int, list[ComputationCall]] = {}
        self._callers: dict[int, list[ComputationCall]] = {}
        for call in graph.calls:
            self._called.setdefault(call.node, []).append(call)
            self._callers.setdefault(call.group, []).append(call)
        roots = np.flatnonzero(graph.is_root)
        self._root: dict[int, int] = dict(zip(graph.group[roots].tolist(), roots.tolist(), strict=True))
        self._index = graph.attribute_table.integers("index")
        self._invariant: dict[Element, bool] = {}
        self._step: dict[str, Callable[[Place], Place | Element | None]] = {
            "parameter": self._argument,
            "get-tuple-element": self._from_tuple,
            "tuple": self._into_tuple,
            "while": self._after_loop,
            **dict.fromkeys(_CALLS, self._result),
            **dict.fromkeys(_PASSED, self._passed),
        }

    def op(self, node: int) -> str:
        return self.graph.ops[int(self.graph.op[node])]

    def operand(self, node: int, number: int, path: Path = ()) -> Place | None:
        """One of a node's operands, or an element of it; None where a damaged text has none."""
        start, end = self.graph.operand_start[node : node + 2].tolist()
        return Place(int(self.graph.operand[start + number]), path) if 0 <= number < end - start else None

    def of(self, place: Place | None) -> int | Element | None:
        """The node that makes a value; the element of a loop's state that it is; None where neither can be proven."""
        for _ in range(_STEPS):
            if place is None:
                return None
            step = self._step.get(self.op(place.node))
            if step is None:
                return None if place.path else place.node
            at = step(place)
            if isinstance(at, Element):
                return at
            place = at
        return None

    def outside(self, place: Place | None) -> int | Element | None:
        """The same, and what a loop only hands on is what it began with: a node, or an element that does change."""
        for _ in range(_STEPS):
            at = self.of(place)
            if not isinstance(at, Element) or not self.is_invariant(at):
                return at
            place = self.initial(at)
        return None

    def root(self, loop: int, role: str) -> Place | None:
        """What a loop's `body` or `condition` returns."""
        groups = [call.group for call in self._called.get(loop, ()) if call.role == role]
        # Of a computation that another loop calls too, a parameter is nobody's.
        root = self._root.get(groups[0]) if len(groups) == 1 and len(self._callers[groups[0]]) == 1 else None
        return None if root is None else Place(root)

    def initial(self, element: Element) -> Place | None:
        """What an element of a loop's state is before the first iteration."""
        return self.operand(element.loop, 0, element.path)

    def next(self, element: Element) -> Place | None:
        """What the body gives for an element of the state."""
        root = self.root(element.loop, "body")
        return None if root is None else Place(root.node, element.path)

    def is_invariant(self, element: Element) -> bool:
        """Whether the body gives an element back as it came."""
        if element not in self._invariant:
            self._invariant[element] = False  # where a damaged text has a loop in itself
            self._invariant[element] = self.of(self.next(element)) == element
        return self._invariant[element]

    def _from_tuple(self, place: Place) -> Place | None:
        index = int(self._index[place.node])
        return self.operand(place.node, 0, (index, *place.path)) if index >= 0 else None

    def _into_tuple(self, place: Place) -> Place | None:
        return self.operand(place.node, place.path[0], place.path[1:]) if place.path else None

    def _passed(self, place: Place) -> Place | None:
        # A start gives both copies and a context; its end gives the copy.
        is_part = self.op(place.node) == "copy-start" and place.path
        return None if is_part else self.operand(place.node, 0, place.path)

    def _result(self, place: Place) -> Place | None:
        groups = [call.group for call in self._called.get(place.node, ())]
        root = self._root.get(groups[0]) if len(groups) == 1 else None
        return None if root is None else Place(root, place.path)

    def _after_loop(self, place: Place) -> Place | None:
        element = Element(place.node, place.path)
        return self.initial(element) if self.is_invariant(element) else None

    def _argument(self, place: Place) -> Place | Element | None:
        callers = self._callers.get(int(self.graph.group[place.node]), ())
        if len(callers) != 1:
            return None
        (call,) = callers
        op, number = self.op(call.node), int(self.graph.parameter_number[place.node])
        if op == "while":
            return Element(call.node, place.path) if number == 0 else None
        if op == "conditional":
            number = self._branch(call) if number == 0 else -1
        return self.operand(call.node, number, place.path) if op in (*_CALLS, "conditional") else None

    def _branch(self, call: ComputationCall) -> int:
        """Which operand of a conditional a branch is given; -1 where that isn't certain."""
        if call.role in _BRANCHES:
            return _BRANCHES[call.role]
        branches = [each.group for each in self._called[call.node]]
        start, end = self.graph.operand_start[call.node : call.node + 2].tolist()
        # One branch that isn't in the text, and the numbers of those behind it are others.
        return 1 + branches.index(call.group) if len(branches) == end - start - 1 else -1
