"""JAX's own transforms and control flow, one within another."""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec


def remat_transformer():
    @partial(jax.checkpoint, policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)
    def block(params, x):
        scores = jax.nn.softmax((x @ params["q"]) @ (x @ params["k"]).T / 4.0)
        x = x + scores @ (x @ params["v"])
        return x + jax.nn.relu(x @ params["up"]) @ params["down"]

    def loss(layers, x):
        for params in layers:
            x = block(params, x)
        return jnp.mean(x**2)

    sizes = {"q": (8, 8), "k": (8, 8), "v": (8, 8), "up": (8, 12), "down": (12, 8)}
    one = {name: jnp.ones(size) for name, size in sizes.items()}
    return jax.value_and_grad(loss), [one, one, one], jnp.ones((6, 8))


def remat_scan():
    def loss(weights, x):
        @jax.checkpoint
        def step(x, w):
            return jnp.tanh(x @ w) + lax.cond(x.sum() > 0, jnp.sin, lambda x: x * 2.0, x), x.mean()

        x, means = lax.scan(step, x, weights)
        return jnp.sum(x) + jnp.sum(means)

    return jax.value_and_grad(loss), jnp.ones((3, 5, 5)), jnp.ones((4, 5))


def per_example_gradients():
    def loss(params, x, y):
        hidden = jnp.tanh(x @ params["in"])
        return optax.huber_loss(hidden @ params["out"], y).sum()

    def step(params, xs, ys):
        grads = jax.vmap(jax.grad(loss), (None, 0, 0))(params, xs, ys)
        norms = jax.vmap(optax.global_norm)(grads)
        clipped = jax.tree.map(lambda g: (g * jnp.minimum(1.0, 1.0 / norms).reshape(-1, 1, 1)).mean(0), grads)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, clipped)

    return step, {"in": jnp.ones((4, 6)), "out": jnp.ones((6, 2))}, jnp.ones((5, 4)), jnp.ones((5, 2))


def curvature():
    def f(x):
        return jnp.sum(jnp.sin(x) * jnp.roll(x, 1) ** 2) + jax.nn.logsumexp(x)

    def all_of_them(x, v):
        product = jax.jvp(jax.grad(f), (x,), (v,))[1]
        laplacian = jnp.trace(jax.hessian(f)(x))
        return product, laplacian, jax.vmap(lambda e: jax.jvp(f, (x,), (e,))[1])(jnp.eye(5))

    return all_of_them, jnp.ones(5), jnp.ones(5)


def loops():
    def f(x, n):
        def collatz(n):
            return lax.while_loop(
                lambda c: c[0] > 1, lambda c: (jnp.where(c[0] % 2 == 0, c[0] // 2, 3 * c[0] + 1), c[1] + 1), (n, 0)
            )[1]

        nested = lax.fori_loop(0, 3, lambda i, y: lax.fori_loop(0, i, lambda j, z: jnp.sin(z) * 1.5 + j, y), x)
        mapped = lax.map(lambda row: jnp.cumsum(row)[-1] * 0.5, nested)
        switched = lax.switch(n % 4, (jnp.sin, jnp.cos, lambda y: y * y, lambda y: -y), mapped)
        reverse = lax.scan(lambda c, r: (c * 0.9 + r, c.max()), jnp.zeros(4), x, reverse=True)
        return switched, reverse, jax.vmap(collatz)(jnp.arange(3) + n)

    return f, jnp.ones((5, 4)), 9


def custom_rules():
    @jax.custom_jvp
    def safe_log(x):
        return jnp.log(jnp.where(x > 0, x, 1.0))

    @safe_log.defjvp
    def _(primals, tangents):
        return safe_log(*primals), tangents[0] / jnp.maximum(primals[0], 1e-3)

    @jax.custom_vjp
    def clipped(x):
        return x * 1.0625

    clipped.defvjp(lambda x: (clipped(x), x.shape), lambda shape, ct: (jnp.clip(ct, -0.3, 0.3),))

    @jax.jit
    def helper(x, scale):
        return safe_log(clipped(x) * scale) + jax.nn.relu(x)

    def f(x):
        return jnp.sum(helper(x, 2.0) * helper(x + 1, 3.0)) + jnp.sum(jax.jit(helper)(x[:3], 5.0))

    return jax.value_and_grad(f), jnp.linspace(-1, 1, 6)


def called_twice():
    """A function compiled on its own and called twice, differentiated: only the call tells its instructions apart."""

    @jax.jit
    def layer(x, w):
        return jnp.tanh(x @ w) * jax.nn.sigmoid(x.sum(-1, keepdims=True))

    def f(ws, x):
        first = layer(x, ws[0])
        second = layer(first, ws[1])
        return jnp.sum(layer(second, ws[0]) ** 2) + jnp.sum(first)

    return jax.value_and_grad(f), jnp.ones((2, 6, 6)), jnp.ones((3, 6))


def microbatches():
    optimizer = optax.chain(optax.add_decayed_weights(1e-4), optax.sgd(0.1, momentum=0.9, nesterov=True))

    def loss(params, batch):
        return jnp.mean((jnp.tanh(batch["x"] @ params["w"] + params["b"]) - batch["y"]) ** 2)

    def step(params, state, batches):
        def accumulate(total, batch):
            value, grads = jax.value_and_grad(loss)(params, batch)
            return jax.tree.map(jnp.add, total, grads), value

        grads, values = lax.scan(accumulate, jax.tree.map(jnp.zeros_like, params), batches)
        updates, state = optimizer.update(jax.tree.map(lambda g: g / 4, grads), state, params)
        params = optax.apply_updates(params, updates)
        return params, state, optax.incremental_update(params, params, 0.01), values.mean()

    params = {"w": jnp.ones((3, 2)), "b": jnp.ones(2)}
    return step, params, optimizer.init(params), {"x": jnp.ones((4, 5, 3)), "y": jnp.ones((4, 5, 2))}


def _mesh():
    return Mesh(jax.devices()[:4], ("i",))


def sharded_sum():
    @partial(jax.shard_map, mesh=_mesh(), in_specs=(PartitionSpec("i"), PartitionSpec()), out_specs=PartitionSpec("i"))
    def f(x, w):
        y = jnp.tanh(x @ w)
        y = y / lax.psum(jnp.abs(y).sum(), "i")
        right = lax.ppermute(y, "i", [(n, (n + 1) % 4) for n in range(4)])
        return right + lax.all_gather(y, "i", tiled=True)[: len(y)] + lax.axis_index("i")

    return f, jnp.ones((8, 6)), jnp.ones((6, 6))


def sharded_step():
    mesh = _mesh()

    def loss(params, x):
        hidden = jax.nn.relu(x @ params["up"])
        hidden = lax.with_sharding_constraint(hidden, NamedSharding(mesh, PartitionSpec(None, "i")))
        return jnp.mean((hidden @ params["down"]) ** 2)

    params = {
        "up": jax.device_put(jnp.ones((6, 8)), NamedSharding(mesh, PartitionSpec(None, "i"))),
        "down": jax.device_put(jnp.ones((8, 6)), NamedSharding(mesh, PartitionSpec("i", None))),
    }
    return jax.value_and_grad(loss), params, jax.device_put(jnp.ones((4, 6)), NamedSharding(mesh, PartitionSpec()))


def sharded_gradient():
    def loss(w, x):
        @partial(jax.shard_map, mesh=_mesh(), in_specs=(PartitionSpec(), PartitionSpec("i")), out_specs=PartitionSpec())
        def mean(w, x):
            return lax.pmean(jnp.sin(x @ w).mean(), "i")

        return mean(w, x) + 0.5 * jnp.sum(w * w)

    return jax.value_and_grad(loss), jnp.ones((6, 2)), jnp.ones((8, 6))
