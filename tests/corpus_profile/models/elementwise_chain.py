"""A price of options: one kernel made of many lines, of which one asks for logarithms of the gamma function's kin."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf


@jax.jit
def full(spot, strike, years):
    ratio = spot / strike  # without: spot
    spread = 0.2 * jnp.sqrt(years)  # without: years
    moneyness = jnp.log(ratio)  # without: ratio
    upper = (moneyness + 0.02 * years) / spread + 0.5 * spread  # without: moneyness
    lower = upper - spread  # without: upper
    likely, certain = 0.5 + 0.5 * erf(upper / 1.414), 0.5 + 0.5 * erf(lower / 1.414)  # hot; without: upper, lower
    discounted = strike * (1 - 0.02 * years)  # without: strike
    return spot * likely - discounted * certain  # without: likely + certain + discounted


def arguments():
    random = np.random.default_rng(0)
    return tuple(jnp.asarray(random.uniform(0.5, 1.5, size=6_000_000), jnp.float32) for _ in range(3))
