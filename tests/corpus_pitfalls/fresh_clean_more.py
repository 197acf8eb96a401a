"""More fresh clean programs: libraries, loops, drivers. Written before lint saw them."""

import queue
import time
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx

X = jnp.arange(1.0, 5.0)
BATCHES = [X, X * 2, X * 3]
IMAGES = jax.random.normal(jax.random.key(1), (2, 8, 8, 3))


@jax.jit
def sgd_step(w, x):
    loss, grad = jax.value_and_grad(lambda w: jnp.mean((w - x) ** 2))(w)
    return w - 0.1 * grad, loss


@partial(jax.jit, donate_argnums=0)
def donating_step(w, x):
    return w - 0.1 * x


def loss_read_after_the_loop():
    def train(w, batches):
        for x in batches:
            w, loss = sgd_step(w, x)
        return w, float(loss)

    return train, (X, BATCHES)


def losses_collected():
    def train(w, batches):
        losses = []
        for x in batches:
            w, loss = sgd_step(w, x)
            losses.append(loss)
        return w, np.asarray(jnp.stack(losses))

    return train, (X, BATCHES)


def waits_at_the_end():
    def bench(w, x):
        start = time.perf_counter()
        for _ in range(5):
            w, _loss = sgd_step(w, x)
        w.block_until_ready()
        print("seconds", time.perf_counter() - start)
        return w

    return bench, (X, X)


def logs_now_and_then():
    def train(w, batches):
        for i, x in enumerate(batches):
            w, loss = sgd_step(w, x)
            if i % 100 == 0:
                print(i, float(loss))
        return w

    return train, (X, BATCHES)


def prints_the_epoch():
    def train(w, batches):
        for epoch in range(3):
            print("epoch", epoch)
            for x in batches:
                w, _ = sgd_step(w, x)
        return np.asarray(w)

    return train, (X, BATCHES)


def donates_and_rebinds():
    def train(w, batches):
        for x in batches:
            w = donating_step(w, x)
        return w.sum().item()

    return train, (jnp.zeros(4), BATCHES)


def driver_with_a_key_per_step():
    sample = jax.jit(lambda key: jax.random.normal(key, (3,)))

    def draw(key):
        total = 0.0
        for i in range(3):
            total = total + sample(jax.random.fold_in(key, i)).sum()
        return float(total)

    return draw, (jax.random.key(0),)


def driver_with_an_optimizer():
    tx = optax.adam(1e-2)

    @jax.jit
    def step(w, state, x):
        loss, grads = jax.value_and_grad(lambda w: jnp.mean((w - x) ** 2))(w)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(w, updates), state, loss

    def fit(w, x):
        state = tx.init(w)
        for _ in range(20):
            w, state, loss = step(w, state, x)
        print("final loss", loss)
        return w

    return fit, (X, X)


def nnx_driver():
    model = nnx.Linear(4, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean(m(x) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    def fit(batches):
        for x in batches:
            loss = step(model, optimizer, x)
        return float(loss)

    return fit, (BATCHES,)


def flax_network():
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.relu(linen.Conv(4, (3, 3))(x))
            x = linen.avg_pool(x, (2, 2), (2, 2)).reshape(x.shape[0], -1)
            return linen.Dense(3)(x)

    net = Net()
    params = net.init(jax.random.key(0), IMAGES)

    def loss(params, images, labels):
        logits = net.apply(params, images)
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    return jax.value_and_grad(loss), (params, IMAGES, jnp.array([0, 2]))


def flax_batch_norm():
    net = linen.BatchNorm(use_running_average=False)
    x = jax.random.normal(jax.random.key(2), (4, 3))
    variables = net.init(jax.random.key(0), x)

    def forward(variables, x):
        out, mutated = net.apply(variables, x, mutable=["batch_stats"])
        return out, {**variables, **mutated}

    return forward, (variables, x)


def equinox_step():
    model = eqx.nn.MLP(4, 1, 8, 1, key=jax.random.key(0))
    tx = optax.adam(1e-3)

    def step(model, state, x, y):
        loss, grads = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x)[:, 0] - y) ** 2))(model)
        updates, state = tx.update(grads, state, model)
        return eqx.apply_updates(model, updates), state, loss

    return eqx.filter_jit(step), (model, tx.init(eqx.filter(model, eqx.is_array)), jnp.ones((4, 4)), X)


def nnx_step():
    model = nnx.Linear(4, 1, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x, y):
        loss, grads = nnx.value_and_grad(lambda m: jnp.mean((m(x)[:, 0] - y) ** 2))(model)
        optimizer.update(model, grads)
        return loss

    return step, (model, optimizer, jnp.ones((4, 4)), X)


def optax_chain():
    tx = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-3, 100)))
    params = {"w": jnp.ones((4, 2)), "b": jnp.zeros(2)}

    def step(params, state, x):
        grads = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
        updates, state = tx.update(grads, state, params)
        return optax.apply_updates(params, updates), state

    return step, (params, tx.init(params), jnp.ones((3, 4)))


def per_example_gradients():
    def gradients(w, x, y):
        one = lambda w, x, y: (x @ w - y) ** 2  # noqa: E731
        return jax.vmap(jax.grad(one), in_axes=(None, 0, 0))(w, x, y)

    return gradients, (jnp.ones(3), jnp.ones((4, 3)), X)


def hessian_vector_product():
    def hvp(w, v):
        f = lambda w: jnp.sum(jnp.sin(w) ** 2)  # noqa: E731
        return jax.jvp(jax.grad(f), (w,), (v,))[1]

    return hvp, (X, X)


def implicit_differentiation():
    @jax.custom_vjp
    def root(a):
        return jax.lax.while_loop(lambda x: jnp.abs(x * x - a) > 1e-4, lambda x: 0.5 * (x + a / x), jnp.ones_like(a))

    root.defvjp(lambda a: (root(a), root(a)), lambda r, g: (g / (2 * r),))
    return (lambda a: root(a) * 2), (jnp.array(2.0),)


def rematerialized_blocks():
    def loss(w, x):
        block = jax.checkpoint(lambda x: jnp.tanh(x @ w))
        return jnp.mean(block(block(x)) ** 2)

    return jax.grad(loss), (jnp.ones((3, 3)) * 0.1, jnp.ones((2, 3)))


def associative_prefix():
    def prefix(a, b):
        return jax.lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (a, b))[1]

    return prefix, (X * 0.1, X)


def chosen_branch():
    def act(i, x):
        return jax.lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x)

    return act, (1, X)


def converging_loop():
    def solve(x):
        return jax.lax.while_loop(lambda x: jnp.abs(x * x - 2) > 1e-4, lambda x: 0.5 * (x + 2 / x), x)

    return solve, (jnp.array(1.0),)


def k_means():
    def step(centers, points):
        d2 = jnp.sum((points[:, None] - centers[None]) ** 2, -1)
        nearest = jnp.argmin(d2, -1)
        chosen = jax.nn.one_hot(nearest, centers.shape[0])
        return (chosen.T @ points) / jnp.maximum(chosen.sum(0), 1)[:, None]

    return step, (jnp.array([[0.0, 0.0], [1.0, 1.0]]), jnp.ones((5, 2)))


def game_of_life():
    def turn(grid):
        around = sum(jnp.roll(grid, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)
        return ((around == 3) | ((grid == 1) & (around == 2))).astype(grid.dtype)

    return turn, (jnp.eye(5, dtype=jnp.int32),)


def mandelbrot():
    def escape(c):
        def body(_, state):
            z, n = state
            z = jnp.where(jnp.abs(z) < 2, z * z + c, z)
            return z, n + (jnp.abs(z) < 2)

        return jax.lax.fori_loop(0, 10, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]

    return escape, (jnp.array([0.1 + 0.2j, 2.0 + 1j]),)


def convolution_by_fourier():
    def convolve(x, k):
        n = x.shape[0] + k.shape[0] - 1
        return jnp.fft.irfft(jnp.fft.rfft(x, n) * jnp.fft.rfft(k, n), n)

    return convolve, (X, jnp.ones(2))


def histogram_of_bytes():
    def histogram(image):
        return jnp.zeros(256, jnp.int32).at[image.ravel()].add(1)

    return histogram, (jnp.array([[1, 2], [255, 0]], jnp.uint8),)


def sliding_windows():
    def windows(x):
        starts = jnp.arange(x.shape[0] - 1)
        return jax.vmap(lambda i: jax.lax.dynamic_slice(x, (i,), (2,)).mean())(starts)

    return windows, (X,)


def evaluation_step():
    @jax.jit
    def evaluate(params, x):
        return jnp.mean((x @ params["w"]) ** 2)

    return evaluate, ({"w": jnp.ones((512, 1024))}, jnp.ones((2, 512)))


def donated_step():
    tx = optax.adam(1e-3)
    params = {"w": jnp.ones((512, 1024))}

    @partial(jax.jit, donate_argnums=(0, 1))
    def step(params, state, x):
        grads = jax.grad(lambda p: jnp.mean((x @ p["w"]) ** 2))(params)
        updates, state = tx.update(grads, state)
        return optax.apply_updates(params, updates), state

    return step, (params, tx.init(params), jnp.ones((2, 512)))


def frozen_backbone():
    def loss(head, backbone, x):
        features = jax.lax.stop_gradient(jnp.tanh(x @ backbone))
        return jnp.mean((features @ head) ** 2)

    return jax.grad(loss), (jnp.ones((4, 1)), jnp.ones((3, 4)), jnp.ones((2, 3)))


def contrastive_loss():
    def loss(a, b):
        a = a / jnp.linalg.norm(a, axis=-1, keepdims=True)
        b = b / jnp.linalg.norm(b, axis=-1, keepdims=True)
        logits = a @ b.T / 0.1
        return optax.softmax_cross_entropy_with_integer_labels(logits, jnp.arange(len(a))).mean()

    a = jax.random.normal(jax.random.key(0), (4, 8))
    return jax.grad(loss), (a, a + 0.5)


def exponential_average():
    def track(ema, params, step):
        decay = jnp.minimum(0.99, (1 + step) / (10 + step))
        return jax.tree.map(lambda e, p: decay * e + (1 - decay) * p, ema, params)

    return track, ({"w": X}, {"w": X * 2}, 3)


def tested_by_type():
    def as_array(x):
        try:
            n = len(x)
        except TypeError:
            n = 1
        return jnp.asarray(x) * n

    return as_array, (X,)


def fallback_for_a_missing_module():
    def scaled(x):
        try:
            import not_there_at_all as fast  # noqa: F401

            return x
        except ImportError:
            return x * 2

    return scaled, (X,)


def queue_of_numbers():
    waiting = queue.Queue()
    waiting.put(3)

    def scaled(x):
        return x * waiting.qsize()

    return scaled, (X,)


def dropout_with_a_key():
    def dropout(x, key):
        keep = jax.random.bernoulli(key, 0.8, x.shape)
        return jnp.where(keep, x / 0.8, 0)

    return dropout, (X, jax.random.key(0))
