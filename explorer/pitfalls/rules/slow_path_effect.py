"""Effects that keep each call off jit's fast path: debug callbacks, I/O callbacks, mutable references."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

from explorer.model.findings import Finding
from explorer.pitfalls.equations import Equation
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import frame_location
from explorer.pitfalls.rule import Rule

CALLBACKS = {
    "debug_callback": "jax.debug.print or jax.debug.callback",
    "debug_print": "jax.debug.print",
    "io_callback": "io_callback",
    "pure_callback": "pure_callback",
}
_ON_REFERENCES = ("get", "swap", "addupdate")


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    reported: set[tuple[str, str, int]] = set()
    for equation in program.of(*CALLBACKS, *_ON_REFERENCES):
        name = _effect(equation)
        frame = program.called_from(equation) if name else None
        place = (name, "", 0) if frame is None else (name, frame.file, frame.line)
        if name and place not in reported:
            reported.add(place)
            ordered = any("Ordered" in type(effect).__name__ for effect in getattr(equation.raw, "effects", ()))
            yield RULE.finding(
                f"{name} keeps every call of a compiled {evidence.name} off jit's fast path"
                + (", and makes calls wait for each other" if ordered else ""),
                evidence=f"the program has {'an ordered' if ordered else 'the'} effect {equation.op}: "
                "calls with effects are dispatched in Python",
                fix=f"take {name} out where calls are short and many, or switch it by a static argument",
                **frame_location(frame),
            )


def _effect(equation: Equation) -> str:
    """What has the effect, as a person calls it; empty for no effect, and for what `host-transfer` reports."""
    if equation.op in CALLBACKS:
        is_transfer = equation.op in ("io_callback", "pure_callback") and in_loop(equation)
        return "" if is_transfer else CALLBACKS[equation.op]
    # Of a reference from outside: those that a function makes for itself are gone when it returns.
    is_outer = equation.body.caller is None and equation.op in _ON_REFERENCES
    return "a mutable reference" if is_outer and equation.inputs[0] in equation.body.raw.constvars else ""


def in_loop(equation: Equation) -> bool:
    """Whether it runs in each turn of a compiled loop; what a `cond` in the loop chooses may run in none."""
    callers = takewhile(lambda caller: caller.op != "cond", equation.callers())
    return any(caller.op in ("scan", "while") for caller in callers)


RULE = Rule(
    "slow-path-effect",
    "EX025",
    "note",
    "A program with effects is dispatched in Python, call by call.",
    "https://docs.jax.dev/en/latest/external-callbacks.html",
    check,
    passive=True,
)
