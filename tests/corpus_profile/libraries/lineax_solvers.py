"""Linear systems in lineax: one by a factorisation, one by conjugate gradients."""

import jax
import jax.numpy as jnp
import lineax as lx


@jax.jit
def full(matrix, right):
    normal = matrix.T @ matrix  # without: matrix
    normal = normal + 50 * jnp.eye(len(right))  # without: normal
    direct = lx.linear_solve(lx.MatrixLinearOperator(normal), right, lx.LU()).value  # hot; without: normal[0]
    operator = lx.MatrixLinearOperator(normal, lx.positive_semidefinite_tag)
    steps = lx.CG(1e-30, 1e-30, max_steps=30)
    iterated = lx.linear_solve(operator, right, steps, throw=False).value  # without: normal[1]
    return direct - iterated


def arguments():
    keys = jax.random.split(jax.random.key(0))
    return jax.random.normal(keys[0], (500, 500)), jax.random.normal(keys[1], (500,))
