"""Functions of many kinds that tests of the readers compile."""

import jax
import jax.numpy as jnp


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
