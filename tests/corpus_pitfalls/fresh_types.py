"""Fresh pitfalls of shapes, types, comparisons and donation. A line with a pitfall ends in `# HIT rule`."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx

N = 8
COLUMN = jnp.arange(float(N))[:, None]
ROW = jnp.arange(float(N))
HALF = jnp.ones((4, 4), jnp.bfloat16)


def column_against_row():
    def mse(prediction, y):
        return jnp.mean((prediction - y) ** 2)  # HIT accidental-broadcast

    return mse, (COLUMN, ROW)


def linear_regression():
    def loss(w, x, y):
        prediction = x @ w
        return ((prediction - y) ** 2).mean()  # HIT accidental-broadcast

    return loss, (jnp.ones((3, 1)), jnp.ones((N, 3)), ROW)


def absolute_error():
    def mae(y, prediction):
        return jnp.abs(y - prediction).mean()  # HIT accidental-broadcast

    return mae, (ROW, COLUMN)


def hinge():
    def loss(scores, labels):
        margin = 1 - labels * scores  # HIT accidental-broadcast
        return jnp.maximum(0, margin).mean()

    return loss, (COLUMN, jnp.sign(ROW - 3.5))


def squared_error_of_a_network():
    net = linen.Dense(1)
    x = jnp.ones((N, 3))
    params = net.init(jax.random.key(0), x)

    def loss(params, x, y):
        out = net.apply(params, x)
        return jnp.square(out - y).sum() / N  # HIT accidental-broadcast

    return loss, (params, x, ROW)


def gradient_of_a_broadcast_loss():
    def step(w, x, y):
        def loss(w):
            error = x @ w - y  # HIT accidental-broadcast
            return jnp.mean(error**2)

        return w - 0.1 * jax.grad(loss)(w)

    return step, (jnp.ones((3, 1)), jnp.ones((N, 3)), ROW)


def cross_entropy_of_a_column():
    def loss(logits, y):
        return optax.sigmoid_binary_cross_entropy(logits, y).mean()  # HIT accidental-broadcast

    return loss, (COLUMN, (ROW > 3).astype(jnp.float32))


def advantage():
    def loss(values, returns):
        advantage = returns - values  # HIT accidental-broadcast
        return 0.5 * jnp.mean(advantage**2)

    return loss, (COLUMN, ROW)


def nan_by_equality():
    def clean(x):
        return jnp.where(x == jnp.nan, 0.0, x)  # HIT nan-comparison

    return clean, (ROW,)


def nan_by_inequality():
    def valid(x):
        mask = x != np.nan  # HIT nan-comparison
        return jnp.sum(x * mask)

    return valid, (ROW,)


def nan_by_a_function():
    def any_nan(x):
        return jnp.any(jnp.equal(x, float("nan")))  # HIT nan-comparison

    return any_nan, (ROW,)


def nan_named_missing():
    missing = float("nan")

    def impute(x):
        return jnp.where(x == missing, x.mean(), x)  # HIT nan-comparison

    return impute, (ROW,)


def attention_scale_of_numpy():
    def scores(q, k):
        return q @ k.T / np.sqrt(64)  # HIT promotion

    return scores, (HALF, HALF)


def scale_of_float64():
    def scaled(x):
        return x * np.float64(0.125)  # HIT promotion

    return scaled, (HALF,)


def bias_in_single_precision():
    def layer(x):
        return x + jnp.float32(1e-6)  # HIT promotion

    return layer, (HALF,)


def constant_array():
    def gelu(x):
        c = jnp.sqrt(jnp.array(2 / np.pi, jnp.float32))
        return 0.5 * x * (1 + jnp.tanh(c * x))  # HIT promotion

    return gelu, (HALF,)


def half_with_a_numpy_mean():
    mean = np.array([0.5, 0.4, 0.3, 0.2]).mean()

    def normalize(x):
        return x - mean  # HIT promotion

    return normalize, (jnp.ones((4, 4), jnp.float16),)


def temperature_of_numpy():
    def sample(logits):
        return jax.nn.log_softmax(logits / np.float32(0.7))  # HIT promotion

    return sample, (HALF,)


BIG = {"w": jnp.ones((512, 1024)), "b": jnp.ones(1024)}


def step_without_donation():
    tx = optax.adam(1e-3)

    @jax.jit
    def step(params, opt_state, x):  # HIT missing-donation
        grads = jax.grad(lambda p: jnp.mean((x @ p["w"] + p["b"]) ** 2))(params)
        updates, opt_state = tx.update(grads, opt_state, params)
        return optax.apply_updates(params, updates), opt_state

    return step, (BIG, tx.init(BIG), jnp.ones((2, 512)))


def cache_without_donation():
    @jax.jit
    def decode(cache, new, at):  # HIT missing-donation
        cache = jax.lax.dynamic_update_slice(cache, new, (at, 0))
        return cache, cache.sum()

    return decode, (jnp.zeros((1024, 512)), jnp.ones((1, 512)), 3)


def average_without_donation():
    @jax.jit
    def track(ema, params):  # HIT missing-donation
        return jax.tree.map(lambda e, p: 0.99 * e + 0.01 * p, ema, params)

    return track, (BIG, {"w": jnp.zeros((512, 1024)), "b": jnp.ones(1024)})


def simulation_without_donation():
    @jax.jit
    def advance(state, dt):  # HIT missing-donation
        return {"x": state["x"] + dt * state["v"], "v": state["v"] - dt * state["x"]}

    return advance, ({"x": jnp.ones((1000, 300)), "v": jnp.zeros((1000, 300))}, 0.1)


def old_state_returned():
    tx = optax.adam(1e-3)
    params = jnp.ones(4)

    def step(params, opt_state):
        grads = jax.grad(lambda p: (p**2).sum())(params)
        updates, new_state = tx.update(grads, opt_state, params)  # noqa: RUF059  # HIT dropped-result
        return optax.apply_updates(params, updates), opt_state

    return step, (params, tx.init(params))


def new_state_thrown_away():
    tx = optax.sgd(0.1, momentum=0.9)
    params = jnp.ones(4)

    def step(params, opt_state):
        grads = jax.grad(lambda p: (p**2).sum())(params)
        updates, _ = tx.update(grads, opt_state)  # HIT dropped-result
        return optax.apply_updates(params, updates), opt_state

    return step, (params, tx.init(params))


def old_state_in_a_dict():
    tx = optax.adamw(1e-3)
    params = jnp.ones(4)

    def step(state):
        grads = jax.grad(lambda p: (p**2).sum())(state["params"])
        updates, opt_state = tx.update(grads, state["opt"], state["params"])  # noqa: RUF059  # HIT dropped-result
        return {"params": optax.apply_updates(state["params"], updates), "opt": state["opt"]}

    return step, ({"params": params, "opt": tx.init(params)},)


def batch_statistics_thrown_away():
    net = linen.BatchNorm(use_running_average=False)
    x = jnp.ones((4, 3))
    variables = net.init(jax.random.key(0), x)

    def forward(variables, x):
        out, mutated = net.apply(variables, x, mutable=["batch_stats"])  # noqa: RUF059  # HIT dropped-result
        return out, variables

    return forward, (variables, x)


def gradients_in_only():
    def step(params, x):
        loss, grads = jax.value_and_grad(lambda p: jnp.mean((x * p) ** 2))(params)
        jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)  # HIT dropped-result
        return params, loss

    return step, (ROW, ROW)


def equinox_update_dropped():
    model = eqx.nn.Linear(3, 1, key=jax.random.key(0))

    def step(model, x):
        grads = eqx.filter_grad(lambda m: jnp.mean(jax.vmap(m)(x) ** 2))(model)
        eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, grads))  # HIT dropped-result
        return model

    return eqx.filter_jit(step), (model, jnp.ones((4, 3)))


def clip_dropped():
    def step(w):
        grads = jax.grad(lambda w: (w**3).sum())(w)
        jnp.clip(grads, -1, 1)  # HIT dropped-result
        return w - grads

    return step, (ROW,)


def donated_and_printed():
    step = jax.jit(lambda w: w * 0.9, donate_argnums=0)

    def train(w):
        new = step(w)
        return new, w.sum()  # HIT donated-reuse

    return train, (ROW,)


def list_of_sizes_static():
    @partial(jax.jit, static_argnames="widths")  # HIT unhashable-static
    def net(x, widths):
        for width in widths:
            x = x.sum() * jnp.ones(width)
        return x

    return net, (ROW, [2, 3])


def module_as_static():
    class Options:
        def __init__(self):
            self.rate = 0.1

    @partial(jax.jit, static_argnums=1)  # HIT unhashable-static
    def f(x, options):
        return x * options.rate

    return f, (ROW, Options())


def jitted_method_of_a_trainer():
    class Trainer:
        def __init__(self):
            self.w = jnp.ones(3)
            self.rate = 0.1

        @jax.jit  # HIT jit-on-method
        def step(self, x):
            return self.w - self.rate * x

    return Trainer().step, (jnp.ones(3),)


def float64_requested():
    def accumulate(x):
        total = jnp.zeros((), jnp.float64)  # HIT truncation
        return total + x.sum()

    return accumulate, (ROW,)


def timestamps_in_nanoseconds():
    def age(stamps):  # HIT truncation
        return stamps - stamps[0]

    return age, (np.array([1_700_000_000_000_000_000, 1_700_000_000_000_000_001]),)


def nnx_module_from_outside():
    model = nnx.Linear(3, 1, rngs=nnx.Rngs(0))

    def loss(x, y):
        prediction = model(x)
        return jnp.mean((prediction - y) ** 2)  # HIT accidental-broadcast

    return loss, (jnp.ones((N, 3)), ROW)
