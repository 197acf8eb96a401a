"""Python loops in a traced function: each turn is traced and compiled, where lax.scan would have one body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.stage import is_library_file
from explorer.pitfalls.equations import Equation, Program
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import frame_location, span_of
from explorer.pitfalls.rule import rule
from explorer.pitfalls.source_loops import FileLoops, Loop, loops_of

# Turns and equations. A model of a few layers is usually written as a loop, and compiles quickly.
_COSTLY = (20, 50)
_NOTEWORTHY = (4, 60)


@rule("unrolled-loop", "EX012", "warning", "control-flow.html", passive=True)
def unrolled_loop(evidence: Evidence) -> Iterator[Finding]:
    """A Python loop is unrolled: each turn makes the program larger, and slower to trace and compile."""
    program = evidence.program
    if len(program.equations) < _COSTLY[1]:
        return
    total = len(program.equations)
    by_loop = _loops(program)
    for loop, seen in by_loop.items():
        around = by_loop.get(seen.around) if seen.around is not None else None
        turns = _turns(seen.repeats) // (_turns(around.repeats) if around is not None else 1)
        is_costly = turns >= _COSTLY[0] and seen.equations >= _COSTLY[1]
        if not is_costly and not (turns >= _NOTEWORTHY[0] and seen.equations >= _NOTEWORTHY[1]):
            continue
        yield unrolled_loop.finding(
            f"this loop runs in Python, while {evidence.name} is traced: its body is in the program {turns} times",
            evidence=f"{seen.equations:,} of the program's {total:,} equations, {seen.equations / total:.0%}, come of "
            f"it: about {seen.equations // turns} for each turn",
            fix=_fix(loop),
            severity="warning" if is_costly else "note",
            **frame_location(Frame(seen.file, "", *loop.header)),
        )


@dataclass
class _Seen:
    file: str  # where it is
    around: Loop | None  # the loop that calls the function that it is in
    equations: int = 0  # all that come of it
    # how often each operation of its own body is there: those with the same stack, primitive and shapes
    repeats: Counter[Any] = field(default_factory=Counter[Any])


def _loops(program: Program) -> dict[Loop, _Seen]:
    by_loop: dict[Loop, _Seen] = {}

    @cache
    def loops_in(file: str) -> FileLoops:
        return FileLoops() if is_library_file(file) else loops_of(file)

    @cache  # most stacks share frames
    def loop_of(frame: Frame) -> Loop | None:
        return loops_in(frame.file).around(span_of(frame))

    of_stack: dict[int, list[_Seen]] = {}
    for equation in program.equations:
        stack = program.stack(equation)
        if id(stack) not in of_stack:
            loops = [(loop, frame.file) for frame in stack if (loop := loop_of(frame)) is not None]
            outer = [loop for loop, _ in loops[1:]] + [None]
            of_stack[id(stack)] = [
                by_loop.setdefault(loop, _Seen(file, around))
                for (loop, file), around in zip(loops, outer, strict=False)
            ]
        seen = of_stack[id(stack)]
        for loop in seen:
            loop.equations += 1
        if seen:
            seen[0].repeats[_operation(equation, stack)] += 1
    return by_loop


def _operation(equation: Equation, stack: Sequence[Frame]) -> tuple[Any, ...]:
    """Return a key that an operation has in every turn of a Python loop: stack, primitive, first shapes."""
    inputs, outputs = equation.inputs, equation.outputs  # a list of both took four times as long
    first = getattr(inputs[0].aval, "shape", None) if inputs else None
    return id(stack), equation.op, first, getattr(outputs[0].aval, "shape", None) if outputs else None


def _turns(repeats: Counter[Any]) -> int:
    """Return how many times a body is in the program, by most of its operations; 1 if most occur once."""
    if not repeats:  # all of it is in other loops
        return 1
    several = [count for count in repeats.values() if count > 1]
    if sum(several) * 2 < sum(repeats.values()):
        return 1
    by_count = Counter(several)
    most = max(by_count.values())
    return min(count for count, n in by_count.items() if n == most)


def _fix(loop: Loop) -> str:
    if loop.is_comprehension:
        return f"jax.vmap(lambda {loop.target}: …)(…) computes all of them at once, from one array of {loop.source}"
    names = ", ".join(loop.carried) or "state"
    state = f"({names})" if "," in names else names
    if not loop.source:
        return f"{names} = jax.lax.while_loop(condition, body, {state})"
    if not loop.collected and 0 < len(loop.range_arguments) < 3:
        low, high = ("0", *loop.range_arguments)[-2:]
        turn = _body(f"{loop.target}, {{0}}", names)
        call = f"{names} = jax.lax.fori_loop({low}, {high}, body, {state})"
        return f"{turn}\n    …\n    return {names}\n{call}"
    return _scan(loop, names, state)


def _scan(loop: Loop, names: str, state: str) -> str:
    made, bounds, is_several = ", ".join(loop.collected), ", ".join(loop.range_arguments), "," in loop.target
    stacked = f"stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *{loop.source})  # along a new first axis\n"
    turn = _body("{0}, each" if is_several else f"{{0}}, {loop.target}", names)
    turn += f"\n    {loop.target} = each" if is_several else ""
    returned, result = (f"{state}, what a turn adds", made) if made else (f"{state}, None", "_")
    each = f"jnp.arange({bounds})" if bounds else "stacked"
    call = f"{state}, {f'({made})' if ',' in made else result} = jax.lax.scan(body, {state}, {each})"
    return f"{'' if bounds else stacked}{turn}\n    …\n    return {returned}\n{call}"


def _body(parameters: str, names: str) -> str:
    """Return the head of a turn's function, which takes the carry as one parameter."""
    if "," not in names:
        return f"def body({parameters.format(names)}):"
    return f"def body({parameters.format('state')}):\n    {names} = state"
