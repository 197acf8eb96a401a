"""Rules about operations that compute something else than is meant: broadcasts, comparisons with NaN, promotions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

import numpy as np

from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Body, Equation, Program, is_float, is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import expression_at, frame_location, short_text, text_at
from explorer.pitfalls.rule import rule

_REDUCTIONS = ("reduce_sum", "reduce_max", "reduce_min")
_BROADCAST = ("add", "sub", "mul", "div", "max", "min", "pow")
_MAX_OPERATIONS = 60  # looked at from a sum backwards


@rule("accidental-broadcast", "EX041", "warning", "rank_promotion_warning.html", passive=True)
def accidental_broadcast(evidence: Evidence) -> Iterator[Finding]:
    """A column of shape (N, 1) and a row of shape (N,) make a table of N × N, of which a loss takes the mean.

    `prediction - y` compares each prediction with each target, without an error: the loss falls to the variance of `y`
    and no further.
    """
    program = evidence.program
    reported: set[Frame] = set()
    # Only the forward part: a derivative has the same shapes.
    sums = (one for one in program.of(*_REDUCTIONS) if len(one.params["axes"]) > 1 and "transpose" not in one.transform)
    for equation in sums:
        for table in _tables(program, equation):
            frame = program.called_from(table)
            if frame is None or frame in reported:
                continue
            reported.add(frame)
            text = text_at(frame)
            size = table.outputs[0].aval.shape[-1]
            yield accidental_broadcast.finding(
                f"{text} makes a table of {size} × {size}, each number with each other one: a column of shape "
                f"({size}, 1) meets a row of shape ({size},)",
                evidence=f"{table.op} of {' and '.join(_short(program, table.body, one) for one in table.inputs)}; all "
                f"of the table is then reduced by {equation.op}",
                fix="give both one shape before: column.squeeze(-1), or row[:, None]",
                **frame_location(frame),
            )


def _tables(program: Program, reduction: Equation) -> Iterator[Equation]:
    """Yield the operations that make an N × N table of a column and a row, if `reduction` reduces both its axes."""
    shape = reduction.inputs[0].aval.shape
    square = len(shape) >= 2 and shape[-1] == shape[-2] and isinstance(shape[-1], int) and shape[-1] > 1
    if not square or not {len(shape) - 1, len(shape) - 2} <= set(reduction.params["axes"]):
        return
    waiting: list[tuple[Body, Any]] = [(reduction.body, reduction.inputs[0])]
    for _ in range(_MAX_OPERATIONS):
        if not waiting:
            return
        maker = program.maker(*waiting.pop())
        if maker is None or maker.outputs[0].aval.shape != shape:
            continue
        if maker.op in _BROADCAST and _is_accident(program, maker):
            yield maker
        elif maker.op != "broadcast_in_dim":
            waiting += [(maker.body, one) for one in maker.inputs if not is_literal(one)]


def _is_accident(program: Program, equation: Equation) -> bool:
    """Return True if one operand is (N, 1), and the other one was (N,) and got its axis by the operation itself."""
    one, other = equation.inputs
    for column, row in ((one, other), (other, one)):
        if is_literal(column) or is_literal(row) or column.aval.shape[-1:] != (1,) or len(column.aval.shape) < 2:
            continue
        maker = equation.body.makers.get(row)
        # An axis that the user wrote, `y[None, :]`, has a place of its own in the text.
        if (
            maker is not None
            and maker.op == "broadcast_in_dim"
            and len(maker.inputs[0].aval.shape) == len(row.aval.shape) - 1
            and row.aval.shape[-2] == 1
            and program.stack(maker) == program.stack(equation)
        ):
            return True
    return False


def _short(program: Program, body: Body, atom: Any) -> str:
    maker = None if is_literal(atom) else body.makers.get(atom)
    return (maker.inputs[0] if maker is not None and maker.op == "broadcast_in_dim" else atom).aval.str_short()


@rule("nan-comparison", "EX042", "warning", "_autosummary/jax.numpy.isnan.html", passive=True)
def nan_comparison(evidence: Evidence) -> Iterator[Finding]:
    """NaN is equal to nothing, not to itself either: `x == jnp.nan` is False everywhere, and `!=` is True."""
    reported: set[Frame] = set()
    program = evidence.program
    for equation in program.of("eq", "ne", "lt", "le", "gt", "ge"):
        if not any(_is_nan(program, equation.body, atom) for atom in equation.inputs):
            continue
        frame = program.called_from(equation)
        if frame is None or frame in reported:
            continue
        reported.add(frame)
        node = expression_at(frame)
        text = text_at(frame, "this comparison")
        other = _compared(node)
        always = "True" if equation.op == "ne" else "False"
        yield nan_comparison.finding(
            f"{text} is {always} for every number, and for NaN: NaN is equal to nothing",
            evidence=f"{equation.op} compares with a NaN that is written in the program",
            fix=f"{'~' if equation.op == 'ne' else ''}jnp.isnan({other})",
            **frame_location(frame),
        )


def _is_nan(program: Program, body: Body, atom: Any) -> bool:
    body, atom = program.origin(body, atom)
    maker = None if is_literal(atom) else body.makers.get(atom)
    if maker is not None and maker.op in ("broadcast_in_dim", "convert_element_type"):
        body, atom = program.origin(maker.body, maker.inputs[0])
    value = atom.val if is_literal(atom) else body.consts.get(atom)
    return is_float(atom) and value is not None and np.ndim(value) == 0 and bool(np.isnan(np.asarray(value, float)))


def _compared(node: ast.expr | None) -> str:
    """Return what is compared with NaN, as it is written; `x` if unknown."""
    match node:
        case ast.Compare(left=left, comparators=[right]):
            parts = [left, right]
        case ast.Call(args=[left, right]):
            parts = [left, right]
        case _:
            return "x"
    return next((short_text(part) for part in parts if "nan" not in short_text(part).lower()), "x")


@rule("promotion", "EX043", "warning", "type_promotion.html", passive=True)
def promotion(evidence: Evidence) -> Iterator[Finding]:
    """A bfloat16 or float16 array meets a number of a wider type, and all that follows is computed in that type.

    A Python number takes on the array's type. A number of NumPy, such as that of `np.sqrt(64)`, and an array of one
    number have a type of their own.
    """
    program = evidence.program
    reported: set[Frame] = set()
    for equation in program.of("convert_element_type"):
        was, now = equation.inputs[0].aval, equation.outputs[0].aval
        if not _is_small_float(was) or now.dtype.kind != "f" or now.dtype.itemsize <= was.dtype.itemsize:
            continue
        for user in equation.body.equations:
            scalar = _scalar(program, user, equation.outputs[0]) if user.op in _BROADCAST else None
            frame = program.frame(user) if scalar is not None else None
            if frame is None or frame in reported or program.stack(user) != program.stack(equation):
                continue
            reported.add(frame)
            text = text_at(frame)
            yield promotion.finding(
                f"{text} computes in {now.dtype.name}: {was.str_short()} meets a number of the type {now.dtype.name}",
                evidence=f"the number is {scalar}; with a Python number the result would be {was.dtype.name}",
                fix="a Python number: float(…) of it, such as math.sqrt(64) or 0.5; or .astype(x.dtype)",
                **frame_location(frame),
            )


def _is_small_float(aval: Any) -> bool:
    return getattr(aval.dtype, "name", "") in ("bfloat16", "float16") and not aval.weak_type and aval.shape != ()


def _scalar(program: Program, user: Equation, converted: Any) -> str | None:
    """Return the number that a converted array is combined with, as text; None if `user` combines it with no number.

    `computed in the program` if the number is no constant.
    """
    if len(user.inputs) != 2 or all(is_literal(one) or one is not converted for one in user.inputs):
        return None
    other = next((one for one in user.inputs if is_literal(one) or one is not converted), None)
    if other is None or other.aval.shape != ():
        return None
    body, atom = program.origin(user.body, other)
    value = atom.val if is_literal(atom) else body.consts.get(atom)
    return "computed in the program" if value is None else f"{np.asarray(value).item():g}"
