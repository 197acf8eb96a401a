"""What can be shown of a program's values without running it: what they are made of, and whether they are positive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.pitfalls.equations import Body, Program, is_literal
from explorer.pitfalls.gradients.singular import singularity
from explorer.pitfalls.gradients.slices import ValueSlice

_COMPARISONS = ("gt", "lt", "ge", "le", "eq", "ne")
_LOGIC = ("and", "or", "not", "broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy")
# Operations on each element, through which a value stays one of the same input.
_ELEMENTWISE = (
    *("add", "sub", "mul", "div", "neg", "abs", "square", "integer_pow", "pow", "sqrt", "rsqrt", "exp", "log", "log2"),
    *("broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy", "transpose", "expand_dims", "slice"),
    "sign",
)
_POSITIVE = ("exp", "exp2", "logistic", "cosh")
_KEEP_SIGN = (
    *("broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy"),
    *("sqrt", "reduce_sum", "reduce_max"),
)
_MOST = 60  # operations looked at for one choice
_DEEPEST = 8

Place = tuple[Body, Any]


@dataclass
class Values:
    """What can be shown of the values of a program, whatever its arguments are."""

    program: Program

    def risk(self, sliced: ValueSlice) -> bool | None:
        """Whether what a choice is made by is what a singular operand is made of; None if none is singular."""
        sink = sliced.sink
        tested = self.tested(sink.body, sink.inputs[0]) if sink.op == "select_n" else set[tuple[int, Any]]()
        related: list[bool] = []
        for equation in sliced.equations:
            where = singularity(equation)
            if where is None or equation is sink or not is_float(equation.inputs[where.operand]):
                continue
            operand = equation.inputs[where.operand]
            is_related = not self.inputs(equation.body, operand).isdisjoint(tested)
            # A mask that is given may keep anything away; what is computed without the arguments keeps nothing away.
            if where.overflows and not (is_related or sliced.is_chosen_by_an_input):
                continue
            if not (where.needs_positive and self.is_positive(equation.body, operand)):
                related.append(is_related or sink.op != "select_n")
        return any(related) if related else None

    def end_risk(self, sliced: ValueSlice) -> bool | None:
        """Whether the operand of a root or its like may be where the derivative isn't finite; None if it isn't."""
        where, sink = singularity(sliced.sink), sliced.sink
        operand = None if where is None else sink.inputs[where.operand]
        is_safe = where is None or (where.needs_positive and self.is_positive(sink.body, operand))
        # Of an argument the derivative is infinite, and not NaN: it takes a 0 to multiply it with.
        is_direct = sink.op != "atan2" and self.program.maker(sink.body, operand) is None
        return None if is_safe or is_direct else True

    def tested(self, body: Body, atom: Any) -> set[tuple[int, Any]]:
        """The values that a condition compares, and those they are made of."""
        values: set[tuple[int, Any]] = set()
        waiting: list[Place] = [(body, atom)]
        for _ in range(_MOST):
            if not waiting:
                break
            maker = self.program.maker(*waiting.pop())
            if maker is None:
                continue
            if maker.op in _COMPARISONS or maker.op == "is_finite":
                for operand in maker.inputs:
                    values |= self.inputs(maker.body, operand)
            elif maker.op in _LOGIC:
                waiting += [(maker.body, operand) for operand in maker.inputs]
        return values

    def inputs(self, body: Body, atom: Any, depth: int = 0) -> set[tuple[int, Any]]:
        """A value and what it is made of element by element; what makes a value safe ends the way."""
        body, atom = self.program.origin(body, atom)
        if is_literal(atom) or not is_float(atom):
            return set()
        values = {(id(body), atom)}
        maker = body.makers.get(atom)
        is_norm = maker is not None and maker.op == "reduce_sum" and depth > 0
        if maker is not None and depth < _DEEPEST and (maker.op in _ELEMENTWISE or is_norm):
            for operand in maker.inputs:
                values |= self.inputs(maker.body, operand, depth + 1)
        return values

    def constant(self, body: Body, atom: Any) -> float | None:
        for _ in range(_DEEPEST):
            body, atom = self.program.origin(body, atom)
            if is_literal(atom):
                return float(atom.val) if np.ndim(atom.val) == 0 and np.asarray(atom.val).dtype.kind in "iuf" else None
            maker = body.makers.get(atom)
            if maker is None or maker.op not in ("broadcast_in_dim", "convert_element_type", "reshape"):
                return None
            body, atom = maker.body, maker.inputs[0]
        return None

    def is_positive(self, body: Body, atom: Any, or_zero: bool = False, depth: int = 0) -> bool:
        """Whether a value can be shown to be above 0, whatever the arguments are."""
        body, atom = self.program.origin(body, atom)
        constant = self.constant(body, atom)
        if constant is not None:
            return constant > 0 or (or_zero and constant == 0)
        maker = None if is_literal(atom) else body.makers.get(atom)
        if maker is None or depth > _DEEPEST:
            return False
        op, operands = maker.op, maker.inputs

        def each(least: bool) -> Iterator[bool]:
            return (self.is_positive(maker.body, one, least, depth + 1) for one in operands)

        match op:
            case _ if op in _POSITIVE:
                return True
            case "abs" | "square":
                return or_zero or next(each(False))
            case "integer_pow" if maker.params["y"] % 2 == 0:
                return or_zero
            case "mul" if operands[0] is operands[1]:
                return or_zero
            case "max":
                return any(each(or_zero))
            case "add":
                return all(each(True)) and (or_zero or any(each(False)))
            case "mul" | "div" | "min":
                return all(each(or_zero))
            case "clamp":
                return self.is_positive(maker.body, operands[0], or_zero, depth + 1)
            case _ if op in _KEEP_SIGN:
                return all(each(or_zero))
            case _:
                return False


def is_float(atom: Any) -> bool:
    return getattr(getattr(atom.aval, "dtype", None), "kind", "") in ("f", "V", "c")  # V: bfloat16 and its like
