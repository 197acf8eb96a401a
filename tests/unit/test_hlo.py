"""The HLO reader, held against XLA's own parser."""

import jax
import jax.numpy as jnp
import pytest
from jaxlib import _hlo

from explorer import UnreadableTextError
from explorer.capture.hlo import read_hlo


def norm(x):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)


def loss(weights, x):
    def body(carry, w):
        return jnp.tanh(norm(carry) @ w), carry.sum()

    y, sums = jax.lax.scan(body, x, weights)
    return jax.lax.cond(sums[0] > 0, lambda: y.sum(), lambda: (y * y).sum())


def countdown(x):
    return jax.lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 1, c[1] * 2), (jnp.int32(3), x))


@jax.custom_jvp
def clipped(x):
    return jnp.clip(x, -1, 1)


@clipped.defjvp
def clipped_jvp(primals, tangents):
    return clipped(*primals), tangents[0]


@jax.custom_vjp
def scaled(x):
    return x * 2


scaled.defvjp(lambda x: (x * 2, None), lambda _, g: (g * 3,))

MESH = jax.sharding.Mesh(jax.devices()[:1], "i")
PART = jax.sharding.PartitionSpec("i")


def sharded(x):
    return jax.shard_map(lambda x: jax.lax.psum(jnp.sin(x), "i"), mesh=MESH, in_specs=PART, out_specs=PART)(x)


FUNCTIONS = {
    "chain": (lambda x: jnp.tanh(x) * 2 + 1, jnp.ones(8)),
    "gradient": (jax.value_and_grad(loss), jnp.ones((3, 16, 16)), jnp.ones((4, 16))),
    "while": (countdown, jnp.ones((4, 4))),
    "sort": (lambda x: jnp.sort(x), jnp.arange(9.0)),
    "solve": (lambda a, b: jnp.linalg.solve(a, b), jnp.eye(4), jnp.ones(4)),
    "constant": (lambda x: x + jnp.arange(5.0), jnp.ones(5)),
    "random": (lambda key: jax.random.normal(key, (8,)), jax.random.key(0)),
    "custom rules": (lambda x: clipped(scaled(x)).sum(), jnp.ones(4)),
    "custom rules, differentiated": (jax.grad(lambda x: clipped(scaled(x)).sum()), jnp.ones(4)),
    "shard_map": (sharded, jnp.ones(4)),
    "many outputs": (lambda x: tuple(x * i for i in range(9)), jnp.ones(3)),
}


def compiled_text(function, *args):
    return jax.jit(function).lower(*args).compile().as_text()


@pytest.mark.parametrize("case", FUNCTIONS)
def test_reads_the_same_instructions_opcodes_operands_and_users_as_xla(case):
    text = compiled_text(*FUNCTIONS[case])
    graph = read_hlo(text)
    expected = {
        (computation.name, instruction.name): instruction
        for computation in _hlo.hlo_module_from_text(text).computations()
        for instruction in computation.instructions()
    }
    assert {(node.group.name, node.name) for node in graph.nodes} == set(expected)
    for node in graph.nodes:
        instruction = expected[node.group.name, node.name]
        # XLA's enum calls log-plus-one kLog1p, so its own printing of the one instruction is the oracle.
        assert f" {node.op}(" in instruction.to_string()
        assert [o.name for o in node.operands] == [o.name for o in instruction.operands()]
        assert {u.name for u in node.users} == {u.name for u in instruction.users()}


def test_every_called_computation_knows_its_caller():
    graph = read_hlo(compiled_text(*FUNCTIONS["gradient"]))
    kinds = {group.kind for group in graph.groups}
    assert {"entry", "fusion", "body", "condition", "branch"} <= kinds
    assert sum(group.caller < 0 for group in graph.groups) == 1


def test_frames_lead_from_the_instruction_to_the_users_line():
    graph = read_hlo(compiled_text(*FUNCTIONS["gradient"]))
    functions = {tuple(frame.function for frame in node.source)[:3] for node in graph.nodes if node.source}
    assert ("norm", "loss.<locals>.body", "loss") in functions


def test_text_that_is_no_hlo_is_refused_with_what_came():
    with pytest.raises(UnreadableTextError, match="starts with 'hello'"):
        read_hlo("hello\nworld")
    with pytest.raises(UnreadableTextError, match="empty"):
        read_hlo("")
