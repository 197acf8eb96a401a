"""Paths of a share's price, drawn anew at each call: the dearest line makes the random numbers."""

import jax
import jax.numpy as jnp


def paths(key, spot, rate, volatility):
    noise = jax.random.normal(key, (256, 4096))  # hot; without: jnp.full((256, 4096), key[0] * 1e-9)
    steps = (rate - volatility**2 / 2) / 256 + volatility * noise / 16  # without: noise
    logs = jnp.cumsum(steps, axis=0)  # without: steps
    return spot * jnp.exp(logs)  # without: spot * logs


@jax.jit
def full(key, spot, strike):
    prices = paths(key, spot, 0.03, 0.2)
    means = prices.mean(0)  # without: prices[0]
    payoffs = jnp.maximum(means - strike, 0.0)  # without: means
    return payoffs.mean(), payoffs.std()


def arguments():
    return jax.random.PRNGKey(3), jnp.float32(100.0), jnp.float32(105.0)
