"""Instructions that do the work of an equation under another's name."""

import jax
import jax.numpy as jnp
import pytest

import explorer as ex

X = jnp.arange(12.0).reshape(3, 4)
Y = jnp.ones((4, 5))


def of_the_products(function, *args):
    """For each product of the optimised program, the primitives of the equations that it is linked to exactly."""
    capture = ex.explore(function, *args)
    _ = capture.passes
    products = [node for node in capture.hlo.graph.nodes if node.op == "dot"]
    assert products
    assert all(capture.links.grade(node, "jaxpr") == "exact" for node in products)
    return [sorted(equation.op for equation in capture.links.linked(node, "jaxpr")) for node in products]


def test_a_product_that_took_in_a_transpose_is_of_both():
    assert of_the_products(lambda x, y: (x @ y).T, X, Y) == [["dot_general", "transpose"]]


def test_a_product_that_took_in_nothing_is_of_itself():
    assert of_the_products(lambda x, y: jnp.tanh(x @ y), X, Y) == [["dot_general"]]


def test_each_of_two_products_took_in_its_own_transpose():
    def f(x, y):
        return (x @ y).T, (jnp.sin(x) @ y).T

    capture = ex.explore(f, X, Y)
    _ = capture.passes
    first, second = (node for node in capture.jaxpr.graph.nodes if node.op == "dot_general")
    for node in capture.hlo.graph.nodes:
        if node.op == "dot":
            reads_sine = any(operand.op != "parameter" for operand in node.operands)
            assert (second if reads_sine else first) in capture.links.linked(node, "jaxpr")
            assert (first if reads_sine else second) not in capture.links.linked(node, "jaxpr")


def test_what_is_taken_away_is_not_of_what_stays():
    capture = ex.explore(lambda x: jnp.sin(x * 1.0 + 0.5) - 0.0, jnp.arange(8, dtype=jnp.float32))
    _ = capture.passes
    removed = {node for node in capture.jaxpr.graph.nodes if node.op in ("mul", "sub")}
    for node in capture.hlo.graph.nodes:
        if node.op in ("sine", "add"):
            assert not removed & set(capture.links.linked(node, "jaxpr"))


@pytest.mark.slow
def test_what_one_instruction_took_in_says_nothing_of_the_others_of_its_equation():
    capture = ex.explore(lambda key, x: jax.random.beta(key, x, x), jax.random.key(0), jnp.linspace(0.1, 1, 8))
    _ = capture.passes
    for node in capture.hlo.graph.nodes:
        if capture.links.grade(node, "jaxpr") == "exact":
            assert sum(equation.op == "random_gamma" for equation in capture.links.linked(node, "jaxpr")) <= 1
