"""Which equations of a program no result depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jax.extend.core import Literal

from explorer.pitfalls.equations import Body, Equation, Program


def liveness(program: Program) -> tuple[set[Any], list[Equation]]:
    """The variables that the results need, and the equations that no result depends on, the last first."""
    dead: list[Equation] = []
    return _mark(program.main, set(_variables(program.main.raw.outvars)), dead), dead


def _mark(body: Body, used: set[Any], dead: list[Equation]) -> set[Any]:
    """Go from the results that are used to what they need; returns the variables that are used.

    Args:
        body: A jaxpr in one place.
        used: Its results that are used; grows.
        dead: Grows by the equations that nothing used depends on, the last first.
    """
    # From the last: an equation is reached after all that could use it.
    for equation in reversed(body.equations):
        if equation.raw.effects or not used.isdisjoint(equation.outputs):
            used.update(_variables(_needed(equation, used, dead)))
        else:
            dead.append(equation)
    return used


def _needed(equation: Equation, used: set[Any], dead: list[Equation]) -> Sequence[Any]:
    """The operands that the used results of an equation depend on; of a call, through its jaxpr."""
    needed = equation.inputs
    for inner in equation.inner:
        if inner.is_of_jax:  # nothing of the user's is in it
            continue
        results = inner.raw.outvars
        if equation.is_call and len(results) == len(equation.outputs):
            results = [result for result, out in zip(results, equation.outputs, strict=True) if out in used]
        inside = _mark(inner, set(_variables(results)), dead)
        if equation.is_call:
            needed = [o for o, v in zip(equation.inputs, inner.raw.invars, strict=True) if v in inside]
    return needed


def _variables(atoms: Sequence[Any]) -> list[Any]:
    return [atom for atom in atoms if not isinstance(atom, Literal)]  # which have no hash
