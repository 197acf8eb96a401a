"""A chain of blackjax: the log density is asked for in every step of the integrator."""

import blackjax
import jax
import jax.numpy as jnp


def density(position, x, y):
    scores = x @ position  # hot; without: x[:, 0] + position[0]
    likely = jax.nn.log_sigmoid(scores * y)  # without: scores * y
    prior = -0.5 * jnp.sum(position**2)  # without: position[0]
    return likely.sum() + prior


@jax.jit
def full(position, x, y, key):
    of_position = lambda position: density(position, x, y)  # noqa: E731
    kernel = blackjax.hmc(of_position, 1e-3, jnp.ones(128), 10)
    return kernel.step(key, kernel.init(position))[0].position


def arguments():
    keys = jax.random.split(jax.random.key(0), 3)
    y = jnp.sign(jax.random.normal(keys[2], (20_000,)))
    return jnp.zeros(128), jax.random.normal(keys[1], (20_000, 128)), y, keys[0]
