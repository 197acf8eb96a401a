"""Computations whose result is unused, and arguments that are unused."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.model.text import root_of
from explorer.pitfalls.equations import Equation, Program, liveness
from explorer.pitfalls.evidence import Argument, Evidence, parameter_location
from explorer.pitfalls.function_source import frame_location
from explorer.pitfalls.rule import rule

_COSTLY = frozenset(
    ("dot_general", "conv_general_dilated", "scan", "while", "sort", "fft", "cholesky", "lu", "qr", "eigh", "svd")
)
_LARGE = 100_000  # elements computed for nothing
_MANY = 20  # equations


@rule("dead-code", "EX026", "note", "jit-compilation.html", passive=True)
def dead_code(evidence: Evidence) -> Iterator[Finding]:
    """No result depends on a computation, or on an argument."""
    used, dead = liveness(evidence.program)
    yield from _lines(evidence.program, dead)
    yield from _arguments(evidence, used)


def _lines(program: Program, dead: list[Equation]) -> Iterator[Finding]:
    """Yield findings for lines that compute much and whose results are unused."""
    lines: dict[tuple[str, int], list[Equation]] = {}
    for equation in reversed(dead):
        # A derivative also computes the function's value, even if unused.
        frame = program.frame(equation) if "jvp" not in equation.transform else None
        if frame is not None:
            lines.setdefault((frame.file, frame.line), []).append(equation)
    lines = {at: line for at, line in lines.items() if _is_substantial(line)}
    for frame in _used_frames(program, dead) if lines else ():
        lines.pop((frame.file, frame.line), None)
    for line in lines.values():
        ops = _ops(line)
        costly = ", ".join(sorted(set(ops) & _COSTLY))
        yield dead_code.finding(
            "what this line computes isn't used: XLA removes it, although it looks like a part of the result",
            evidence=f"{len(ops)} equation{'s' * (len(ops) > 1)} that no result depends on"
            + (f", {costly} among them" if costly else ""),
            fix="delete the line, or return what it computes",
            **frame_location(program.frame(line[0])),
        )


def _is_substantial(line: list[Equation]) -> bool:
    ops, size = _ops(line), sum(_size(output) for equation in line for output in equation.outputs)
    return size >= _LARGE or len(ops) >= _MANY or not _COSTLY.isdisjoint(ops)


def _ops(line: list[Equation]) -> list[str]:
    return [inner.op for equation in line for inner in _within(equation)]


def _used_frames(program: Program, dead: list[Equation]) -> Iterator[Frame]:
    gone = set(map(id, dead))
    for equation in program.equations:
        if not any(id(outer) in gone for outer in (equation, *equation.callers())):
            frame = program.frame(equation)
            if frame is not None:
                yield frame


def _within(equation: Equation) -> Iterator[Equation]:
    yield equation
    for body in equation.inner:
        for one in body.equations:
            yield from _within(one)


def _arguments(evidence: Evidence, used: set[Any]) -> Iterator[Finding]:
    arguments = evidence.arguments
    # Unused state is declared to be kept.
    state = len(jax.tree.leaves(evidence.traced.args_info[0][0])) if evidence.captured and arguments else 0
    idle = {argument.variable for argument in arguments[state:]} - used
    if not idle:
        return
    # An argument whose gradient is zero is meant to be used: `zero-gradient` reports it.
    idle -= {arguments[i].variable for i in evidence.flat_arguments}
    by_root: dict[str, list[Argument]] = defaultdict(list)
    for argument in arguments[state:]:
        by_root[root_of(argument.path)].append(argument)
    for root, several in by_root.items():
        unused = [argument for argument in several if argument.variable in idle]
        is_whole = len(unused) == len(several)
        is_worth_it = is_whole or sum(_size(argument.variable) for argument in unused) >= _LARGE
        if unused and is_worth_it and root[:1] not in ("", "_"):
            yield _unused(evidence, root, unused, is_whole)


def _unused(evidence: Evidence, root: str, unused: list[Argument], is_whole: bool) -> Finding:
    names = ", ".join(f"`{argument.path}`" for argument in unused[:3]) + (" …" if len(unused) > 3 else "")
    return dead_code.finding(
        f"{evidence.name} doesn't use the values of {f'`{root}`' if is_whole else names}",
        evidence=f"no result depends on {'it' if len(unused) == 1 else 'them'}; its shape and dtype may be used. "
        "Another shape or dtype still recompiles",
        fix=f"leave `{root}` out" if is_whole else f"leave out of `{root}` what isn't used",
        **parameter_location(evidence, root),
    )


def _size(variable: Any) -> int:
    shape = getattr(variable.aval, "shape", ())
    return int(np.prod([size if isinstance(size, int) else 1 for size in shape], dtype=np.int64))
