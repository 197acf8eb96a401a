"""A fixed point sought by optimistix: what is asked for in each step, a softmax of a product."""

import jax
import jax.numpy as jnp
import optimistix as optx


def towards(state, data):
    matrix, bias = data
    scores = state @ matrix  # hot; without: state + matrix[0]
    weights = jax.nn.softmax(scores + bias)  # without: scores + bias
    return 0.5 * state + 0.5 * weights  # without: weights


@jax.jit
def full(state, matrix, bias):
    solver = optx.FixedPointIteration(1e-30, 1e-30)
    return optx.fixed_point(towards, solver, state, (matrix, bias), max_steps=12, throw=False).value


def arguments():
    keys = jax.random.split(jax.random.key(0))
    state = jnp.full((4096, 64), 1 / 64)
    return state, jax.random.normal(keys[0], (64, 64)), jax.random.normal(keys[1], (64,))
