"""The programs behind the saved captures, and how those were made:

    python programs.py FOLDER

from a folder whose name may be in a file: a capture keeps the path of its source.
"""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import explorer as ex


def layer(x, weights):
    with jax.named_scope("layer"):
        return jax.nn.gelu(x @ weights["inner"]) @ weights["outer"] + x


def train_step(weights, moment, x, y):
    def loss(weights):
        hidden = x
        for one in weights:
            hidden = layer(hidden, one)
        return jnp.mean((hidden - y) ** 2)

    value, grads = jax.value_and_grad(loss)(weights)
    moment = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moment, grads)
    return jax.tree.map(lambda w, m: w - 0.01 * m, weights, moment), moment, value


def attention(x, table, key):
    q, k, v = (x @ table[i] for i in range(3))
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -1e9), axis=-1)
    kept = jax.random.bernoulli(key, 0.9, weights.shape)
    out = jnp.einsum("bqk,bkd->bqd", jnp.where(kept, weights / 0.9, 0), v.astype(jnp.bfloat16).astype(jnp.float32))
    return out * 1.0 + (x + 2 - 2)


def scanned(cells, x):
    def body(carry, cell):
        carry = jnp.tanh(carry @ cell)
        return carry, carry.sum()

    last, sums = jax.lax.scan(body, x, cells)
    return jnp.sum(last**2) + jnp.sort(sums)[0]


def solve(matrix, right):
    def is_far(state):
        at, step = state
        return jnp.logical_and(step < 20, jnp.linalg.norm(matrix @ at - right) > 1e-3)

    def improve(state):
        at, step = state
        away = jax.lax.cond(step % 2 == 0, lambda r: r, lambda r: 0.5 * r, matrix @ at - right)
        return at - 0.1 * away, step + 1

    at, steps = jax.lax.while_loop(is_far, improve, (jnp.zeros_like(right), 0))
    order = jnp.argsort(at)
    return at[order], steps, jnp.cumsum(at), at.at[order[:2]].set(0.0)


def convolved(image, kernel, scale):
    mixed = jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    normal = (mixed - mixed.mean((0, 1, 2))) * jax.lax.rsqrt(mixed.var((0, 1, 2)) + 1e-5) * scale
    pooled = jax.lax.reduce_window(jax.nn.relu(normal), -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return jnp.fft.rfft(pooled.mean((1, 2)), axis=-1).real.sum()


def attention_with_norm(x, table, key):
    """The program `attention` after somebody worked on it: one operation came, one went, one is another."""
    x = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)
    q, k, v = (x @ table[i] for i in range(3))
    scores = jnp.einsum("bqd,bkd->bqk", q, k) / jnp.sqrt(q.shape[-1])
    mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(mask, scores, -jnp.inf), axis=-1)
    return jnp.einsum("bqk,bkd->bqd", weights, v) + x


def mixed(table, ids, image):
    """Integers, gathers and scatters, recomputation, a library's kernel, a switch in a loop of known length."""

    @jax.checkpoint
    def block(rows):
        with jax.named_scope("block"):
            return jnp.sin(rows @ table.T) @ table

    def turn(step, state):
        return jax.lax.switch(step % 3, [jnp.sin, lambda a: a * 2, lambda a: a.at[0].set(1.0)], state)

    def loss(table):
        return jnp.sum(block(table[ids]) ** 2)

    grad = jax.grad(loss)(table)
    top, where = jax.lax.top_k(grad.ravel(), 4)
    bits = jnp.bitwise_xor(image.astype(jnp.int32) << 2, image.astype(jnp.int32) >> 1)
    counts = jnp.zeros(16, jnp.int32).at[bits.ravel() % 16].add(1)
    factor = jnp.linalg.cholesky(grad @ grad.T + jnp.eye(len(grad)))
    state = jax.lax.fori_loop(0, 6, turn, jax.lax.dynamic_slice(grad, (ids[0], 0), (4, 8)))
    order = jax.lax.sort((top, where), num_keys=1)
    half = jnp.pad(image, ((1, 1), (0, 2))).astype(jnp.float16)[::2, ::-1]
    return factor, counts, state, order, jnp.concatenate([half, half], 1), jnp.clip(top, 0, 1).astype(jnp.bfloat16)


def sharded(weights, x):
    """A layer whose rows and columns lie on a mesh of 4 × 2: sums over one axis, gathers over the other."""
    hidden = jax.nn.relu(x @ weights["inner"])
    hidden = jax.lax.with_sharding_constraint(hidden, P("rows", None))
    return jnp.mean((hidden @ weights["outer"]) ** 2)


def on_mesh():
    """`sharded` with its arguments laid out; needs XLA_FLAGS=--xla_force_host_platform_device_count=8."""
    mesh = jax.make_mesh((4, 2), ("rows", "columns"), axis_types=(AxisType.Auto,) * 2)
    jax.set_mesh(mesh)

    def laid_out(array, *axes):
        return jax.device_put(array, NamedSharding(mesh, P(*axes)))

    weights = {
        "inner": laid_out(jnp.ones((16, 32)), None, "columns"),
        "outer": laid_out(jnp.ones((32, 16)), "columns", None),
    }
    return jax.jit(jax.value_and_grad(sharded)), weights, laid_out(jnp.ones((8, 16)), "rows", None)


def programs():
    def ones(*shape):
        return jnp.ones(shape, jnp.float32)

    weights = [{"inner": ones(16, 32), "outer": ones(32, 16)} for _ in range(3)]
    return {
        "train_step": (train_step, weights, weights, ones(8, 16), ones(8, 16)),
        "attention": (attention, ones(2, 8, 16), ones(3, 16, 16), jax.random.key(0)),
        "scanned": (jax.grad(scanned), ones(5, 12, 12), ones(8, 12)),
        "solve": (solve, jnp.eye(6) * 2, jnp.arange(6.0)),
        "convolved": (jax.grad(convolved, argnums=(1, 2)), ones(2, 8, 8, 3), ones(3, 3, 3, 4), ones(4)),
        "attention_with_norm": (attention_with_norm, ones(2, 8, 16), ones(3, 16, 16), jax.random.key(0)),
        "mixed": (mixed, ones(6, 8), jnp.arange(3), jnp.ones((5, 6), jnp.uint8)),
        **({"sharded": on_mesh()} if jax.device_count() == 8 else {}),
    }


if __name__ == "__main__":
    for name, (function, *arguments) in programs().items():
        capture = ex.explore(function, *arguments)
        capture.save(Path(sys.argv[1]) / f"{name}_unrecorded.capture")  # its links and fates are inferred
        print(name, len(capture.passes), "passes;", capture)
        capture.save(Path(sys.argv[1]) / f"{name}.capture")
