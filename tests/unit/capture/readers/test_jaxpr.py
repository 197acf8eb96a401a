"""The jaxpr reader: every equation of every inner jaxpr, once, at its line."""

import jax
import jax.numpy as jnp
import pytest

from explorer._jax import inner_jaxprs
from explorer.capture.readers.jaxpr import read_jaxpr
from tests.support.functions import FUNCTIONS, loss


def count_equations(jaxpr):
    return sum(1 + sum(count_equations(j) for _, j in inner_jaxprs(e.params)) for e in jaxpr.eqns)


@pytest.mark.parametrize("case", FUNCTIONS)
def test_holds_every_equation_and_writes_it_at_its_line(case):
    function, *args = FUNCTIONS[case]
    jaxpr = jax.jit(function).trace(*args).jaxpr
    text, graph = read_jaxpr(jaxpr)
    lines = text.splitlines()
    equations = [node for node in graph.nodes if node.op not in ("parameter", "constant")]
    assert len(equations) == count_equations(getattr(jaxpr, "jaxpr", jaxpr))
    for node in equations:
        assert f"= {node.op}" in lines[node.line]
    assert len(set(graph.names)) == len(graph)


def test_operands_and_users_follow_the_data():
    _, graph = read_jaxpr(jax.jit(lambda x: jnp.tanh(x) * x).trace(jnp.ones(3)).jaxpr)
    tanh, mul = (next(n for n in graph.nodes if n.op == op) for op in ("tanh", "mul"))
    assert [o.op for o in mul.operands] == ["tanh", "parameter"]
    assert tanh.users == (mul,)


def test_inner_jaxprs_are_groups_under_the_equation_that_calls_them():
    _, graph = read_jaxpr(jax.jit(loss).trace(jnp.ones((3, 16, 16)), jnp.ones((4, 16))).jaxpr)
    callers = {list(graph.nodes)[g.caller].op for g in graph.groups if g.caller >= 0}
    assert {"scan", "cond", "jit"} <= callers


@pytest.mark.parametrize(
    ("case", "callers"), [("custom rules", {"custom_jvp_call", "custom_vjp_call"}), ("shard_map", {"shard_map"})]
)
def test_custom_rules_and_shard_map_are_groups_too(case, callers):
    function, *args = FUNCTIONS[case]
    _, graph = read_jaxpr(jax.jit(function).trace(*args).jaxpr)
    nodes = list(graph.nodes)
    assert callers <= {nodes[group.caller].op for group in graph.groups if group.caller >= 0}


def test_an_equation_knows_the_users_line_and_stack():
    _, graph = read_jaxpr(jax.jit(loss).trace(jnp.ones((3, 16, 16)), jnp.ones((4, 16))).jaxpr)
    tanh = next(n for n in graph.nodes if n.op == "tanh")
    assert [f.function for f in tanh.source][:2] == ["loss.<locals>.body", "loss"]
    assert tanh.source[0].line == loss.__code__.co_firstlineno + 2


def test_the_text_reads_as_jax_writes_it():
    text, _ = read_jaxpr(jax.jit(lambda x: jnp.tanh(x) * 2.0).trace(jnp.ones((3, 4))).jaxpr)
    assert text.splitlines() == [
        "main { lambda a:f32[3,4] (x) . let",
        "  b:f32[3,4] = tanh a",
        "  c:f32[3,4] = mul b 2.0:f32[]",
        "in (c) }",
    ]
