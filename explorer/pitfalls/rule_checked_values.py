"""Rules about a run of the program on the passed arguments: results that aren't finite, integers that wrap around."""

from __future__ import annotations

import re
from collections.abc import Iterator

from explorer._jax.arguments import jaxpr_place
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Equation, is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import expression_at, frame_location, root_of, short_text, text_at
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rule_nan_gradient import has_fault

_BITWISE = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")
_RANDOM = ("/jax/_src/random", "/jax/_src/prng", "/jax/_src/extend/random")
_HINTS = {
    "log": "add a small number in the logarithm, or use a function that has the limit: jax.nn.log_softmax, "
    "jax.scipy.special.xlogy, entr",
    "exp": "subtract the maximum before: jax.nn.softmax, jax.nn.logsumexp and jax.nn.log_sigmoid do",
    "div": "choose a safe divisor first: jnp.where(d == 0, 1, d), or add a small number",
    "sqrt": "keep the operand from becoming negative: jnp.maximum(…, 0)",
    "rsqrt": "add a small number before the root",
    "cholesky": "add a small multiple of the identity: the matrix isn't positive definite",
    "lu": "the matrix is singular: jnp.linalg.lstsq or a small multiple of the identity",
}


@rule("nan-value", "EX038", "warning", "debugging/flags.html#jax-debug-nans-configuration-option-and-context-manager",
      passive=True, compiles=True)  # fmt: skip
def nan_value(evidence: Evidence) -> Iterator[Finding]:
    """A result is NaN or infinite for the passed arguments.

    The traced program was run on them. The finding names the first line that makes NaN or infinity of finite numbers.
    """
    run = evidence.checked
    if run is None or run.values is None:
        return
    equation = run.equation(run.values.place)
    if equation.op == "gather":  # what is read outside of an array is filled with NaN: `out-of-bounds` reports it
        return
    frame = evidence.program.called_from(equation)
    if any("jvp" in one.transform for one in (equation, *equation.callers())) and has_fault(evidence, frame):
        return  # of a derivative: `nan-gradient` reports it
    text = text_at(frame)
    yield nan_value.finding(
        f"{text} makes {run.values.kind} of the passed arguments, and a result of {evidence.name} has it",
        evidence=f"the program was run on the arguments: {equation.op} is the first operation with such a result",
        fix=_HINTS.get(equation.op, "bound its operands before: jnp.clip, jnp.maximum, a safe operand by jnp.where; "
                       "or a type with a larger range"),
        **frame_location(frame),
    )  # fmt: skip


_LOSS = re.compile(r"loss|cost|objective|nll|mse|error|penalty|energy|elbo", re.IGNORECASE)
_SMOOTH = {
    "stop_gradient": "don't apply stop_gradient to what is to be trained: its operand gets no gradient",
    **dict.fromkeys(("argmax", "argmin"), "a smooth function in its place: jax.nn.softmax weighs what argmax chooses"),
    **dict.fromkeys(("eq", "ne", "lt", "le", "gt", "ge"), "a smooth function in its place: jax.nn.sigmoid of the "
                    "difference"),
}  # fmt: skip
_STRAIGHT = "pass the gradient through as if it weren't there: x + jax.lax.stop_gradient({0} - x), with {0} of x"


@rule("zero-gradient", "EX039", "warning", "automatic-differentiation.html", passive=True, compiles=True)
def zero_gradient(evidence: Evidence) -> Iterator[Finding]:
    """The gradient is zero whatever the arguments are: all ways to the loss have an operation without a derivative.

    `round`, `floor`, `sign`, comparisons, `argmax` and casts to integers have derivative 0, and `stop_gradient` makes a
    constant of its operand. Training then changes nothing, without an error.
    """
    arguments = evidence.arguments
    first = root_of(arguments[0].path) if arguments else ""
    own = [i for i, argument in enumerate(arguments) if root_of(argument.path) == first]  # what is differentiated
    flat = {i: equation for i, equation in evidence.flat_arguments.items() if i in own}
    reported: set[Frame | None] = set()
    for i, equation in flat.items():
        frame = evidence.program.called_from(equation)
        # Frozen parts of a model are stopped on purpose.
        if frame in reported or (equation.op == "stop_gradient" and len(flat) < len(own)):
            continue
        reported.add(frame)
        node = expression_at(frame)
        text = short_text(node) if node is not None else "this line"
        is_trained = "jvp" in equation.transform or _LOSS.search(evidence.name)
        yield zero_gradient.finding(
            f"the gradient of {evidence.name} by `{arguments[i].path}` is always zero: the derivative of "
            f"`{text}` is 0 everywhere",
            evidence=f"`{arguments[i].path}` reaches the result only through {equation.op}",
            fix=_SMOOTH.get(equation.op, _STRAIGHT.format(text)),
            severity=None if is_trained else "note",
            **frame_location(frame),
        )


@rule("integer-wrap", "EX040", "warning", "default_dtypes.html", passive=True, compiles=True)
def integer_wrap(evidence: Evidence) -> Iterator[Finding]:
    """An integer result exceeds its dtype for the passed arguments and wraps around without an error.

    Unsigned integers wrap below 0, int32 beyond 2,147,483,647. Python's integers never wrap; NumPy's default has 64
    bits.
    """
    run = evidence.checked
    reported: set[Frame | None] = set()
    if run is None:
        return
    for fault in run.wraps.values():
        equation = run.equation(fault.place)
        frame = evidence.program.called_from(equation)
        if frame in reported or _is_meant(equation):
            continue
        reported.add(frame)
        text, kind = text_at(frame, "a number of this line"), equation.outputs[0].aval.dtype
        wider = "int16 or int32" if kind.itemsize == 1 else "float32, or jax_enable_x64 for int64"
        yield integer_wrap.finding(
            f"{text} wraps around in {kind.name}: {fault.kind}",
            evidence="the program was run on the arguments; JAX doesn't check integers",
            fix=f"convert to a wider type before the operation, with .astype: {wider}; to a signed type if an unsigned "
            "number may fall below 0",
            **frame_location(frame),
        )


def _is_meant(equation: Equation) -> bool:
    """Return True in JAX's random numbers, and where bits of the result are used, as in a hash."""
    if any(part in jaxpr_place(body.raw)[0] for body in equation.body.outwards() for part in _RANDOM):
        return True
    users = (one for one in equation.body.equations if one.op in _BITWISE)
    return any(not is_literal(atom) and atom in equation.outputs for one in users for atom in one.inputs)
