"""Real functions that have no pitfall: nothing of severity error may be found in them, and hardly anything at all."""

from dataclasses import dataclass
from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import linen, nnx

from tests.examples.training import training_step

key = jax.random.key(0)
EPSILON = 1e-6


def transformer_training_step():
    step, args = training_step(2)
    return step, args


def equinox_mlp():
    model = eqx.nn.MLP(4, 2, 8, 2, key=key)
    return eqx.filter_jit(lambda m, x: jax.vmap(m)(x)), (model, jnp.ones((5, 4)))


def equinox_update():
    model = eqx.nn.MLP(4, 2, 8, 2, key=key)
    optimizer = optax.adam(1e-3)
    state = optimizer.init(eqx.filter(model, eqx.is_array))

    def loss(model, x, y):
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    @eqx.filter_jit
    def step(model, state, x, y):
        value, gradients = eqx.filter_value_and_grad(loss)(model, x, y)
        updates, state = optimizer.update(gradients, state, model)
        return eqx.apply_updates(model, updates), state, value

    return step, (model, state, jnp.ones((5, 4)), jnp.ones((5, 2)))


def equinox_convolution():
    model = eqx.nn.Sequential(
        [eqx.nn.Conv2d(1, 4, 3, key=key), eqx.nn.Lambda(jax.nn.relu), eqx.nn.AvgPool2d(2, 2), eqx.nn.Lambda(jnp.ravel)]
    )
    return eqx.filter_jit(lambda m, x: m(x)), (model, jnp.ones((1, 8, 8)))


def equinox_attention():
    model = eqx.nn.MultiheadAttention(2, 8, key=key)
    return eqx.filter_jit(lambda m, x: m(x, x, x)), (model, jnp.ones((5, 8)))


def linen_model():
    class Net(linen.Module):
        @linen.compact
        def __call__(self, x):
            x = linen.relu(linen.Dense(8)(x))
            return linen.Dense(2)(linen.LayerNorm()(x))

    net = Net()
    variables = net.init(key, jnp.ones((1, 4)))
    return net.apply, (variables, jnp.ones((5, 4)))


def linen_training_step():
    net = linen.Dense(2)
    params = net.init(key, jnp.ones((1, 4)))
    optimizer = optax.sgd(0.1, momentum=0.9)

    @jax.jit
    def step(params, state, x, y):
        def loss(params):
            return optax.softmax_cross_entropy_with_integer_labels(net.apply(params, x), y).mean()

        value, gradients = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradients, state)
        return optax.apply_updates(params, updates), state, value

    return step, (params, optimizer.init(params), jnp.ones((5, 4)), jnp.zeros(5, jnp.int32))


def nnx_model():
    model = nnx.Linear(4, 2, rngs=nnx.Rngs(0))
    graph, state = nnx.split(model)

    def apply(state, x):
        return nnx.merge(graph, state)(x)

    return apply, (state, jnp.ones((5, 4)))


def optax_adamw():
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))
    params = {"w": jnp.ones((3, 3)), "b": jnp.zeros(3)}

    def update(params, state, gradients):
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    return update, (params, optimizer.init(params), params)


def optax_schedule():
    schedule = optax.cosine_decay_schedule(1e-3, 100)
    return (lambda step: schedule(step)), (jnp.int32(3),)


def softmax():
    return jax.nn.softmax, (jnp.ones((4, 8)),)


def gelu():
    return jax.nn.gelu, (jnp.ones((4, 8)),)


def log_sum_exp():
    def stable(x):
        top = jax.lax.stop_gradient(x.max())
        return top + jnp.log(jnp.sum(jnp.exp(x - top)))

    return jax.grad(stable), (jnp.arange(4.0),)


def cross_entropy():
    def loss(logits, labels):
        log_probabilities = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(log_probabilities, labels[:, None], axis=-1).mean()

    return jax.value_and_grad(loss), (jnp.ones((4, 8)), jnp.zeros(4, jnp.int32))


def batch_norm():
    def normalize(x, gain, bias):
        mean, variance = x.mean(0), x.var(0)
        return (x - mean) * jax.lax.rsqrt(variance + EPSILON) * gain + bias

    return normalize, (jnp.ones((16, 4)), jnp.ones(4), jnp.zeros(4))


def safe_where():
    def safe_log(x):
        positive = x > 0
        return jnp.where(positive, jnp.log(jnp.where(positive, x, 1.0)), 0.0).sum()

    return jax.grad(safe_log), (jnp.array([0.0, 1.0]),)


def newton():
    def root(a):
        def unfinished(state):
            x, i = state
            return (jnp.abs(x * x - a) > 1e-6) & (i < 50)

        def improve(state):
            x, i = state
            return 0.5 * (x + a / x), i + 1

        return jax.lax.while_loop(unfinished, improve, (a, 0))[0]

    return root, (jnp.float32(2.0),)


def runge_kutta():
    def field(y):
        return jnp.stack([y[1], -y[0]])

    def step(y, _):
        h = 0.01
        k1 = field(y)
        k2 = field(y + h / 2 * k1)
        k3 = field(y + h / 2 * k2)
        k4 = field(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y, y

    return (lambda y: jax.lax.scan(step, y, length=100)), (jnp.array([1.0, 0.0]),)


def kalman_filter():
    def predict_and_update(state, z):
        mean, covariance = state
        gain = covariance / (covariance + 0.1)
        mean = mean + gain * (z - mean)
        return (mean, (1 - gain) * covariance + 0.01), mean

    return (lambda zs: jax.lax.scan(predict_and_update, (jnp.float32(0), jnp.float32(1)), zs)), (jnp.ones(20),)


def attention():
    def attend(q, k, v):
        scores = jnp.einsum("qd,kd->qk", q, k) / np.sqrt(q.shape[-1])
        causal = jnp.tril(jnp.ones(scores.shape, bool))
        return jax.nn.softmax(jnp.where(causal, scores, -jnp.inf)) @ v

    return attend, (jnp.ones((4, 8)),) * 3


def layers_in_a_python_loop():
    params = [{"w": jnp.ones((4, 4)), "b": jnp.zeros(4)} for _ in range(3)]

    def mlp(params, x):
        for layer in params:
            x = jax.nn.relu(x @ layer["w"] + layer["b"])
        return x

    return mlp, (params, jnp.ones((2, 4)))


def split_keys():
    def sample(key):
        key_a, key_b = jax.random.split(key)
        return jax.random.normal(key_a, (3,)) + jax.random.uniform(key_b, (3,))

    return sample, (jax.random.key(1),)


def folded_keys():
    def walk(key, x):
        def body(x, i):
            return x + jax.random.normal(jax.random.fold_in(key, i), x.shape), None

        return jax.lax.scan(body, x, jnp.arange(5))[0]

    return walk, (jax.random.key(1), jnp.ones(3))


def donated_well():
    @partial(jax.jit, donate_argnums=0)
    def add(x, y):
        return x + y

    return add, (jnp.ones(8), jnp.ones(8))


def static_string():
    @partial(jax.jit, static_argnames="mode")
    def reduce(x, mode):
        return {"sum": jnp.sum, "max": jnp.max}[mode](x)

    return partial(reduce, mode="sum"), (jnp.ones(8),)


def frozen_config_as_a_static():
    @dataclass(frozen=True)
    class Config:
        width: int

    @partial(jax.jit, static_argnames="config")
    def f(x, config):
        return jnp.broadcast_to(x, (config.width, *x.shape))

    return partial(f, config=Config(3)), (jnp.ones(4),)


def branches_with_cond():
    def f(x):
        return jax.lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x)

    return f, (jnp.ones(3),)


def python_branch_on_a_shape():
    def f(x):
        if x.ndim == 2:
            x = x.mean(0)
        return x * x.shape[0]

    return f, (jnp.ones((3, 4)),)


def masked_mean():
    def mean(x, mask):
        return jnp.sum(jnp.where(mask, x, 0)) / jnp.maximum(mask.sum(), 1)

    return mean, (jnp.arange(4.0), jnp.array([True, False, True, True]))


def scatter_add():
    def histogram(x):
        return jnp.zeros(10, jnp.int32).at[x].add(1)

    return histogram, (jnp.array([1, 2, 2]),)


def fourier():
    def lowpass(x):
        spectrum = jnp.fft.rfft(x)
        return jnp.fft.irfft(spectrum * (jnp.arange(spectrum.size) < 4), n=x.size)

    return lowpass, (jnp.ones(16),)


def least_squares():
    def solve(a, b):
        q, r = jnp.linalg.qr(a)
        return jax.scipy.linalg.solve_triangular(r, q.T @ b)

    return solve, (jnp.eye(4) + 0.1, jnp.ones(4))


def vmapped_gradient():
    def loss(w, x):
        return jnp.tanh(x @ w).sum()

    return jax.vmap(jax.grad(loss), in_axes=(None, 0)), (jnp.ones(4), jnp.ones((5, 4)))


def rematerialized():
    @jax.checkpoint
    def block(x):
        return jnp.sin(jnp.sin(x))

    return jax.grad(lambda x: block(x).sum()), (jnp.ones(4),)


def custom_gradient():
    @jax.custom_jvp
    def log1pexp(x):
        return jnp.log1p(jnp.exp(x))

    @log1pexp.defjvp
    def rule(primals, tangents):
        (x,), (t,) = primals, tangents
        return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t

    return jax.grad(lambda x: log1pexp(x)), (jnp.float32(1.0),)


def image_resize():
    return (lambda x: jax.image.resize(x, (8, 8), "bilinear")), (jnp.ones((4, 4)),)


def sorting():
    def top(x):
        order = jnp.argsort(-x)
        return x[order[:3]]

    return top, (jnp.arange(10.0),)
