"""A hierarchical regression of numpyro: its log density, with gradient."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from numpyro.infer.util import log_density


def model(x, group, y):
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    slope = numpyro.sample("slope", dist.Normal(0.0, scale).expand([512]).to_event(1))
    offset = numpyro.sample("offset", dist.Normal(0.0, 1.0).expand([100]).to_event(1))
    mean = x @ slope  # hot; without: x[:, 0] + slope[0]
    mean = mean + offset[group]  # without: mean + offset[0]
    freedom = 2.0 + jnp.exp(scale)
    numpyro.sample("y", dist.StudentT(freedom, mean, 1.0), obs=y)


@jax.jit
def full(values, x, group, y):
    density = lambda values: log_density(model, (x, group, y), {}, values)[0]  # noqa: E731
    value, gradient = jax.value_and_grad(density)(values)  # without: density(values), values
    return value, gradient


def arguments():
    keys = jax.random.split(jax.random.key(0), 4)
    values = {"scale": jnp.asarray(0.5), "slope": jax.random.normal(keys[0], (512,)), "offset": jnp.ones(100)}
    return (
        values,
        jax.random.normal(keys[1], (8000, 512)),
        jax.random.randint(keys[2], (8000,), 0, 100),
        jax.random.normal(keys[3], (8000,)),
    )
