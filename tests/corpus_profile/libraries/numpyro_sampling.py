"""Draws from distributions of numpyro: those that reject cost more than those that transform."""

import jax
import numpyro.distributions as dist


@jax.jit
def full(key):
    keys = jax.random.split(key, 4)
    plain = dist.Normal(0.0, 1.0).sample(keys[0], (100_000,))  # without: keys[0, 0] + jax.numpy.zeros(100_000)
    gamma = dist.Gamma(2.5, 1.0).sample(keys[1], (100_000,))  # hot; without: plain
    tail = dist.StudentT(4.0).log_prob(plain)  # without: plain
    logistic = dist.Logistic().icdf(jax.nn.sigmoid(plain))  # without: plain
    return gamma + tail + logistic


def arguments():
    return (jax.random.PRNGKey(0),)
