"""jnp.where(x > 0, jnp.log(x), 0): its value is right, and its gradient NaN where x is 0.

Both branches are differentiated, and what isn't chosen is multiplied by 0: 0 × ∞ is NaN. Found is a choice by a value
of which a branch takes something with no finite derivative everywhere, unless that value was made safe before: by
another `where`, `maximum`, `clip`, or because it is positive anyway.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from explorer.capture.sources import syntax_at
from explorer.model.findings.finding import Finding
from explorer.model.graph import Frame
from explorer.pitfalls.equations import Body, Equation, Program, is_literal
from explorer.pitfalls.evidence import Evidence
from explorer.pitfalls.locations import frame_location, span_of
from explorer.pitfalls.rule import Rule

_COMPARISONS = ("gt", "lt", "ge", "le", "eq", "ne")
_LOGIC = ("and", "or", "not", "broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy")
# Operations on each element, through which a value stays one of the same input.
_ELEMENTWISE = (
    *("add", "sub", "mul", "div", "neg", "abs", "square", "integer_pow", "pow", "sqrt", "rsqrt", "exp", "log", "sign"),
    *("broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy", "transpose", "expand_dims", "slice"),
)
# The operand at which the derivative is not finite everywhere.
_SINGULAR = {"log": 0, "sqrt": 0, "rsqrt": 0, "cbrt": 0, "div": 1, "pow": 0, "integer_pow": 0} | dict.fromkeys(
    ("asin", "acos", "atanh", "acosh"), 0
)
_NAMES = {"div": "a division", "rsqrt": "a reciprocal root", "pow": "a power", "integer_pow": "a reciprocal"}
_POSITIVE = ("exp", "exp2", "logistic", "cosh")
_KEEP_SIGN = (
    *("broadcast_in_dim", "reshape", "squeeze", "convert_element_type", "copy"),
    *("sqrt", "reduce_sum", "reduce_max"),
)
_MOST = 60  # operations looked at for one choice
_DEEPEST = 8

Place = tuple[Body, Any]


def check(evidence: Evidence) -> Iterator[Finding]:
    program = evidence.program
    values = _Values(program)
    reported: set[Frame] = set()
    for choice in program.equations:
        frame = program.frame(choice) if _is_choice(choice) else None
        if frame is None or frame in reported:
            continue
        danger = values.danger(choice)
        call = _choice_call(frame) if danger is not None else None
        if danger is not None and call is not None:
            reported.add(frame)
            yield _finding(frame, call, _NAMES.get(danger.op, danger.op), "jvp" in choice.transform)


def _is_choice(equation: Equation) -> bool:
    """Whether it chooses between two floats; not in a function that says itself what its derivative is."""
    if equation.op != "select_n" or len(equation.inputs) != 3 or not _is_float(equation.outputs[0]):
        return False
    has_own_rule = any(caller.op.startswith("custom_") for caller in equation.callers())
    return not has_own_rule and "transpose" not in equation.transform


def _finding(frame: Frame, call: ast.Call, what: str, is_differentiated: bool) -> Finding:
    return RULE.finding(
        f"the gradient of `{_short(call)}` is NaN where the branch with {what} isn't chosen: that branch is "
        "differentiated too, and its infinite derivative times 0 is NaN",
        evidence=f"{what} of a value that only the condition keeps from where its derivative isn't finite"
        + ("" if is_differentiated else "; nothing in this program is differentiated by it yet"),
        fix=_fix(call),
        severity=None if is_differentiated else "note",
        **frame_location(frame),
    )


@dataclass
class _Values:
    program: Program

    def danger(self, choice: Equation) -> Equation | None:
        """An operation in a branch without a finite derivative where the condition is what keeps its operand away."""
        tested = self.tested(choice.body, choice.inputs[0])
        waiting: list[Place] = [(choice.body, branch) for branch in choice.inputs[1:]] if tested else []
        seen: set[Equation] = set()
        while waiting and len(seen) < _MOST:
            maker = self.program.maker(*waiting.pop())
            if maker is None or maker in seen or maker.op == "select_n":
                continue
            seen.add(maker)
            waiting += [(maker.body, operand) for operand in maker.inputs]
            if self.is_dangerous(maker, tested):
                return maker
        return None

    def is_dangerous(self, equation: Equation, tested: set[tuple[int, Any]]) -> bool:
        """Whether its derivative may be infinite at an operand that is made of what the condition tests."""
        at = _singular(equation, self)
        if at is None or not _is_float(equation.inputs[at]) or self.is_positive(equation.body, equation.inputs[at]):
            return False
        # What the condition doesn't test isn't kept away by it: then the branch is NaN by itself, not by the choice.
        return not self.inputs(equation.body, equation.inputs[at]).isdisjoint(tested)

    def tested(self, body: Body, atom: Any) -> set[tuple[int, Any]]:
        """The values that a condition compares, and those they are made of."""
        values: set[tuple[int, Any]] = set()
        waiting: list[Place] = [(body, atom)]
        for _ in range(_MOST):
            if not waiting:
                break
            maker = self.program.maker(*waiting.pop())
            if maker is None:
                continue
            if maker.op in _COMPARISONS or maker.op == "is_finite":
                for operand in maker.inputs:
                    values |= self.inputs(maker.body, operand)
            elif maker.op in _LOGIC:
                waiting += [(maker.body, operand) for operand in maker.inputs]
        return values

    def inputs(self, body: Body, atom: Any, depth: int = 0) -> set[tuple[int, Any]]:
        """A value and what it is made of element by element; what makes a value safe ends the way."""
        body, atom = self.program.origin(body, atom)
        if is_literal(atom) or not _is_float(atom):
            return set()
        values = {(id(body), atom)}
        maker = body.makers.get(atom)
        is_norm = maker is not None and maker.op == "reduce_sum" and depth > 0
        if maker is not None and depth < _DEEPEST and (maker.op in _ELEMENTWISE or is_norm):
            for operand in maker.inputs:
                values |= self.inputs(maker.body, operand, depth + 1)
        return values

    def constant(self, body: Body, atom: Any) -> float | None:
        for _ in range(_DEEPEST):
            body, atom = self.program.origin(body, atom)
            if is_literal(atom):
                return float(atom.val) if np.ndim(atom.val) == 0 and np.asarray(atom.val).dtype.kind in "iuf" else None
            maker = body.makers.get(atom)
            if maker is None or maker.op not in ("broadcast_in_dim", "convert_element_type", "reshape"):
                return None
            body, atom = maker.body, maker.inputs[0]
        return None

    def is_positive(self, body: Body, atom: Any, or_zero: bool = False, depth: int = 0) -> bool:
        """Whether a value can be shown to be above 0, whatever the arguments are."""
        body, atom = self.program.origin(body, atom)
        constant = self.constant(body, atom)
        if constant is not None:
            return constant > 0 or (or_zero and constant == 0)
        maker = None if is_literal(atom) else body.makers.get(atom)
        if maker is None or depth > _DEEPEST:
            return False
        op, operands = maker.op, maker.inputs

        def each(least: bool) -> Iterator[bool]:
            return (self.is_positive(maker.body, one, least, depth + 1) for one in operands)

        match op:
            case _ if op in _POSITIVE:
                return True
            case "abs" | "square":
                return or_zero or next(each(False))
            case "integer_pow" if maker.params["y"] % 2 == 0:
                return or_zero
            case "mul" if operands[0] is operands[1]:
                return or_zero
            case "max":
                return any(each(or_zero))
            case "add":
                return all(each(True)) and (or_zero or any(each(False)))
            case "mul" | "div" | "min":
                return all(each(or_zero))
            case "clamp":
                return self.is_positive(maker.body, operands[0], or_zero, depth + 1)
            case _ if op in _KEEP_SIGN:
                return all(each(or_zero))
            case _:
                return False


def _singular(equation: Equation, values: _Values) -> int | None:
    at = _SINGULAR.get(equation.op)
    if equation.op == "integer_pow" and equation.params["y"] >= 0:
        return None
    if equation.op == "pow":
        exponent = values.constant(equation.body, equation.inputs[1])
        if exponent is not None and (exponent >= 1 or exponent == 0):
            return None
    return at


def _is_float(atom: Any) -> bool:
    return getattr(getattr(atom.aval, "dtype", None), "kind", "") in ("f", "V", "c")  # V: bfloat16 and its like


def _choice_call(frame: Frame) -> ast.Call | None:
    way = syntax_at(frame.file, span_of(frame))
    match way[-1] if way else None:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) as call if name in ("where", "select"):
            return call
        case _:
            return None


def _fix(call: ast.Call) -> str:
    condition, *branches = call.args if len(call.args) == 3 else (ast.Constant(True),)
    names = set(_names(condition)) - {"jnp"}
    for i, branch in enumerate(branches):
        shared = [name for name in _names(branch) if name in names]
        if shared and not isinstance(branch, ast.Name):
            where, test, name = ast.unparse(call.func), ast.unparse(condition), shared[-1]
            chosen = list(map(ast.unparse, branches))
            chosen[i] = ast.unparse(_Renamed(name).visit(ast.parse(chosen[i], mode="eval")))
            safe = f"{name}, 1" if i == 0 else f"1, {name}"
            return f"safe = {where}({test}, {safe})\n{where}({test}, {', '.join(chosen)})"
    return (
        "choose twice: safe = jnp.where(condition, x, 1), then jnp.where(condition, f(safe), 0); any number will do "
        "instead of 1 that f and its derivative take"
    )


def _names(node: ast.AST) -> list[str]:
    return [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("safe", node.ctx) if node.id == self.name else node


def _short(call: ast.Call) -> str:
    text = " ".join(ast.unparse(call).split())
    return text if len(text) <= 60 else f"{text[:59]}…"


RULE = Rule(
    "nan-gradient",
    "EX017",
    "warning",
    "A choice between branches is differentiated through both, and 0 times an infinite derivative is NaN.",
    "https://docs.jax.dev/en/latest/faq.html#gradients-contain-nan-where-using-where",
    check,
    passive=True,
)
