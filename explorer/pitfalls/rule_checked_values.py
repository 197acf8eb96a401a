"""Rules about runs of a program on arguments: values and gradients that aren't finite, integers that wrap around."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from explorer._jax.arguments import jaxpr_place
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.text import root_of
from explorer.pitfalls.checked_run import CheckedRun
from explorer.pitfalls.equations import Equation, is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import expression_at, frame_location, short_text, text_at
from explorer.pitfalls.gradient_faults import SINKS, GradientFault, is_divisor
from explorer.pitfalls.gradient_slices import INFINITE
from explorer.pitfalls.rule import rule

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
    if any("jvp" in one.transform for one in (equation, *equation.callers())) and _has_fault(evidence, frame):
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
    """Return True for an equation of JAX's random numbers, or whose result is used bit by bit, as in a hash."""
    if any(part in jaxpr_place(body.raw)[0] for body in equation.body.outwards() for part in _RANDOM):
        return True
    users = (one for one in equation.body.equations if one.op in _BITWISE)
    return any(not is_literal(atom) and atom in equation.outputs for one in users for atom in one.inputs)


@rule(
    "nan-gradient", "EX017", "warning", "faq.html#gradients-contain-nan-where-using-where", passive=True, compiles=True
)
def nan_gradient(evidence: Evidence) -> Iterator[Finding]:
    """Both branches of a choice are differentiated, and 0 times an infinite derivative is NaN.

    jnp.where(x > 0, jnp.log(x), 0) has the right value, and a NaN gradient where x is 0.

    Both branches are differentiated, and the branch that isn't chosen is multiplied by 0: 0 × ∞ is NaN. The gradient of
    a root of squares at 0 is NaN too. For each finding that piece of the program was run with its gradient.
    """
    run = evidence.checked_gradient  # before the probes, which may take all the time there is
    yield from _at_the_arguments(evidence, run)
    for fault in _faults(evidence):
        witness = f" with {fault.witness}" if fault.witness else ""
        yield nan_gradient.finding(
            _message(fault),
            evidence=f"run{witness}: the value is finite, the gradient NaN"
            + ("" if fault.is_differentiated else "; this program doesn't compute this gradient yet"),
            fix=_fix(fault),
            severity=_severity(fault),
            **frame_location(fault.frame),
        )


def _faults(evidence: Evidence) -> Sequence[GradientFault]:
    return () if evidence.program.by_op.keys().isdisjoint(SINKS) else evidence.gradient_faults


def _has_fault(evidence: Evidence, frame: Frame | None) -> bool:
    """Return True if a line computes part of a value with a NaN gradient: the finding about that has a better fix."""
    made = (one for fault in _faults(evidence) for one in fault.sliced.equations)
    return frame is not None and any(_line(evidence.program.called_from(one)) == _line(frame) for one in made)


def _at_the_arguments(evidence: Evidence, run: CheckedRun | None) -> Iterator[Finding]:
    """Yield a finding if the gradient at the passed arguments isn't finite, at a line without a finding."""
    if run is None or run.values is None:
        return
    equation = run.equation(run.values.place)
    frame = run.program.called_from(equation)
    if frame is None or _has_fault(evidence, frame):
        return
    text = text_at(frame)
    outputs = evidence.program.main.raw.outvars
    yield nan_gradient.finding(
        f"the gradient of {evidence.name} isn't finite at the passed arguments: the derivative of {text} has "
        f"{run.values.kind} there",
        evidence="the value and its gradient were run on the arguments: the value is finite",
        fix="keep the operand away from where the derivative isn't finite, before it: jnp.where(x > 0, x, 1) "
        "and choose by the same condition again after it; add a small number below a root; jax.custom_jvp where the "
        "limit is known",
        # A function with several numbers for a result may never be differentiated.
        severity=None if outputs[0].aval.shape == () else "note",
        **frame_location(frame),
    )


def _line(frame: Frame | None) -> object:
    return None if frame is None else (frame.file, frame.line)


def _severity(fault: GradientFault) -> str | None:
    # A NaN at special arguments only, without a condition that avoids them, may never occur.
    is_meant = fault.is_related if fault.is_choice else fault.is_always
    return None if fault.is_differentiated and is_meant else "note"


def _message(fault: GradientFault) -> str:
    text, cause = short_text(fault.node), " or ".join(fault.causes[:3]) or "an operation"
    if fault.is_choice:
        return (
            f"the gradient of `{text}` is NaN where the branch with {cause} isn't chosen: that branch is "
            "differentiated too, and its infinite derivative times 0 is NaN"
        )
    where = (
        "whatever the arguments are" if fault.is_always else f"where {fault.witness}" if fault.witness else "at a point"
    )
    return f"the gradient of `{text}` is NaN {where}: an infinite derivative times 0 is NaN"


def _fix(fault: GradientFault) -> str:
    if not fault.edits and INFINITE in fault.causes:
        return (
            "choose the factor, and not the product, so that it is finite where the product isn't chosen: "
            "x * jnp.where(condition, 1, jnp.inf) instead of jnp.where(condition, …, x * jnp.inf)"
        )
    if not fault.edits and not fault.is_choice and is_divisor(fault.sliced.program, fault.sliced.sink):
        return (
            "choose a safe divisor by the number below the root, and the quotient by the same condition: "
            "s = jnp.sum(x**2); jnp.where(s > 0, x / jnp.sqrt(jnp.where(s > 0, s, 1)), 0); or "
            "x * jax.lax.rsqrt(s + 1e-12)"
        )
    if not fault.edits:
        return (
            "keep the operand away from where the derivative isn't finite, before the operation and not after it: "
            "choose a safe operand by the condition, then choose by it again; where the limit has a slope of its own, "
            "a series or jax.custom_jvp gives it (no rewrite of this was proven)"
        )
    return "\n".join(f"{edit.after}  # in place of {' '.join(edit.before.split())}" for edit in fault.edits)
