"""jnp.where(x > 0, jnp.log(x), 0) has the right value, and a NaN gradient where x is 0.

Both branches are differentiated, and the branch that isn't chosen is multiplied by 0: 0 × ∞ is NaN. The gradient of a
root of squares at 0 is NaN too. For each finding that piece of the program was run with its gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.checked_run import CheckedRun
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import frame_location, short_text, text_at
from explorer.pitfalls.gradient_faults import SINKS, GradientFault, is_divisor
from explorer.pitfalls.gradient_slices import INFINITE
from explorer.pitfalls.rule import rule


@rule(
    "nan-gradient", "EX017", "warning", "faq.html#gradients-contain-nan-where-using-where", passive=True, compiles=True
)
def nan_gradient(evidence: Evidence) -> Iterator[Finding]:
    """Both branches of a choice are differentiated, and 0 times an infinite derivative is NaN."""
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


def has_fault(evidence: Evidence, frame: Frame | None) -> bool:
    """Return True if a line is part of a value with a finding: that has the cause, and a better fix."""
    made = (one for fault in _faults(evidence) for one in fault.sliced.equations)
    return frame is not None and any(_line(evidence.program.called_from(one)) == _line(frame) for one in made)


def _at_the_arguments(evidence: Evidence, run: CheckedRun | None) -> Iterator[Finding]:
    """Yield a finding if the gradient at the passed arguments isn't finite, at a line without a finding."""
    if run is None or run.values is None:
        return
    equation = run.equation(run.values.place)
    frame = run.program.called_from(equation)
    if frame is None or has_fault(evidence, frame):
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
