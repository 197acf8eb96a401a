"""A Gaussian process in numpyro: the kernel's matrix, and the density of a multivariate normal distribution."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import log_density


def model(x, y):
    length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
    apart = jnp.abs(x[:, None] - x) / length  # without: x[:, None] + x
    kernel = (1 + apart + apart**2 / 3) * jnp.exp(-apart)  # without: apart
    noisy = kernel + 0.1 * jnp.eye(len(x))  # without: kernel
    normal = dist.MultivariateNormal(0.0, noisy)  # hot; without: dist.Normal(noisy[0], 1.0).to_event(1)
    numpyro.sample("y", normal, obs=y)


@jax.jit
def full(values, x, y):
    return log_density(model, (x, y), {}, values)[0]


def arguments():
    x = jnp.linspace(0, 30, 700)
    return {"length": jnp.asarray(1.5)}, x, jnp.sin(x)
