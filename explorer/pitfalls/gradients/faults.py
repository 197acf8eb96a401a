"""Values of a program that are finite where their gradient is NaN, each shown by running it there."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.capture.sources import Span, syntax_at
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Equation, Program
from explorer.pitfalls.function_source import span_of
from explorer.pitfalls.gradients.guards import Cure, find_cure, is_cured, singular_equations
from explorer.pitfalls.gradients.probes import Probes, Results, probes_of, run_at
from explorer.pitfalls.gradients.singular import ENDS, singularity
from explorer.pitfalls.gradients.slices import ValueSlice
from explorer.pitfalls.gradients.values import Values, is_float

# What the user calls where a choice is made: of the others JAX's own functions have to take care themselves.
_CHOICES = {
    "select_n": ("where", "select", "cond", "switch", "piecewise", "nan_to_num", "nansum", "nanmean", "nanprod"),
    **dict.fromkeys(("max", "min", "clamp"), ("maximum", "minimum", "clip", "fmax", "fmin", "clamp", "relu", "max")),
}
_SINKS = ("select_n", "max", "min", "clamp", *ENDS)
_MASKED = ("sum", "mean", "prod", "std", "var")  # with `where=`


@dataclass(frozen=True, eq=False)
class GradientFault:
    """A value whose gradient is NaN though it is finite itself.

    Args:
        frame: Where the choice or the operation stands.
        node: Its text, as a syntax tree.
        sliced: The value.
        probes, results: Where it was run, and what came out.
        causes: The names of the operations whose derivative isn't finite there.
        is_choice: Whether it is chosen from branches.
        is_related: Whether the choice is made by what the singular operand is made of.
        is_differentiated: Whether the program has a derivative of it.
        cure: The guards that cure it, run; None where none does, or it could not be run.
    """

    frame: Frame
    node: ast.expr
    sliced: ValueSlice
    probes: Probes
    results: Results
    causes: tuple[str, ...]
    is_choice: bool
    is_related: bool
    is_differentiated: bool
    cure: Cure | None = None

    @property
    def is_always(self) -> bool:
        """Whether it is NaN at values that have nothing special about them."""
        return bool((self.results.is_finite & self.results.is_nan)[:4].all())

    @property
    def witness(self) -> str:
        """The arguments at which it was seen: `x = 0 and w = 1`; empty where they can't be named."""
        names = _argument_names(self.sliced.program)
        for row in self.results.witnesses:
            parts: list[str] = []
            for (body, atom), probe in zip(self.sliced.inputs.values(), self.probes, strict=True):
                name = names.get(atom, "") if body is self.sliced.program.main else ""
                value = np.asarray(probe[row])
                if not name or value.size == 0 or not (value == value.flat[0]).all():
                    break
                number = value.flat[0].item()
                parts.append(f"{name} = {number:g}" if type(number) is not bool else f"{name} = {number}")
            else:
                return " and ".join(parts)
        return ""


def find_faults(program: Program, runs: int) -> tuple[GradientFault, ...]:
    """The values of a program in the user's text whose gradient is NaN somewhere, one for each place.

    Args:
        program: The traced program.
        runs: How many values to run at most: each is compiled, in some tenths of a second, and more for its cure.
    """
    values = Values(program)
    faults: dict[Frame, GradientFault] = {}
    covered: set[Equation] = set()
    tried: dict[Frame, int] = {}
    for sink, frame, node, is_choice in (*_choices(program), *_ends(program)):
        # A function that is called for each layer may be told apart by its arguments: four times are enough.
        if frame in faults or tried.get(frame, 0) > 3 or (not is_choice and sink in covered):
            continue
        sliced = ValueSlice(program, sink)
        related = values.risk(sliced) if is_choice else values.end_risk(sliced)
        related = related if related is None else related or _is_chosen_by_itself(node)
        if runs <= 0 or related is None or not sliced.can_run:
            continue
        runs, tried[frame] = runs - 1, tried.get(frame, 0) + 1
        fault = _run(sliced, frame, node, is_choice, related)
        if fault is not None:
            faults[frame] = fault
            covered |= fault.sliced.equations.keys()
    return tuple(faults.values())


def _run(sliced: ValueSlice, frame: Frame, node: ast.expr, is_choice: bool, is_related: bool) -> GradientFault | None:
    probes, common = probes_of(sliced)
    try:
        results = run_at(sliced, probes)
    except Exception:  # an operation that can't be run by itself, or has no derivative
        return None
    near, far = results.rows(slice(common)), results.rows(slice(common, None))
    if len(near.witnesses):
        probes, results = [probe[:common] for probe in probes], near
    elif not is_choice or not _shown(far, [probe[common:] for probe in probes], is_related):
        return None
    causes = singular_equations(sliced, probes, results)
    names = tuple(dict.fromkeys(where.name for _, where in causes))
    differentiated = "jvp" in sliced.sink.transform and _is_active(sliced.program, [one for one, _ in causes])
    fault = GradientFault(frame, node, sliced, probes, results, names, is_choice, is_related, differentiated)
    choice = node if is_choice and isinstance(node, ast.Call) else None
    try:
        return replace(fault, cure=find_cure(sliced, probes, results, causes, choice, frame))
    except Exception:  # text of a kind that isn't foreseen: there is no cure to show then
        return fault


def _is_active(program: Program, causes: Sequence[Equation]) -> bool:
    """Whether the program has a derivative of one of some operations; of what doesn't depend on what the derivative is
    taken by, such as the advantages in a policy's loss, it has none.
    """
    transposed = {program.called_from(one) for one in program.equations if "transpose" in one.transform}
    return not causes or not transposed or not transposed.isdisjoint(map(program.called_from, causes))


def _shown(far: Results, probes: Probes, is_related: bool) -> bool:
    """Whether values that are far out show a fault: where the value overflows too, no choice keeps it from that."""
    return len(far.protected(probes) if is_related else far.witnesses) > 0


def _choices(program: Program) -> Iterator[tuple[Equation, Frame, ast.expr, bool]]:
    for equation in program.of(*_CHOICES):
        names = _CHOICES[equation.op]
        if not is_float(equation.outputs[0]) or _has_own_rule(equation):
            continue
        if equation.op == "select_n" and len(equation.inputs) != 3:
            continue
        frame = program.called_from(equation)
        node = _call(frame)
        if frame is not None and node is not None and _is_choice(node, names):
            yield equation, frame, node, True


def _is_choice(node: ast.expr, names: Sequence[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), keywords=keywords):
            return name in names or (name in _MASKED and any(keyword.arg == "where" for keyword in keywords))
        case _:
            return False


def _is_chosen_by_itself(node: ast.expr) -> bool:
    """Whether a choice is made by the branch itself."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name.startswith("nan")
        case _:
            return False


def _ends(program: Program) -> Iterator[tuple[Equation, Frame, ast.expr, bool]]:
    """Roots and their like at which a derivative may end by themselves, in what is differentiated or may well be."""
    is_loss = _is_loss(program)
    for equation in program.of(*ENDS):
        if singularity(equation) is None or _has_own_rule(equation):
            continue
        if not is_float(equation.outputs[0]) or not (is_loss or "jvp" in equation.transform):
            continue
        frame = program.frame(equation)
        node = _expression(frame)
        if frame is not None and node is not None:
            yield equation, frame, node, False


def _is_loss(program: Program) -> bool:
    """Whether a program gives one number, as what one takes the gradient of does."""
    outputs = program.main.raw.outvars
    return len(outputs) == 1 and is_float(outputs[0]) and outputs[0].aval.shape == ()


def _has_own_rule(equation: Equation) -> bool:
    """Whether it isn't differentiated itself: in a function that has its own rule, or in a derivative."""
    return "transpose" in equation.transform or any(caller.op.startswith("custom_") for caller in equation.callers())


def _expression(frame: Frame | None) -> ast.expr | None:
    way = syntax_at(frame.file, span_of(frame)) if frame is not None else ()
    return way[-1] if way and isinstance(way[-1], ast.expr) else None


def _call(frame: Frame | None) -> ast.Call | None:
    node = _expression(frame)
    return node if isinstance(node, ast.Call) else None


def _argument_names(program: Program) -> dict[Any, str]:
    raw = program.main.raw
    names = tuple(map(str, getattr(raw.debug_info, "arg_names", None) or ()))
    return dict(zip(raw.invars, names, strict=True)) if len(names) == len(raw.invars) else {}


def fault_at(faults: Sequence[GradientFault], file: str, span: Span) -> GradientFault | None:
    """The fault that starts where a piece of a file does."""
    start = file, *span[:2]
    return next((fault for fault in faults if (fault.frame.file, *span_of(fault.frame)[:2]) == start), None)


def cures(fault: GradientFault, program: Program, file: str, line: int) -> bool:
    """Whether a program of rewritten text has the same value, and a finite gradient, wherever the value was finite.

    Args:
        fault: What the text was rewritten for.
        program: The rewritten text's.
        file, line: Where the value stands now.
    """
    column = span_of(fault.frame).column
    for equation in program.of(*_SINKS):
        frame = program.called_from(equation) if not _has_own_rule(equation) else None
        if frame is None or (frame.file, *span_of(frame)[:2]) != (file, line, column):
            continue
        sliced = ValueSlice(program, equation)
        probes = _probes_for(sliced, fault)
        if probes is not None and sliced.can_run and is_cured(fault.results, run_at(sliced, probes)):
            return True
    return False


def _probes_for(sliced: ValueSlice, fault: GradientFault) -> Probes | None:
    """The probes of a fault for another slice of the same inputs; None if it has others."""
    before = [
        (_input_key(fault.sliced, place), probe)
        for place, probe in zip(fault.sliced.inputs.values(), fault.probes, strict=True)
    ]
    probes: Probes = []
    for place in sliced.inputs.values():
        at = next((i for i, (key, _) in enumerate(before) if key == _input_key(sliced, place)), None)
        if at is None:
            return None
        probes.append(before.pop(at)[1])
    return probes


def _input_key(sliced: ValueSlice, place: tuple[Any, Any]) -> tuple[int, str]:
    body, atom = place
    number = body.positions.get(atom, -1) if body is sliced.program.main else -1
    return number, str(atom.aval)
