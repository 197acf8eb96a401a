"""Effects that keep each call off jit's fast path: debug callbacks, I/O callbacks, mutable references."""

from __future__ import annotations

from collections.abc import Iterator

from explorer.model.findings.finding import Finding
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import frame_location
from explorer.pitfalls.rule import Rule

__all__ = ["CALLBACKS", "RULE", "in_loop"]

CALLBACKS = {
    "debug_callback": "jax.debug.print or jax.debug.callback",
    "debug_print": "jax.debug.print",
    "io_callback": "io_callback",
    "pure_callback": "pure_callback",
}


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    seen: set[tuple[str, int, str]] = set()
    for equation in program.equations if program is not None else ():
        name = _effect(equation)
        if not name or (in_loop(equation) and equation.op in ("io_callback", "pure_callback")):
            continue  # a callback in each turn is a `host-transfer`
        frame = program.called_from(equation) if program is not None else None
        place = ("", 0, name) if frame is None else (frame.file, frame.line, name)
        if place not in seen:
            seen.add(place)
            ordered = _is_ordered(equation)
            yield RULE.finding(
                f"{name} keeps every call of a compiled {evidence.name} off jit's fast path"
                + (", and makes calls wait for each other" if ordered else ""),
                evidence=f"the program has {'an ordered' if ordered else 'the'} effect {equation.op}: "
                "calls with effects are dispatched in Python",
                fix=f"take {name} out where calls are short and many, or switch it by a static argument",
                **frame_location(frame),
            )


def _effect(equation: Equation) -> str:
    if equation.op in CALLBACKS:
        return CALLBACKS[equation.op]
    # Of a reference from outside: those that a function makes for itself are gone when it returns.
    is_outer = equation.body.caller is None and equation.op in ("get", "swap", "addupdate")
    return "a mutable reference" if is_outer and equation.inputs[0] in equation.body.raw.constvars else ""


def _is_ordered(equation: Equation) -> bool:
    return any("Ordered" in type(effect).__name__ for effect in getattr(equation.raw, "effects", ()))


def in_loop(equation: Equation) -> bool:
    """Whether it runs in each turn of a compiled loop."""
    caller = equation.body.caller
    while caller is not None:
        if caller.op in ("scan", "while"):
            return True
        caller = caller.body.caller
    return False


RULE = Rule(
    "slow-path-effect",
    "EX025",
    "note",
    "A program with effects is dispatched in Python, call by call.",
    "https://docs.jax.dev/en/latest/external-callbacks.html",
    check,
    passive=True,
)
