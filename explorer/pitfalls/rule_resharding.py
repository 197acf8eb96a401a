"""The rule about arrays that are moved to another sharding and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from explorer.analysis.sharding.program import Waste
from explorer.capture.sources import Span
from explorer.model.findings import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Body, Equation, Program, is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.function_source import span_location
from explorer.pitfalls.rule import rule
from explorer.pitfalls.rule_sharding import LARGE, bytes_of, finding_of

_ELEMENTWISE = frozenset(
    [
        "abs",
        "add",
        "and",
        "cbrt",
        "ceil",
        "clamp",
        "convert_element_type",
        "copy",
        "cos",
        "cosh",
        "div",
        "erf",
        "exp",
        "exp2",
        "expm1",
        "floor",
        "integer_pow",
        "log",
        "log1p",
        "logistic",
        "max",
        "min",
        "mul",
        "neg",
        "not",
        "or",
        "pow",
        "rem",
        "round",
        "rsqrt",
        "select_n",
        "sign",
        "sin",
        "sinh",
        "sqrt",
        "square",
        "sub",
        "tan",
        "tanh",
    ]
)
_CONSTRAINT = "sharding_constraint"


@rule("resharding-back", "EX046", "warning", "parallel.html", passive=True, compiles=True)
def resharding_back(evidence: Evidence) -> Iterator[Finding]:
    """An array of 1 MB or more is moved to another sharding and back, with only elementwise operations in between."""
    if evidence.capture is None:
        return
    for there, back in _round_trips(evidence):
        aval, sharding = there.outputs[0].aval, back.params["sharding"]
        if bytes_of(aval) < LARGE:
            continue
        spec = f"P({', '.join(map(repr, sharding.spec))})"
        devices = sharding.mesh.size
        waste = Waste(
            "there and back", None, (), bytes_of(aval) // devices, devices, spec=spec, results=((id(there.raw), 0),)
        )
        here, line = _lines(evidence, there, back)
        place = span_location(here.file, Span(here.line, 0, 0, 0)) if here is not None else {}
        message = (
            f"this array has the sharding {spec}, is moved to another one here, and back to it in line {line}: only "
            "elementwise operations are in between"
        )
        yield finding_of(resharding_back, evidence, waste, message, "leave this constraint out", **place)


def _lines(evidence: Evidence, there: Equation, back: Equation) -> tuple[Frame | None, str]:
    """Return the frame of the first constraint and the line of the second, "?" if unknown; if a helper writes both on
    one line, where the helper is called from.
    """
    stacks = [evidence.program.stack(equation) for equation in (there, back)]
    pairs = [*zip(*stacks, strict=False)]
    here, behind = next((pair for pair in pairs if pair[0].line != pair[1].line), pairs[0] if pairs else (None, None))
    return here, f"{behind.line}" if behind is not None else "?"


def _round_trips(evidence: Evidence) -> Iterator[tuple[Equation, Equation]]:
    """Yield (constraint that moves an array to another sharding, later constraint that moves it back)."""
    program = evidence.program
    for back in program.equations:
        if back.op != _CONSTRAINT or _spec(back) is None:
            continue
        there, atom = _behind(program, back.body, back.inputs[0])
        if there is None or _spec(there) in (None, _spec(back)):
            continue
        before, atom = _behind(program, there.body, there.inputs[0])
        own = _spec(before) if before is not None else _argument_spec(evidence, atom)
        if own is not None and own == _spec(back):
            yield there, back


def _behind(program: Program, body: Body, atom: Any) -> tuple[Equation | None, Any]:
    """Return (constraint, its output) behind a value, through elementwise equations of one array; (None, variable)
    where they read an argument or constant, and (None, None) where other equations are between.
    """
    for _ in range(_MAX_CHAIN):
        body, atom = program.origin(body, atom)
        maker = None if is_literal(atom) else body.makers.get(atom)
        if maker is None or maker.op == _CONSTRAINT:
            return maker, atom
        body, atom = maker.body, _only_operand(maker, atom.aval.shape)
        if atom is None:
            break
    return None, None


def _only_operand(maker: Equation, shape: tuple[int, ...]) -> Any:
    """Return the single array that an elementwise equation reads, if it has `shape`; None for other equations."""
    arrays = [each for each in maker.inputs if not is_literal(each) and each.aval.size > 1]
    is_alone = maker.op in _ELEMENTWISE and len(arrays) == 1 and arrays[0].aval.shape == shape
    return arrays[0] if is_alone else None


_MAX_CHAIN = 30


def _spec(constraint: Equation) -> tuple[Any, ...] | None:
    """Return the spec of a constraint without trailing None; None if it names no mesh."""
    return _trimmed(getattr(constraint.params.get("sharding"), "spec", None))


def _trimmed(spec: Any) -> tuple[Any, ...] | None:
    parts = None if spec is None else [*spec]
    while parts and parts[-1] is None:
        parts.pop()
    return None if parts is None else tuple(parts)


def _argument_spec(evidence: Evidence, atom: Any) -> tuple[Any, ...] | None:
    raw = evidence.program.main.raw
    at = next((at for at, variable in enumerate(raw.invars) if variable is atom), None)
    leaves: list[Any] = jax.tree.leaves((tuple(evidence.args), evidence.kwargs))
    # Static arguments are leaves and no variables: then positions say nothing.
    if at is None or len(leaves) != len(raw.invars):
        return None
    return _trimmed(getattr(getattr(leaves[at], "sharding", None), "spec", None))
