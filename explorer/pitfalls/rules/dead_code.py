"""What a function computes and doesn't use, and arguments that it doesn't compute with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from explorer.model.findings.finding import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.arguments import Argument, arguments_of, parameter_location
from explorer.pitfalls.equations import Body, Equation, Program
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import frame_location
from explorer.pitfalls.rule import Rule
from explorer.pitfalls.syntax_trees import root_of

__all__ = ["RULE"]

_COSTLY = frozenset(
    ("dot_general", "conv_general_dilated", "scan", "while", "sort", "fft", "cholesky", "lu", "qr", "eigh", "svd")
)
_LARGE = 100_000  # elements computed for nothing
_MANY = 20  # equations


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    if program is None:
        return
    live = _Live(program)
    yield from _lines(program, live)
    yield from _arguments(evidence, live)


class _Live:
    """Which equations and inputs a program's results depend on."""

    def __init__(self, program: Program) -> None:
        self.dead: list[Equation] = []
        self.used = self.mark(program.main, set(map(_key, program.main.raw.outvars)))

    def mark(self, body: Body, used: set[Any]) -> set[Any]:
        """Go from the results that are used to what they need; gives the variables that are."""
        for equation in reversed(body.equations):
            outputs = [output in used for output in equation.outputs]
            if not any(outputs) and not equation.raw.effects:
                self.dead.append(equation)
                continue
            needed = equation.inputs
            for inner in equation.inner:
                if inner.is_of_jax:  # nothing of the user's is in it
                    continue
                results = inner.raw.outvars
                is_asked = equation.is_call and len(results) == len(outputs)
                asked = [out for i, out in enumerate(results) if not is_asked or outputs[i]]
                inside = self.mark(inner, set(map(_key, asked)))
                if equation.is_call:
                    needed = [o for o, v in zip(equation.inputs, inner.raw.invars, strict=True) if v in inside]
            used.update(map(_key, needed))
        return used


def _key(atom: Any) -> Any:
    return None if isinstance(atom, Literal) else atom


@dataclass
class _Line:
    first: Frame
    equations: list[Equation] = field(default_factory=list[Equation])

    @property
    def ops(self) -> list[str]:
        return [inner.op for equation in self.equations for inner in _within(equation)]

    @property
    def is_substantial(self) -> bool:
        size = sum(_size(output) for equation in self.equations for output in equation.outputs)
        return size >= _LARGE or len(self.ops) >= _MANY or not _COSTLY.isdisjoint(self.ops)


def _lines(program: Program, live: _Live) -> Iterator[Finding]:
    dead: dict[tuple[str, int], _Line] = {}
    for equation in reversed(live.dead):
        # A derivative computes the function's value too, used or not.
        frame = program.frame(equation) if "jvp" not in equation.transform else None
        if frame is not None:
            dead.setdefault((frame.file, frame.line), _Line(frame)).equations.append(equation)
    dead = {at: line for at, line in dead.items() if line.is_substantial}
    gone = set(map(id, live.dead))
    for equation in program.equations if dead else ():
        if id(equation) not in gone and not _is_inside(equation, gone):
            frame = program.frame(equation)
            if frame is not None:
                dead.pop((frame.file, frame.line), None)
    for line in dead.values():
        count = len(line.ops)
        costly = sorted(set(line.ops) & _COSTLY)
        yield RULE.finding(
            "what this line computes isn't used: XLA leaves it out, and who reads it takes it for a part of the result",
            evidence=f"{count} equation{'s' if count > 1 else ''} that no result depends on"
            + (f", {', '.join(costly)} among them" if costly else ""),
            fix="delete the line, or return what it computes",
            **frame_location(line.first),
        )


def _is_inside(equation: Equation, gone: set[int]) -> bool:
    caller = equation.body.caller
    while caller is not None:
        if id(caller) in gone:
            return True
        caller = caller.body.caller
    return False


def _within(equation: Equation) -> Iterator[Equation]:
    yield equation
    for body in equation.inner:
        for one in body.equations:
            yield from _within(one)


def _arguments(evidence: Evidence, live: _Live) -> Iterator[Finding]:
    several: dict[str, list[tuple[Argument, bool]]] = defaultdict(list)
    # State that isn't used yet is there to be kept.
    state = len(jax.tree.leaves(evidence.traced.args_info[0][0])) if evidence.captured else 0
    for argument in arguments_of(evidence)[state:]:
        if argument.path:
            several[root_of(argument.path)].append((argument, argument.variable in live.used))
    for root, known in several.items():
        unused = [argument for argument, is_used in known if not is_used]
        is_whole = len(unused) == len(known)
        size = sum(_size(argument.variable) for argument in unused)
        if not unused or root.startswith("_") or (not is_whole and size < _LARGE):
            continue
        names = ", ".join(f"`{argument.path}`" for argument in unused[:3]) + (" …" if len(unused) > 3 else "")
        yield RULE.finding(
            f"{evidence.name} doesn't use the values of {f'`{root}`' if is_whole else names}",
            evidence=f"no result depends on {'it' if len(unused) == 1 else 'them'}; its shape and dtype may be used. "
            "Another shape or dtype compiles again all the same",
            fix=f"leave `{root}` out" if is_whole else f"leave out of `{root}` what isn't used",
            **parameter_location(evidence, root),
        )


def _size(variable: Any) -> int:
    shape = getattr(variable.aval, "shape", ())
    return int(np.prod([size if isinstance(size, int) else 1 for size in shape], dtype=np.int64))


RULE = Rule(
    "dead-code",
    "EX026",
    "note",
    "No result depends on what is computed, or on an argument.",
    "https://docs.jax.dev/en/latest/jit-compilation.html",
    check,
    passive=True,
)
