"""Numbers of equations in their name stacks: XLA's `op_name` then names the equation of each instruction.

A numbered program differs from the plain one only in these names: its StableHLO is the same to the letter, and XLA
compiles it to the same program. So its executable can replace the plain one in JAX's cache: the user's call runs it,
and one compile serves both.

The traced jaxpr itself stays without numbers. JAX shares jaxprs of inner functions between programs, and caches what it
derives from them while it lowers: numbers written there, even if removed again, turned up in later programs (jax
0.10.2: 7 of 45 in a second function that calls the same inner one).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple

from explorer._jax.traces import change_jaxprs, inner_jaxprs, replaced

NUMBERED_SCOPE = "~eq{}"
"""Scope of an equation's number. XLA ends an `op_name` at `@` but keeps `~`; in names of instructions it writes `_`."""


class NumberedProgram(NamedTuple):
    """A `jax.stages.Traced` with numbered equations, to be lowered, and the path of each row of the jaxpr's graph.

    A path has the numbers of the equations around an equation, outermost first, and its own; arguments have empty
    paths.
    """

    traced: Any
    paths: Sequence[tuple[int, ...]]


def number_equations(traced: Any) -> NumberedProgram | None:
    """Return a copy of a `jax.stages.Traced` with numbered equations; None where this JAX can't."""
    numbering = _Numbering()
    try:
        jaxpr = numbering.number(traced.jaxpr)
        numbered = with_jaxpr(traced, jaxpr)
    except (AttributeError, TypeError, KeyError):
        return None
    return NumberedProgram(numbered, [*numbering.paths(getattr(jaxpr, "jaxpr", jaxpr), ())])


def with_argument_names(traced: Any, names: Sequence[str]) -> Any:
    """Return a copy of a `jax.stages.Traced` with other argument names; the same if their number differs."""
    jaxpr = traced.jaxpr
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    if not all(names) or len(names) != len(inner.invars):
        return traced
    named = replaced(inner, debug_info=inner.debug_info._replace(arg_names=tuple(names)))
    return with_jaxpr(traced, named if inner is jaxpr else jaxpr.replace(jaxpr=named))


def with_jaxpr(traced: Any, jaxpr: Any) -> Any:
    """Return a copy of a `jax.stages.Traced` with another jaxpr, for `lower`; nothing public does that."""
    other = copy.copy(traced)
    other._params = {**traced._params, "jaxpr": jaxpr}
    if getattr(other, "_lojax", None) is not None:  # 0.12 keeps here what it lowers, once it is made
        other._lojax = None
    return other


def keep_executable(lowered: Any, compiled: Any) -> bool:
    """Put `compiled` where JAX keeps `lowered.compile()`, so that the user's next call runs it; return True if it is
    kept.

    JAX keeps no program that was compiled with options, such as a dump. A program that it keeps already stays.
    """
    lowering, executable = kept_lowering(lowered), getattr(compiled, "_executable", None)
    if executable is None or getattr(lowering, "_executable", executable) is not None:
        return False
    lowering._executable = executable
    return True


def kept_lowering(lowered: Any) -> Any:
    """Return the object that JAX keeps for all calls of a program; None where this JAX has no such object."""
    return getattr(lowered, "_lowering", None)


class _Numbering:
    """Visitor that numbers each equation of a jaxpr and of its inner jaxprs, in order."""

    def __init__(self) -> None:
        self._next = count()
        # By id, with the original, so that the id stays valid. An inner function that is called twice is one object and
        # stays one: JAX lowers it once.
        self._numbered: dict[int, tuple[Any, Any]] = {}
        self._numbers: dict[int, list[int]] = {}  # of the equations of each jaxpr made here, by its id

    def number(self, jaxpr: Any) -> Any:
        if id(jaxpr) not in self._numbered:
            inner = getattr(jaxpr, "jaxpr", jaxpr)  # up to 0.10 one with its constants is around one without
            made = self._open(jaxpr) if inner is jaxpr else jaxpr.replace(jaxpr=self.number(inner))
            self._numbered[id(jaxpr)] = made, jaxpr
        return self._numbered[id(jaxpr)][0]

    def _open(self, jaxpr: Any) -> Any:
        numbers: list[int] = []
        equations: list[Any] = []
        for equation in jaxpr.eqns:
            numbers.append(next(self._next))
            info = equation.source_info
            stack = info.name_stack.extend(NUMBERED_SCOPE.format(numbers[-1]))
            params = change_jaxprs(equation.params, partial(self._branch, seen=set[int]()))
            equations.append(equation.replace(params=params, source_info=info.replace(name_stack=stack)))
        made = replaced(jaxpr, eqns=equations)
        self._numbers[id(made)] = numbers
        return made

    def _branch(self, jaxpr: Any, seen: set[int]) -> Any:
        """Number a jaxpr of an equation; a jaxpr that it has twice, as equal branches, gets numbers for each."""
        if id(jaxpr) in seen:
            self._numbered.pop(id(jaxpr), None)
            self._numbered.pop(id(getattr(jaxpr, "jaxpr", jaxpr)), None)
        seen.add(id(jaxpr))
        return self.number(jaxpr)

    def paths(self, jaxpr: Any, around: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the path of each argument, constant and equation of a jaxpr made here."""
        for _ in (*jaxpr.constvars, *jaxpr.invars):
            yield ()
        for equation, number in zip(jaxpr.eqns, self._numbers[id(jaxpr)], strict=True):
            own = (*around, number)
            yield own
            for _, inner in inner_jaxprs(equation.params):
                yield from self.paths(inner, own)
