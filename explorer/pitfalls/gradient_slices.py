"""Operations without a useful derivative: slices where it isn't finite, and arguments cut off where it is zero."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from explorer._jax.traces import bind_equation, scan_inputs
from explorer.pitfalls.equations import Body, Equation, Program, is_float, is_literal


@dataclass(frozen=True)
class Singularity:
    """Condition under which an operation has no finite derivative."""

    name: str  # in a sentence
    operand: int = 0  # the number of the operand that it depends on
    # True where the derivative is finite: Python, with `{x}` for the operand and `{y}` for the first one
    test: str = "{x} > 0"
    safe: str = "1"  # an operand at which value and derivative are finite
    limit: str = ""  # the operation's own value where the test fails, if that is finite; Python, empty if it isn't
    is_kept: bool = False  # whether the operation has the same value at `safe` as where the test fails
    overflows: bool = False  # whether it is the size of the result, not the operand, that is out of range

    @property
    def needs_positive(self) -> bool:
        """True for tests on one operand alone that any positive operand passes."""
        return self.test in ("{x} > 0", "{x} > -1", "{x} != 0")

    def holds(self, operand: Any, first: Any) -> Any:
        return _evaluate(self.test, operand, first)

    def is_regular(self, *operands: Any) -> Any:
        """Return True, by element, where the derivative is finite; for an overflow, where the operand is small."""
        operand = operands[self.operand]
        return abs(operand) < _LARGE if self.overflows else self.holds(operand, operands[0])

    def at_limit(self, operand: Any) -> Any:
        return _evaluate(self.limit, operand)


def _evaluate(template: str, x: Any, y: Any = None) -> Any:
    """Return the value, for arrays, of the condition or limit that a fix writes into the user's code."""
    return eval(template.format(x="x", y="y"), {"jnp": jnp, "x": x, "y": y})


_LARGE = 80  # exp of more than 88.7 is infinite in float32
_INSIDE = "abs({x}) < 1"
_OVERFLOW: dict[str, Any] = {"test": "", "overflows": True}
SINGULAR: dict[str, Singularity] = {
    "log": Singularity("a logarithm"),
    "log2": Singularity("a logarithm"),  # from JAX 0.12 on one operation; log10 still divides a logarithm
    "log1p": Singularity("log1p", test="{x} > -1", safe="0"),
    "sqrt": Singularity("a root", limit="0"),
    "rsqrt": Singularity("a reciprocal root"),
    "cbrt": Singularity("a root", test="{x} != 0", limit="0"),
    "div": Singularity("a division", 1, "{x} != 0"),
    "pow": Singularity("a power", limit="0"),
    "integer_pow": Singularity("a reciprocal", test="{x} != 0"),
    "asin": Singularity("arcsin", test=_INSIDE, safe="0", limit="jnp.sign({x}) * jnp.pi / 2"),
    "acos": Singularity("arccos", test=_INSIDE, safe="0", limit="jnp.where({x} > 0, 0, jnp.pi)"),
    "atanh": Singularity("arctanh", test=_INSIDE, safe="0"),
    "acosh": Singularity("arccosh", test="{x} > 1", safe="2", limit="0"),
    "atan2": Singularity("arctan2", 1, "({y} != 0) | ({x} != 0)", is_kept=True),
    "erf_inv": Singularity("erfinv", test=_INSIDE, safe="0"),
    "lgamma": Singularity("gammaln"),
    "digamma": Singularity("digamma"),
    "exp": Singularity("exp", **_OVERFLOW),
    "exp2": Singularity("exp2", **_OVERFLOW),
    "expm1": Singularity("expm1", **_OVERFLOW),
    "sinh": Singularity("sinh", **_OVERFLOW),
    "cosh": Singularity("cosh", **_OVERFLOW),
}
INFINITE = "an infinite factor"
_NEVER = "False"  # such a derivative is infinite whatever the operand is: no other operand helps
# Where a sum of squares is 0 the root's derivative is infinite, and that of the squares 0: the product is NaN.
ENDS = ("sqrt", "pow", "acos", "asin", "atan2", "cbrt", "acosh")


def _is_infinite(op: str, i: int, operand: Any) -> bool:
    """Return True for an infinite literal factor: `x * inf`, or `x / 0`."""
    if not is_literal(operand) or np.ndim(operand.val) or np.asarray(operand.val).dtype.kind != "f":
        return False
    return not operand.val if op == "div" and i == 1 else op == "mul" and bool(np.isinf(operand.val))


def singularity(equation: Equation) -> Singularity | None:
    """Return where an equation has no finite derivative; None if there is no such place."""
    op, inputs = equation.op, equation.inputs
    infinite = next((i for i, operand in enumerate(inputs) if _is_infinite(op, i, operand)), None)
    if infinite is not None:
        return Singularity(INFINITE, 1 - infinite, _NEVER)
    exponent = equation.params["y"] if op == "integer_pow" else 0.5
    if op == "pow" and is_literal(inputs[1]):
        exponent = float(inputs[1].val)
    # A whole power of an operand is differentiable; a derivative like a root's is infinite at 0.
    is_smooth = exponent >= 1 or exponent == 0
    return None if is_smooth else SINGULAR.get(op)


_MAX_EQUATIONS = 150  # equations; those further away are inputs
_MAX_INPUTS = 12
_MAX_ARRAYS = 4
LEAST = 1e-18  # float32 has its logarithm, its reciprocal, and the square of that
_MAX_VALUE_ELEMENTS = 100_000  # elements of one value
_MAX_PRODUCT_ELEMENTS = 4_096  # elements of a matrix product's operand: it is run some hundred times
# Their results may be anything: they are inputs.
_INPUTS = ("conv_general_dilated", "while", "scan", "cond", "sort", "custom_lin", "axis_index")
_ENDS_IN = ("random", "threefry", "callback", "psum", "all_", "ppermute", "reduce_scatter", "sharding", "shard_map")

Place = tuple[Body, Any]
Key = tuple[int, Any]


@dataclass(frozen=True, eq=False)
class Guard:
    """Change to one equation that keeps its operand away from the singularity."""

    equation: Equation  # equation to guard
    singularity: Singularity  # where its derivative isn't finite
    # what decides: `condition`, that of the choice; `operand`, the operand itself; `both`, the operand itself, and
    # where that isn't safe the result is the operation's own value there; `least`, nothing: the operand is never less
    # than a tiny number
    kind: str


class ValueSlice:
    """Equations that compute a value, back to arguments or opaque operations.

    Args:
        program: Traced program.
        sink: Equation whose first output is the value.
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
        return equation in self.equations or (len(self.equations) <= _MAX_EQUATIONS and not _ends(equation))

    @property
    def can_run(self) -> bool:
        """True if there are 1 to 12 inputs, and all shapes are known and small enough for some hundred runs."""
        atoms = [atom for equation in self.equations for atom in (*equation.outputs, *equation.inputs)]
        avals = [atom.aval for atom in (*atoms, *(atom for _, atom in self.inputs.values()))]
        return 0 < len(self.inputs) <= _MAX_INPUTS and all(map(_is_small, avals))

    @property
    def is_chosen_by_an_input(self) -> bool:
        """True if the condition of the choice is an input."""
        body, atom = self.origin(self.sink.body, self.sink.inputs[0])
        return not is_literal(atom) and (id(body), atom) in self.inputs

    @property
    def avals(self) -> list[Any]:
        return [atom.aval for _, atom in self.inputs.values()]

    def _add_literal(self, value: Any) -> None:
        kind = getattr(getattr(value, "dtype", None), "kind", "")
        if kind == "f" and 1 < np.size(value) <= _MAX_PRODUCT_ELEMENTS:
            self.arrays += [np.asarray(value)][: _MAX_ARRAYS - len(self.arrays)]
        if (kind or "f") in "fiu" and np.size(value) <= 16:
            self.literals += [float(number) for number in np.ravel(np.asarray(value))]

    def origin(self, body: Body, atom: Any) -> Place:
        """Return the body and atom that a value comes from, through plain calls.

        The search stops at functions with custom derivatives.
        """
        return self.program.origin(body, atom, own_rules=False)

    def run(self, values: Sequence[Any], guards: Sequence[Guard] = ()) -> Any:
        return _Run(self, values, guards).output(self.sink, 0)

    def operands(self, values: Sequence[Any], equations: Sequence[Equation]) -> list[list[Any]]:
        run = _Run(self, values)
        return [run.operands(equation) for equation in equations]


class _Run:
    def __init__(self, sliced: ValueSlice, values: Sequence[Any], guards: Sequence[Guard] = ()) -> None:
        self.sliced = sliced
        self.values: dict[Key, Any] = dict(zip(sliced.inputs, values, strict=True))
        self.guards = {guard.equation: guard for guard in guards}
        self.running: set[Equation] = set()

    def value(self, body: Body, atom: Any) -> Any:
        body, atom = self.sliced.origin(body, atom)
        if is_literal(atom):
            return atom.val
        if atom in body.consts:
            return body.consts[atom]
        key = id(body), atom
        if key not in self.values:
            self.output(body.makers[atom], 0)
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
        operand, changed = jnp.asarray(operands[at]), list(operands)
        if guard.kind == "least":
            changed[at] = jnp.maximum(operand, jnp.asarray(LEAST, operand.dtype))
            return bind_equation(equation.raw, changed)
        if guard.kind == "condition":
            choice = self.sliced.sink
            test = jnp.asarray(self.value(choice.body, choice.inputs[0])).astype(bool)
            # In the false branch the condition is inverted.
            test = test if in_branch(self.sliced, equation, choice.inputs[2]) else ~test
            if jnp.broadcast_shapes(test.shape, operand.shape) != operand.shape:
                raise ValueError("the condition is larger than the operand")
        else:
            test = singularity.holds(operand, operands[0])
        changed[at] = jnp.where(test, operand, jnp.asarray(float(singularity.safe), operand.dtype))
        results = bind_equation(equation.raw, changed)
        if guard.kind == "both":
            results = [jnp.where(test, results[0], jnp.asarray(singularity.at_limit(operand), results[0].dtype))]
        return results


def in_branch(sliced: ValueSlice, equation: Equation, branch: Any) -> bool:
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
        return not all(_is_small(atom.aval, _MAX_PRODUCT_ELEMENTS) for atom in equation.inputs)
    has_body = bool(equation.inner) and not equation.op.startswith("custom_")
    effects: Any = getattr(equation.raw, "effects", ())
    return has_body or bool(effects) or equation.op in _INPUTS or any(part in equation.op for part in _ENDS_IN)


def _is_small(aval: Any, most: int = _MAX_VALUE_ELEMENTS) -> bool:
    shape: tuple[Any, ...] = getattr(aval, "shape", ("unknown",))
    kind = getattr(getattr(aval, "dtype", None), "kind", "unknown")
    return kind in "biufcV" and all(type(size) is int for size in shape) and math.prod(shape) <= most


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
