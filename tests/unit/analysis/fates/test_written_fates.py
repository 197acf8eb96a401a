"""What became of some twenty small expressions, in one program: which pass ended each, and the formula that says it.

All are of `s`, a sine of its own. By XLA's algebra they are as simple as the formula's right-hand side.
"""

import re

import jax.numpy as jnp
import pytest
from jax import lax

import explorer as ex

X = jnp.ones((13, 17))
IMPORT, SIMPLIFIER = "import", "algsimp"

CASES = {
    # XLA's import of StableHLO takes away what changes nothing for a literal beside it …
    "times one": (lambda s: s * 1.0, [("mul", "eliminated", IMPORT, "s × 1.0 → s", "stablehlo.multiply", "sine")]),
    "one times": (lambda s: 1.0 * s, [("mul", "eliminated", IMPORT, "1.0 × s → s", "stablehlo.multiply", "sine")]),
    "plus zero": (lambda s: s + 0.0, [("add", "eliminated", IMPORT, "s + 0.0 → s", "stablehlo.add", "sine")]),
    "minus zero": (lambda s: s - 0.0, [("sub", "eliminated", IMPORT, "s − 0.0 → s", "stablehlo.subtract", "sine")]),
    # … and two that undo each other, if they only move values.
    "turned twice": (
        lambda s: s.T.T,
        [("transpose", "eliminated", IMPORT, "transpose(transpose(s)) → s", "stablehlo.transpose", "sine")] * 2,
    ),
    "reshaped twice": (
        lambda s: s.reshape(221).reshape(13, 17),
        [("reshape", "eliminated", IMPORT, "reshape(reshape(s)) → s", "stablehlo.reshape", "sine")] * 2,
    ),
    # The rest is the algebraic simplifier's.
    "by one": (lambda s: s / 1.0, [("div", "eliminated", SIMPLIFIER, "s ÷ 1 → s", "divide", "sine")]),
    "to the first": (
        lambda s: lax.pow(s, 1.0), [("pow", "eliminated", SIMPLIFIER, "s ^ 1 → s", "power", "sine")],
    ),
    "negated twice": (
        lambda s: lax.neg(lax.neg(s)), [("neg", "eliminated", SIMPLIFIER, "−(−s) → s", "negate", "sine")] * 2,
    ),
    "reversed twice": (
        lambda s: lax.rev(lax.rev(s, (0,)), (0,)),
        [("rev", "eliminated", SIMPLIFIER, "reverse(reverse(s)) → s", "reverse", "sine")] * 2,
    ),
    "reversed along two, in another order": (
        lambda s: lax.rev(lax.rev(s, (0, 1)), (1, 0)),
        [("rev", "eliminated", SIMPLIFIER, "reverse(reverse(s)) → s", "reverse", "sine")] * 2,
    ),
    "absolute twice": (
        lambda s: abs(abs(s)),
        [("abs", "fused", "", "", "", ""), ("abs", "eliminated", SIMPLIFIER, "abs(abs(s)) → abs(s)", "abs", "abs")],
    ),
    "larger of itself": (
        lambda s: lax.max(s, s), [("max", "eliminated", SIMPLIFIER, "maximum(s, s) → s", "maximum", "sine")],
    ),
    "one by its root": (
        lambda s: 1 / jnp.sqrt(s),
        [("sqrt", "rewritten", SIMPLIFIER, "sqrt(s) → rsqrt(s)", "sqrt", "rsqrt"),
         ("div", "rewritten", SIMPLIFIER, "1 ÷ sqrt(s) → rsqrt(s)", "divide", "rsqrt")],
    ),
    # Reversed along different dimensions, the second one does the work of both.
    "reversed along another": (
        lambda s: lax.rev(lax.rev(s, (0,)), (1,)),
        [("rev", "folded into", SIMPLIFIER, "NEXT does both: reverse(reverse(s)) → reverse(s)", "reverse", "reverse"),
         ("rev", "fused", "", "", "", "")],
    ),
    "of two": (
        lambda s: lax.max(s, lax.floor(s)), [("floor", "fused", "", "", "", ""), ("max", "fused", "", "", "", "")],
    ),
    "plus one": (lambda s: s + 1.0, [("add", "fused", "", "", "", "")]),
    "from zero": (lambda s: 0.0 - s, [("sub", "fused", "", "", "", "")]),
}  # fmt: skip


@pytest.fixture(scope="module")
def fates():
    """By case: of each of its equations its operation, its fate, and the operations of the lines before and after."""

    def program(x):
        return [
            jnp.exp(function(jnp.sin(lax.mul(x, number + 2.5)))) for number, (function, _) in enumerate(CASES.values())
        ]

    capture = ex.explore(program, X)
    assert len(capture.passes)
    rows, names = [], []
    for node in capture.jaxpr.graph.nodes:
        if node.op == "sin":
            rows.append([])
            names.append(node.name)
        elif rows and node.op != "exp" and not (node.op == "mul" and is_first(node)):
            fate = capture.fate(node)
            why = re.sub(rf"\bsin\.\d+\b|\b{names[-1]}\b", "s", fate.why)
            why = re.sub(r"^\w+ does both", "NEXT does both", why)
            rows[-1].append((node.op, fate.kind, fate.pass_name, why, op_of(fate.before), op_of(fate.after)))
    return dict(zip(CASES, rows, strict=True))


def is_first(node):
    """Whether it is what a sine is of."""
    return any(reader.op == "sin" for reader in node.users)


def op_of(line):
    """`sine` of `%sin.2 = f32[8]{0} sine(%x)`."""
    match = re.search(r"= (?:[a-z]\S*\[\S+ )?([\w.-]+)[ (]", line)
    return match[1] if match else ""


@pytest.mark.parametrize("name", CASES)
def test_how_it_ended(fates, name):
    assert fates[name] == CASES[name][1]
