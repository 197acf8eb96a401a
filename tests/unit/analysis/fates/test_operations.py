"""How operations are called and written."""

import pytest

from explorer.analysis.hlo_operations import hlo_name, infix


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("sin", "sin"), ("add_any", "add"), ("mul", "multiply"), ("sub", "subtract"), ("div", "divide"),
        ("pow", "power"), ("neg", "negate"), ("rev", "reverse"), ("max", "maximum"), ("min", "minimum"),
        ("select_n", "select"), ("dot_general", "dot"), ("broadcast_in_dim", "broadcast"),
        ("stablehlo.dot_general", "dot"), ("stablehlo.broadcast_in_dim", "broadcast"),
        ("stablehlo.case", "conditional"),
        ("stablehlo.if", "conditional"), ("stablehlo.optimization_barrier", "opt-barrier"),
        ("stablehlo.reduce_window", "reduce-window"), ("get-tuple-element", "get-tuple-element"),
    ],
)  # fmt: skip
def test_what_hlo_calls_an_operation(name, expected):
    assert hlo_name(name) == expected


@pytest.mark.parametrize(
    ("op", "operands", "text"),
    [
        ("add", ["x", "y"], "x + y"), ("sub", ["x", "y"], "x − y"), ("multiply", ["x", "y"], "x × y"),
        ("div", ["x", "1"], "x ÷ 1"), ("power", ["x", "2"], "x ^ 2"), ("and", ["x", "y"], "x & y"),
        ("or", ["x", "y"], "x | y"), ("negate", ["x"], "−x"), ("not", ["x"], "¬x"), ("tanh", ["x"], "tanh(x)"),
        ("select", ["p", "x", "y"], "select(p, x, y)"), ("iota", [], "iota()"),
        # What is between two is set in brackets inside of another; a call isn't.
        ("mul", ["x + 1", "y"], "(x + 1) × y"), ("add", ["x", "y × 2"], "x + (y × 2)"),
        ("add", ["f(x, y)", "g(x + 1)"], "f(x, y) + g(x + 1)"), ("neg", ["x + 1"], "−(x + 1)"),
        ("neg", ["−x"], "−(−x)"), ("not", ["¬x"], "¬(¬x)"), ("add", ["−x", "y"], "(−x) + y"),
        ("add", ["(x + 1) × y", "1"], "((x + 1) × y) + 1"), ("tanh", ["x + 1"], "tanh(x + 1)"),
        # Another number of operands is no infix.
        ("add", ["x"], "add(x)"), ("and", ["x", "y", "z"], "and(x, y, z)"), ("neg", ["x", "y"], "neg(x, y)"),
    ],
)  # fmt: skip
def test_how_a_person_writes_it(op, operands, text):
    assert infix(op, operands) == text
