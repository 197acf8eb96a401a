"""The jaxpr reader: every equation of every inner jaxpr, once, at its line."""

import re

import jax
import jax.numpy as jnp
import pytest

from explorer._jax.traces import inner_jaxprs
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


@jax.jit
def scaled(x):
    return x * 2.0, x - 1.0


def written(x, n):
    a, b = scaled(x)
    with jax.named_scope("layer"):
        c = jax.lax.cond(n > 0, lambda y: y + b, lambda y: y, a)
    return jax.lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2.0), (0, c))[1], x


# JAX's own words (`print(jax.make_jaxpr(…))`), but with an inner jaxpr below its equation and a name for each variable.
TEXT = """\
main { lambda a:f32[2] (x) b:i32[] (n) . let
  c:f32[2] d:f32[2] = jit[…] a
    jaxpr=scaled { lambda e:f32[2] . let
      f:f32[2] = mul e 2.0:f32[]
      g:f32[2] = sub e 1.0:f32[]
    in (f, g) }
  h:bool[] = gt b 0:i32[]
  i:i32[] = convert_element_type[new_dtype=int32 weak_type=False] h
  j:f32[2] = cond i d c
    branches[0] { lambda k:f32[2] l:f32[2] . let
    in (l) }
    branches[1] { lambda m:f32[2] n:f32[2] . let
      o:f32[2] = add n m
    in (o) }
  p:i32[] q:f32[2] = while[cond_nconsts=0 body_nconsts=0] 0:i32[] j
    cond_jaxpr { lambda r:i32[] s:f32[2] . let
      t:bool[] = lt r 3:i32[]
    in (t) }
    body_jaxpr { lambda u:i32[] v:f32[2] . let
      w:i32[] = add u 1:i32[]
      x:f32[2] = mul v 2.0:f32[]
    in (w, x) }
in (q, a) }
"""


def test_a_program_of_all_kinds_is_written_to_the_letter():
    text, graph = read_jaxpr(jax.make_jaxpr(written)(jnp.ones(2), 1))
    # What `jit` was told differs from one JAX to another.
    assert re.sub(r"jit\[.*\]", "jit[…]", text) == TEXT
    own = ("literals", "operand_results", "returned")
    attributes = {n.name: {key: n.attributes[key] for key in own if key in n.attributes} for n in graph.nodes}
    assert {name: said for name, said in attributes.items() if said} == {
        "a": {"returned": "1"},
        "f": {"literals": "1=2.0:f32[]", "returned": "0"},
        "g": {"literals": "1=1.0:f32[]", "returned": "1"},
        "h": {"literals": "1=0:i32[]"},
        "j": {"operand_results": "0,1,0"},
        "l": {"returned": "0"},
        "o": {"returned": "0"},
        "p": {"literals": "0=0:i32[]", "returned": "0=1"},
        "t": {"literals": "1=3:i32[]", "returned": "0"},
        "w": {"literals": "1=1:i32[]", "returned": "0"},
        "x": {"literals": "1=2.0:f32[]", "returned": "1"},
    }
    assert {n.name: n.scope for n in graph.nodes if n.scope} == {
        "a": "x", "b": "n", "c": "jit", "f": "mul", "g": "sub", "h": "layer/gt", "i": "layer/convert_element_type",
        "j": "layer/cond", "o": "layer/add", "p": "while", "t": "lt", "w": "add", "x": "mul",
    }  # fmt: skip
    assert [(group.name, group.kind, group.parent, group.caller) for group in graph.groups] == [
        ("main", "entry", -1, -1),
        ("jaxpr=scaled", "call", 0, 2),
        ("branches[0]", "branch", 0, 8),
        ("branches[1]", "branch", 0, 8),
        ("cond_jaxpr", "condition", 0, 14),
        ("body_jaxpr", "body", 0, 14),
    ]


def test_what_is_noted_of_a_second_result_has_its_number():
    jaxpr = jax.make_jaxpr(scaled)(jnp.ones(2)).jaxpr
    first, second = jaxpr.eqns[0].outvars
    _, graph = read_jaxpr(jaxpr, {jaxpr.invars[0]: {"size": "n"}, first: {"size": "a"}, second: {"size": "b"}})
    assert graph["a"].attributes["size"] == "n"
    assert (graph["b"].attributes["size"], graph["b"].attributes["size_1"]) == ("a", "b")


@pytest.mark.parametrize(("length", "shown"), [(60, "x" * 60), (61, "x" * 59 + "…"), (90, "x" * 59 + "…")])
def test_a_long_parameter_is_cut_in_the_text_and_whole_as_an_attribute(length, shown):
    jaxpr = jax.make_jaxpr(jnp.sin)(1.0).jaxpr
    (sin,) = jaxpr.eqns
    text, graph = read_jaxpr(jaxpr.replace(eqns=[sin.replace(params={"note": "x" * length, "none": None})]))
    assert text.splitlines()[1] == f"  b:f32[] = sin[note={shown}] a"
    assert graph["b"].attributes == {"note": "x" * length, "returned": "0"}


def test_variables_are_counted_as_jax_does():
    def f(x):
        for _ in range(30):
            x = x + x
        return x

    _, graph = read_jaxpr(jax.make_jaxpr(f)(1.0))
    assert graph.names[:3] == ["a", "b", "c"]
    assert graph.names[24:29] == ["y", "z", "aa", "ab", "ac"]
