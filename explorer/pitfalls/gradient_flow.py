"""Arguments that a result depends on only through operations without a derivative, such as `round` and `argmax`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from explorer._jax.traces import scan_inputs
from explorer.pitfalls.equations import Body, Equation, Program, is_literal
from explorer.pitfalls.gradient_faults import is_float

# Their derivative is zero, or they have none.
FLAT = frozenset[str]().union(
    ("round", "floor", "ceil", "sign", "stop_gradient", "argmax", "argmin", "is_finite", "nextafter"),
    ("eq", "ne", "lt", "le", "gt", "ge", "convert_element_type"),
)
_PASSES = 3  # over the body of a loop: what one turn carries reaches all of its results in the next two


class Flow(NamedTuple):
    """Arguments that a value depends on, as bits by position."""

    smooth: int = 0  # through operations that have a derivative
    flat: int = 0  # through one that has none
    by: Equation | None = None  # the first one without a derivative

    def __or__(self, other: Any) -> Flow:
        return Flow(self.smooth | other.smooth, self.flat | other.flat, self.by or other.by)

    def cut(self, equation: Equation) -> Flow:
        return Flow(0, self.smooth | self.flat, self.by or (equation if self.smooth else None))


class Flows:
    """Arguments that each value of a program depends on, with and without a derivative on the way."""

    def __init__(self, program: Program) -> None:
        self.main = program.main
        self.flows: dict[tuple[int, Any], Flow] = {}
        inputs = [Flow(1 << i if is_float(variable) else 0) for i, variable in enumerate(self.main.raw.invars)]
        self.results = self._run(self.main, inputs)

    def _run(self, body: Body, inputs: Sequence[Flow]) -> list[Flow]:
        flows_of = self.flows
        flows_of.update(((id(body), variable), flow) for variable, flow in zip(body.raw.invars, inputs, strict=False))

        def read(atom: Any) -> Flow:
            return Flow() if is_literal(atom) else flows_of.get((id(body), atom), Flow())

        for equation in body.equations:
            flows = self._step(equation, [read(atom) for atom in equation.inputs])
            flows_of.update(((id(body), out), flow) for out, flow in zip(equation.outputs, flows, strict=True))
        return [read(atom) for atom in body.raw.outvars]

    def _step(self, equation: Equation, inputs: Sequence[Flow]) -> list[Flow]:
        op = equation.op
        if equation.is_call and not op.startswith("custom_"):  # a rule of its own may pass a gradient through `round`
            return self._run(equation.inner[0], inputs)
        if op == "cond":
            branches = [self._run(inner, inputs[1:]) for inner in equation.inner]
            chosen = inputs[0].cut(equation)
            return [_union(flows) | chosen for flows in zip(*branches, strict=True)]
        if op == "scan" and equation.inner:
            return self._scan(equation, [*inputs])
        if op == "select_n":
            return [_union(inputs[1:]) | inputs[0].cut(equation)]
        flow = _union(inputs)
        return [flow.cut(equation) if _is_flat(equation, out) else flow for out in equation.outputs]

    def _scan(self, equation: Equation, inputs: list[Flow]) -> list[Flow]:
        own, carried = scan_inputs(equation.params)
        results: list[Flow] = []
        for _ in range(_PASSES):
            results = self._run(equation.inner[0], inputs)
            inputs[own : own + carried] = [a | b for a, b in zip(inputs[own : own + carried], results, strict=False)]
        return results


def _union(flows: Sequence[Flow]) -> Flow:
    union = Flow()
    for flow in flows:
        union = union | flow
    return union


def _is_flat(equation: Equation, output: Any) -> bool:
    if equation.op == "convert_element_type":
        return not is_float(output)
    return equation.op in FLAT or (not is_float(output) and not equation.inner)


def flat_arguments(program: Program) -> dict[int, Equation]:
    """Return the positions of the arguments whose gradient is always zero, each with the operation that cuts it.

    Empty unless the program is a loss, or has a loss's gradient.
    """
    raw = program.main.raw
    results = raw.outvars
    is_derivative = any("jvp" in equation.transform for equation in program.equations)
    if not raw.invars or not results or not any(equation.op in FLAT for equation in program.equations):
        return {}
    flows = Flows(program)
    if not is_derivative:
        return _cut_in_loss(results[0], flows.results[0])
    return _cut_in_derivative(program, flows)


def _cut_in_loss(result: Any, flow: Flow) -> dict[int, Equation]:
    if flow.by is None or not is_float(result) or result.aval.shape != ():
        return {}
    return {i: flow.by for i in _bits(flow.flat & ~flow.smooth)}


def _cut_in_derivative(program: Program, flows: Flows) -> dict[int, Equation]:
    raw = program.main.raw
    # A gradient that JAX knows to be zero is a constant: the argument reaches operations of the derivative's forward
    # part, is cut there, and reaches no result.
    zeros = {result.aval.shape for result in raw.outvars if _is_zero(program, result)}
    reached = _union(flows.results)
    cuts: dict[int, Equation] = {}
    for equation in program.equations if zeros else ():
        flow = flows.flows.get((id(equation.body), equation.outputs[0]), Flow()) if equation.outputs else Flow()
        if flow.by is equation and "jvp" in equation.transform:
            for i in _bits(flow.flat & ~reached.smooth):
                if raw.invars[i].aval.shape in zeros:
                    cuts.setdefault(i, equation)
    return cuts


def _is_zero(program: Program, atom: Any) -> bool:
    """Return True for a result that is a written 0, broadcast to a shape."""
    body, atom = program.origin(program.main, atom)
    maker = None if is_literal(atom) else body.makers.get(atom)
    if maker is not None and maker.op == "broadcast_in_dim":
        atom = maker.inputs[0]
    return is_literal(atom) and is_float(atom) and not atom.val


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
