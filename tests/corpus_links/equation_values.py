"""Which equations of a jaxpr give the same value, whatever it is called with, and which take each other's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

from tests.corpus_links.tagging import TaggedProgram, Tagger

# What they give is what their jaxpr gives.
_CALLS = frozenset(["jit", "pjit", "closed_call", "checkpoint", "remat2", "custom_jvp_call", "custom_vjp_call"])


@dataclass(frozen=True)
class Values:
    """What the equations of a jaxpr give, by their rows in its graph.

    Args:
        equals: Of each equation those with the same value, itself included.
        operands: Those whose values it takes, through calls.
    """

    equals: Mapping[int, frozenset[int]]
    operands: Mapping[int, frozenset[int]]

    def stands_for(self, row: int, left: Set[int]) -> frozenset[int]:
        """The equations that an instruction of `row` may do the work of: equal ones, and those it is computed from.

        Args:
            left: The equations that have instructions of their own; for these nothing else stands, nor for what is only
                computed through them.
        """
        reached, todo = {row}, [row]
        while todo:
            for other in self.equals[todo[-1]] | self.operands[todo.pop()]:
                if other not in left and other not in reached:
                    reached.add(other)
                    todo.append(other)
        return frozenset(reached)


def values_of(paths: Mapping[tuple[int, ...], int], tagged: TaggedProgram) -> Values:
    """What the equations at these paths give."""
    numbering = _Numbering(tagged.tagger)
    arguments = [numbering.number("argument", i) for i in range(len(tagged.jaxpr.invars))]
    numbering.walk(tagged.jaxpr, tagged.tags, arguments, ())
    members: defaultdict[int, set[int]] = defaultdict(set)
    makers: defaultdict[int, set[int]] = defaultdict(set)
    for path, row in paths.items():
        members[numbering.of_path[path]].add(row)
        for result in numbering.results[path]:
            makers[result].add(row)
    return Values(
        {row: frozenset(members[numbering.of_path[path]]) for path, row in paths.items()},
        {row: frozenset().union(*(makers[value] for value in numbering.operands[path])) for path, row in paths.items()},
    )


@dataclass
class _Numbering:
    """Numbers of values: equal for equal operations of equal operands."""

    tagger: Tagger
    known: dict[Hashable, int] = field(default_factory=dict)
    of_path: dict[tuple[int, ...], int] = field(default_factory=dict)
    operands: dict[tuple[int, ...], list[int]] = field(default_factory=dict)
    results: dict[tuple[int, ...], list[int]] = field(default_factory=dict)

    def number(self, *what: Hashable) -> int:
        return self.known.setdefault(what, len(self.known))

    def walk(self, jaxpr: Any, tags: Sequence[int], arguments: Sequence[int], above: tuple[int, ...]) -> list[int]:
        """Number every equation of a jaxpr, and return the numbers of what it gives."""
        values: dict[Any, int] = dict(zip(jaxpr.invars, arguments, strict=True))
        values |= {variable: self.number("constant", id(jaxpr), i) for i, variable in enumerate(jaxpr.constvars)}

        def read(atom: Any) -> int:
            return self.number("literal", str(atom.val), str(atom.aval)) if hasattr(atom, "val") else values[atom]

        for equation, tag in zip(jaxpr.eqns, tags, strict=True):
            path, inner = (*above, tag), self.tagger.inner[tag]
            operands = [read(atom) for atom in equation.invars]
            keys = {key.partition("[")[0] for key in inner}
            parameters = tuple(f"{key}={value}" for key, value in equation.params.items() if key not in keys)
            bodies = tuple(id(body) for body, _ in inner.values())
            own = self.number(equation.primitive.name, parameters, bodies, *operands)
            self.of_path[path], self.operands[path] = own, operands
            results = self.results[path] = [self.number("result", own, i) for i in range(len(equation.outvars))]
            for body, body_tags in inner.values():
                is_call = equation.primitive.name in _CALLS and len(body.invars) == len(operands)
                given = (
                    operands if is_call else [self.number("inner", own, id(body), i) for i in range(len(body.invars))]
                )
                returned = self.walk(body, body_tags, given, path)
                results = returned if is_call else results
            values.update(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]
