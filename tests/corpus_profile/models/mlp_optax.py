"""A perceptron and a step of Adam: the wide hidden layer, forward and backward."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.adam(1e-3)


def predict(params, x):
    h = jax.nn.relu(x @ params["first"])  # without: jax.nn.relu(x[:, :1] + params["first"][0])
    h = jax.nn.relu(h @ params["hidden"])  # hot; without: h + params["hidden"][0]
    return h @ params["last"]  # without: h[:, :10]


def loss(params, x, y):
    logits = predict(params, x)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)  # without: logits[:, 0]
    return jnp.mean(losses)


@jax.jit
def full(params, state, x, y):
    value, grads = jax.value_and_grad(loss)(params, x, y)
    updates, state = optimizer.update(grads, state, params)  # without: grads, state
    return optax.apply_updates(params, updates), state, value  # without: updates, state, value


def arguments():
    random = np.random.default_rng(0)
    sizes = {"first": (64, 1024), "hidden": (1024, 1024), "last": (1024, 10)}
    params = {name: jnp.asarray(random.normal(size=size) / 32, jnp.float32) for name, size in sizes.items()}
    x = jnp.asarray(random.normal(size=(512, 64)), jnp.float32)
    return params, optimizer.init(params), x, jnp.asarray(random.integers(0, 10, 512))
