"""Find values that are finite where their gradient is NaN, and show it by running them."""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from explorer.capture.sources import Span
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Body, Equation, Program, is_float, is_literal
from explorer.pitfalls.function_source import Edit, expression_at, last_name, span_of
from explorer.pitfalls.gradient_guards import find_edits, is_fixed, singular_equations
from explorer.pitfalls.gradient_probes import Probes, Results, probes_of, run_at
from explorer.pitfalls.gradient_slices import ENDS, Place, ValueSlice, singularity

# Calls of the user that make a choice. Choices inside JAX's own functions are JAX's to guard.
_CHOICES = {
    "select_n": ("where", "select", "cond", "switch", "piecewise", "nan_to_num", "nansum", "nanmean", "nanprod"),
    **dict.fromkeys(("max", "min", "clamp"), ("maximum", "minimum", "clip", "fmax", "fmin", "clamp", "relu", "max")),
}
SINKS = ("select_n", "max", "min", "clamp", *ENDS)
_MASKED = ("sum", "mean", "prod", "std", "var")  # with `where=`


@dataclass(frozen=True, eq=False)
class GradientFault:
    """Finite value whose gradient is NaN."""

    frame: Frame  # of the choice or operation
    node: ast.expr  # its text, as a syntax tree
    sliced: ValueSlice  # the value
    probes: Probes  # probes, results: where it was run, and what came out
    results: Results
    causes: tuple[str, ...]  # the names of the operations whose derivative isn't finite there
    is_choice: bool  # whether it is chosen from branches
    is_related: bool  # whether the choice is made by what the singular operand is made of
    is_differentiated: bool  # whether the program has a derivative of it
    edits: tuple[Edit, ...] = ()  # guards that work when run

    @property
    def is_always(self) -> bool:
        """True if the gradient is NaN at ordinary arguments too."""
        return bool((self.results.is_finite & self.results.is_nan)[:4].all())

    @property
    def witness(self) -> str:
        """Arguments with a NaN gradient, as `x = 0 and w = 1`; "" if they have no names."""
        raw = self.sliced.program.main.raw
        arg_names = tuple(map(str, getattr(raw.debug_info, "arg_names", None) or ()))
        names = dict(zip(raw.invars, arg_names, strict=False)) if len(arg_names) == len(raw.invars) else {}
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


def find_faults(program: Program, runs: int, deadline: float = math.inf) -> tuple[GradientFault, ...]:
    """Return the values in the user's text whose gradient is NaN somewhere, one per place.

    At most `runs` values are run, and none is begun after `deadline`, of the thread's time. Each is traced and run at
    some hundred probes, a tenth of a second, and more for its fix.
    """
    values = Values(program)
    faults: dict[Frame, GradientFault] = {}
    covered: set[Equation] = set()
    tried: dict[Frame, int] = {}
    for sink, frame, node, is_choice in (*_choices(program), *_ends(program)):
        # A function called for each layer may differ by its arguments: four tries per place are enough.
        if frame in faults or tried.get(frame, 0) > 3 or (not is_choice and sink in covered):
            continue
        sliced = ValueSlice(program, sink)
        related = values.risk(sliced) if is_choice else values.end_risk(sliced)
        if related is not None and isinstance(node, ast.Call):  # jnp.nansum and its like choose by the value itself
            related = related or last_name(node.func).startswith("nan")
        if runs <= 0 or time.thread_time() > deadline or related is None or not sliced.can_run:
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
    except Exception:  # an operation can't be run alone, or has no derivative
        return None
    near, far = results.rows(slice(common)), results.rows(slice(common, None))
    if len(near.witnesses):
        probes, results = [probe[:common] for probe in probes], near
    # Large values: if the value itself overflows, no choice protects it.
    elif not is_choice or not len(far.protected([one[common:] for one in probes]) if is_related else far.witnesses):
        return None
    causes = singular_equations(sliced, probes, results)
    names = tuple(dict.fromkeys(where.name for _, where in causes))
    differentiated = "jvp" in sliced.sink.transform and _is_active(sliced.program, [one for one, _ in causes])
    fault = GradientFault(frame, node, sliced, probes, results, names, is_choice, is_related, differentiated)
    choice = node if is_choice and isinstance(node, ast.Call) else None
    if not is_choice and is_divisor(sliced.program, sliced.sink):  # guarded, the root is 0, its quotient infinite
        return fault
    try:
        return replace(fault, edits=find_edits(sliced, probes, results, causes, choice, frame))
    except Exception:  # the text has an unexpected form, so there is no fix to show
        return fault


def is_divisor(program: Program, sink: Equation) -> bool:
    """Return True if something is divided by an equation's result, as in `x / jnp.linalg.norm(x)`."""
    body, values = sink.body, {id(out) for out in sink.outputs}
    while not _divides(body, values):
        caller = body.caller
        if caller is None or not caller.is_call:
            return False
        pairs = zip(body.raw.outvars, caller.outputs, strict=True)
        body, values = caller.body, {id(out) for inner, out in pairs if id(inner) in values}
    return True


def _divides(body: Body, values: set[int]) -> bool:
    """Return True if one of some values, by `id`, is a divisor in a body; else add to them what is made of them by
    reshaping or a product.
    """
    for equation in body.equations:
        if equation.op == "div" and id(equation.inputs[1]) in values:
            return True
        if equation.op in _SHAPED and any(id(operand) in values for operand in equation.inputs):
            values |= {id(out) for out in equation.outputs}
    return False


_SHAPED = ("broadcast_in_dim", "reshape", "squeeze", "expand_dims", "convert_element_type", "copy", "mul")


def _is_active(program: Program, causes: Sequence[Equation]) -> bool:
    """Return True if the program differentiates one of some equations, or if that is unknown.

    Values that don't depend on the differentiated arguments, such as the advantages in a policy's loss, have no
    derivative.
    """
    transposed = {program.called_from(one) for one in program.equations if "transpose" in one.transform}
    return not causes or not transposed or not transposed.isdisjoint(map(program.called_from, causes))


def _choices(program: Program) -> Iterator[tuple[Equation, Frame, ast.expr, bool]]:
    for equation in program.of(*_CHOICES):
        names = _CHOICES[equation.op]
        if not is_float(equation.outputs[0]) or _has_own_rule(equation):
            continue
        if equation.op == "select_n" and len(equation.inputs) != 3:
            continue
        frame = program.called_from(equation)
        node = expression_at(frame)
        if frame is not None and node is not None and _is_choice(node, names):
            yield equation, frame, node, True


def _is_choice(node: ast.expr, names: Sequence[str]) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = last_name(node.func)
    return name in names or (name in _MASKED and any(keyword.arg == "where" for keyword in node.keywords))


def _ends(program: Program) -> Iterator[tuple[Equation, Frame, ast.expr, bool]]:
    """Yield (equation, frame, its text's node, False) of roots and their like that are differentiated, or in a loss."""
    is_loss = _is_loss(program)
    for equation in program.of(*ENDS):
        if singularity(equation) is None or _has_own_rule(equation):
            continue
        if not is_float(equation.outputs[0]) or not (is_loss or "jvp" in equation.transform):
            continue
        frame = program.frame(equation)
        node = expression_at(frame)
        if frame is not None and node is not None:
            yield equation, frame, node, False


def _is_loss(program: Program) -> bool:
    outputs = program.main.raw.outvars
    return len(outputs) == 1 and is_float(outputs[0]) and outputs[0].aval.shape == ()


def _has_own_rule(equation: Equation) -> bool:
    """Return True if an equation isn't differentiated: inside a custom derivative, or part of a derivative."""
    return "transpose" in equation.transform or any(caller.op.startswith("custom_") for caller in equation.callers())


def fault_at(faults: Sequence[GradientFault], file: str, span: Span) -> GradientFault | None:
    start = file, *span[:2]
    return next((fault for fault in faults if (fault.frame.file, *span_of(fault.frame)[:2]) == start), None)


def is_fixed_in(fault: GradientFault, program: Program, file: str, line: int) -> bool:
    """Return True if a rewritten program has the same value, and a finite gradient where the value is finite."""
    column = span_of(fault.frame).column
    for equation in program.of(*SINKS):
        frame = program.called_from(equation) if not _has_own_rule(equation) else None
        if frame is None or (frame.file, *span_of(frame)[:2]) != (file, line, column):
            continue
        sliced = ValueSlice(program, equation)
        probes = _probes_for(sliced, fault)
        if probes is not None and sliced.can_run and is_fixed(fault.results, run_at(sliced, probes)):
            return True
    return False


def _probes_for(sliced: ValueSlice, fault: GradientFault) -> Probes | None:
    """Return the probes of a fault in the order of another slice's inputs; None if it has other inputs."""
    keys, left, probes = _input_keys(fault.sliced), list(fault.probes), list[np.ndarray]()
    for key in _input_keys(sliced):
        if key not in keys:
            return None
        at = keys.index(key)
        del keys[at]
        probes.append(left.pop(at))
    return probes


def _input_keys(sliced: ValueSlice) -> list[tuple[int, str]]:
    main = sliced.program.main
    places = sliced.inputs.values()
    return [(main.positions.get(atom, -1) if body is main else -1, str(atom.aval)) for body, atom in places]


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
_MAX_OPERATIONS = 60  # operations looked at for one choice
_MAX_DEPTH = 8


@dataclass
class Values:
    program: Program

    def risk(self, sliced: ValueSlice) -> bool | None:
        """Return None if no operand of a choice is singular, else True if its condition depends on such an operand.

        For `max`, `min` and `clamp`, which choose by their operands, it is True.
        """
        sink = sliced.sink
        tested = self.tested(sink.body, sink.inputs[0]) if sink.op == "select_n" else set[tuple[int, Any]]()
        related: list[bool] = []
        for equation in sliced.equations:
            where = singularity(equation)
            if where is None or equation is sink or not is_float(equation.inputs[where.operand]):
                continue
            operand = equation.inputs[where.operand]
            is_related = not self.inputs(equation.body, operand).isdisjoint(tested)
            # A mask that is an input may exclude anything; a mask computed without the arguments excludes nothing.
            if where.overflows and not (is_related or sliced.is_chosen_by_an_input):
                continue
            if not (where.needs_positive and self.is_positive(equation.body, operand)):
                related.append(is_related or sink.op != "select_n")
        return any(related) if related else None

    def end_risk(self, sliced: ValueSlice) -> bool | None:
        """Return True if the derivative through a root may be NaN; None else, and for a root of an argument itself."""
        where, sink = singularity(sliced.sink), sliced.sink
        operand = None if where is None else sink.inputs[where.operand]
        is_safe = where is None or (where.needs_positive and self.is_positive(sink.body, operand))
        # For an argument itself the derivative is infinite, not NaN: NaN needs a factor 0.
        is_direct = sink.op != "atan2" and self.program.maker(sink.body, operand) is None
        return None if is_safe or is_direct else True

    def tested(self, body: Body, atom: Any) -> set[tuple[int, Any]]:
        """Return the floats, as (`id` of a body, variable), that a condition compares, and those they are made of."""
        values: set[tuple[int, Any]] = set()
        waiting: list[Place] = [(body, atom)]
        for _ in range(_MAX_OPERATIONS):
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
        """Return a float and those it is computed from elementwise or in a sum, as (`id` of a body, variable)."""
        body, atom = self.program.origin(body, atom)
        if is_literal(atom) or not is_float(atom):
            return set()
        values = {(id(body), atom)}
        maker = body.makers.get(atom)
        is_norm = maker is not None and maker.op == "reduce_sum" and depth > 0
        if maker is not None and depth < _MAX_DEPTH and (maker.op in _ELEMENTWISE or is_norm):
            for operand in maker.inputs:
                values |= self.inputs(maker.body, operand, depth + 1)
        return values

    def constant(self, body: Body, atom: Any) -> float | None:
        for _ in range(_MAX_DEPTH):
            body, atom = self.program.origin(body, atom)
            if is_literal(atom):
                return float(atom.val) if np.ndim(atom.val) == 0 and np.asarray(atom.val).dtype.kind in "iuf" else None
            maker = body.makers.get(atom)
            if maker is None or maker.op not in ("broadcast_in_dim", "convert_element_type", "reshape"):
                return None
            body, atom = maker.body, maker.inputs[0]
        return None

    def is_positive(self, body: Body, atom: Any, or_zero: bool = False, depth: int = 0) -> bool:
        body, atom = self.program.origin(body, atom)
        constant = self.constant(body, atom)
        if constant is not None:
            return constant > 0 or (or_zero and constant == 0)
        maker = None if is_literal(atom) else body.makers.get(atom)
        if maker is None or depth > _MAX_DEPTH:
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
