"""A stochastic differential equation of diffrax: the drift is dearer than the diffusion."""

import diffrax
import jax
import jax.numpy as jnp


def drift(t, y, theta):
    pulled = theta * (0.5 - y)  # without: y
    return pulled + jnp.sin(jnp.exp(-(y**2))) * jnp.cos(7 * y)  # hot; without: pulled


def diffusion(t, y, theta):
    return 0.1 * jnp.sqrt(jnp.abs(y))  # without: y


@jax.jit
def full(theta, y, key):
    motion = diffrax.UnsafeBrownianPath((), key)
    terms = diffrax.MultiTerm(diffrax.ODETerm(drift), diffrax.ControlTerm(diffusion, motion))
    solution = diffrax.diffeqsolve(terms, diffrax.Euler(), 0.0, 1.0, 0.02, y, theta, adjoint=diffrax.DirectAdjoint())
    return solution.ys[0]


def arguments():
    return jnp.asarray(0.7), jax.random.uniform(jax.random.key(1), (200_000,)), jax.random.key(0)
