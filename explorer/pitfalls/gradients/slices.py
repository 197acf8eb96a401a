"""How a traced program computes one value: the equations that it takes, run by themselves at values of our choice."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from explorer._jax.traces import bind_equation
from explorer.pitfalls.equations import Body, Equation, Program, is_literal
from explorer.pitfalls.gradients.singular import Singularity

_MOST = 150  # equations; those further away are inputs
_MOST_INPUTS = 12
_MOST_ARRAYS = 4
LEAST = 1e-18  # float32 has its logarithm, its reciprocal, and the square of that
_LARGEST = 100_000  # elements of one value
_LARGEST_PRODUCT = 4_096  # elements of what is multiplied as matrices, for it to be run some hundred times
# Their results may be anything: they are inputs.
_ENDS = ("conv_general_dilated", "while", "scan", "cond", "sort", "custom_lin", "axis_index")
_ENDS_IN = ("random", "threefry", "callback", "psum", "all_", "ppermute", "reduce_scatter", "sharding", "shard_map")

Place = tuple[Body, Any]
Key = tuple[int, Any]


@dataclass(frozen=True, eq=False)
class Guard:
    """A change to one equation that keeps its operand from where its derivative isn't finite.

    Args:
        equation: The one to guard.
        singularity: Where its derivative isn't finite.
        kind: What decides: `condition`, that of the choice; `operand`, the operand itself; `both`, the operand itself,
            and where that isn't safe the result is the operation's own value there; `least`, nothing: the operand is
            never less than a tiny number.
    """

    equation: Equation
    singularity: Singularity
    kind: str


class ValueSlice:
    """The equations that a value is made of, back to the arguments or to what may be anything.

    Args:
        program: The traced program.
        sink: The equation whose first output is the value.
    """

    def __init__(self, program: Program, sink: Equation) -> None:
        self.program, self.sink = program, sink
        self.inputs: dict[Key, Place] = {}
        self.equations: dict[Equation, None] = {sink: None}
        self.literals: list[float] = []
        self.arrays: list[np.ndarray] = []  # constants of the program, a few small ones
        waiting = deque((sink.body, operand) for operand in sink.inputs)
        while waiting:
            body, atom = self.origin(*waiting.popleft())
            if is_literal(atom) or atom in body.consts:
                self._add_literal(atom.val if is_literal(atom) else body.consts[atom])
                continue
            maker = body.makers.get(atom)
            if maker is None or not self._has_place_for(maker):
                self.inputs[id(body), atom] = body, atom
            elif maker not in self.equations:
                self.equations[maker] = None
                waiting += [(maker.body, operand) for operand in maker.inputs]

    def _has_place_for(self, equation: Equation) -> bool:
        return equation in self.equations or (len(self.equations) <= _MOST and not _ends(equation))

    @property
    def can_run(self) -> bool:
        """Whether all shapes are known and small enough to run it some hundred times."""
        atoms = [atom for equation in self.equations for atom in (*equation.outputs, *equation.inputs)]
        avals = [atom.aval for atom in (*atoms, *(atom for _, atom in self.inputs.values()))]
        return 0 < len(self.inputs) <= _MOST_INPUTS and all(map(_is_small, avals))

    @property
    def is_chosen_by_an_input(self) -> bool:
        """Whether the condition of its choice is an input itself."""
        body, atom = self.origin(self.sink.body, self.sink.inputs[0])
        return not is_literal(atom) and (id(body), atom) in self.inputs

    @property
    def avals(self) -> list[Any]:
        return [atom.aval for _, atom in self.inputs.values()]

    def _add_literal(self, value: Any) -> None:
        if getattr(getattr(value, "dtype", None), "kind", "") == "f" and 1 < np.size(value) <= _LARGEST_PRODUCT:
            self.arrays += [np.asarray(value)][: _MOST_ARRAYS - len(self.arrays)]
        if getattr(getattr(value, "dtype", None), "kind", "f") in "fiu" and np.size(value) <= 16:
            self.literals += [float(number) for number in np.ravel(np.asarray(value))]

    def origin(self, body: Body, atom: Any) -> Place:
        """Where a value comes from, out of plain calls and into them, but not into functions with own derivatives."""
        for _ in range(1_000):  # each turn goes one call inwards or outwards
            if is_literal(atom):
                break
            maker = body.makers.get(atom)
            if maker is not None:
                if not maker.is_call or maker.op.startswith("custom_"):
                    break
                inner = maker.inner[0]
                body, atom = inner, inner.raw.outvars[list(maker.outputs).index(atom)]
                continue
            passed = self.program.passed(body, atom)
            if passed is None:
                break
            body, atom = passed
        return body, atom

    def run(self, values: Sequence[Any], guards: Sequence[Guard] = ()) -> Any:
        """The value, for values of the inputs, traced or not, with some equations guarded."""
        given: dict[Key, Any] = dict(zip(self.inputs, values, strict=True))
        return _Run(self, given, {guard.equation: guard for guard in guards}).output(self.sink, 0)

    def operands(self, values: Sequence[Any], equations: Sequence[Equation]) -> list[list[Any]]:
        """The operands of some of its equations, for values of the inputs."""
        run = _Run(self, dict(zip(self.inputs, values, strict=True)), {})
        return [run.operands(equation) for equation in equations]


@dataclass
class _Run:
    sliced: ValueSlice
    values: dict[Key, Any]
    guards: Mapping[Equation, Guard]
    running: set[Equation] = field(default_factory=set[Equation])

    def value(self, body: Body, atom: Any) -> Any:
        body, atom = self.sliced.origin(body, atom)
        if is_literal(atom):
            return atom.val
        if atom in body.consts:
            return body.consts[atom]
        key = id(body), atom
        if key not in self.values:
            maker = body.makers[atom]
            self.output(maker, 0)
        return self.values[key]

    def operands(self, equation: Equation) -> list[Any]:
        return [self.value(equation.body, atom) for atom in equation.inputs]

    def output(self, equation: Equation, number: int) -> Any:
        if equation in self.running:
            raise ValueError("the condition depends on what it is to guard")
        self.running.add(equation)
        operands = self.operands(equation)
        guard = self.guards.get(equation)
        results = bind_equation(equation.raw, operands) if guard is None else self._guarded(equation, operands, guard)
        for variable, result in zip(equation.outputs, results, strict=True):
            self.values[id(equation.body), variable] = result
        return results[number]

    def _guarded(self, equation: Equation, operands: list[Any], guard: Guard) -> list[Any]:
        singularity, at = guard.singularity, guard.singularity.operand
        operand = jnp.asarray(operands[at])
        if guard.kind == "least":
            changed = [*operands[:at], jnp.maximum(operand, jnp.asarray(LEAST, operand.dtype)), *operands[at + 1 :]]
            return bind_equation(equation.raw, changed)
        if guard.kind == "condition":
            choice = self.sliced.sink
            test = jnp.asarray(self.value(choice.body, choice.inputs[0])).astype(bool)
            # Which of the branches the equation is in decides which way round the condition is.
            test = test if self._is_in(equation, choice.inputs[2]) else ~test
            if jnp.broadcast_shapes(test.shape, operand.shape) != operand.shape:
                raise ValueError("the condition is larger than the operand")
        else:
            test = singularity.holds(operand, operands[0])
        changed = list(operands)
        changed[at] = jnp.where(test, operand, jnp.asarray(float(singularity.safe), operand.dtype))
        results = bind_equation(equation.raw, changed)
        if guard.kind == "both":
            results = [jnp.where(test, results[0], jnp.asarray(singularity.at_limit(operand), results[0].dtype))]
        return results

    def _is_in(self, equation: Equation, branch: Any) -> bool:
        return in_branch(self.sliced, equation, branch)


def in_branch(sliced: ValueSlice, equation: Equation, branch: Any) -> bool:
    """Whether an operand of a slice's sink is made by an equation."""
    waiting, seen = [(sliced.sink.body, branch)], set[Equation]()
    while waiting:
        body, atom = sliced.origin(*waiting.pop())
        maker = None if is_literal(atom) else body.makers.get(atom)
        if maker is equation:
            return True
        if maker is not None and maker in sliced.equations and maker not in seen:
            seen.add(maker)
            waiting += [(maker.body, operand) for operand in maker.inputs]
    return False


def _ends(equation: Equation) -> bool:
    if equation.op == "dot_general":
        return not all(_is_small(atom.aval, _LARGEST_PRODUCT) for atom in equation.inputs)
    has_body = bool(equation.inner) and not equation.op.startswith("custom_")
    effects: Any = getattr(equation.raw, "effects", ())
    return has_body or bool(effects) or equation.op in _ENDS or any(part in equation.op for part in _ENDS_IN)


def _is_small(aval: Any, most: int = _LARGEST) -> bool:
    shape: tuple[Any, ...] | None = getattr(aval, "shape", None)
    if shape is None or not all(type(size) is int for size in shape):
        return False
    kind = getattr(getattr(aval, "dtype", None), "kind", "")
    return kind in "biufcV" and kind != "" and math.prod(shape) <= most
