"""A neural differential equation of diffrax: the field that the solver asks for, again and again."""

import diffrax
import jax
import jax.numpy as jnp


def field(t, y, params):
    h = y @ params["in"]  # without: jnp.tile(y, 16)
    h = jnp.tanh(h + t)  # hot; without: h + t
    return h @ params["out"]  # without: h[:, :16]


@jax.jit
def full(params, y):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(field),
        diffrax.Tsit5(),
        0.0,
        1.0,
        0.05,
        y,
        params,
        stepsize_controller=diffrax.ConstantStepSize(),
    )
    ends = solution.ys[0]
    return jnp.sort(ends, axis=0)  # without: ends


def arguments():
    keys = jax.random.split(jax.random.key(0), 3)
    params = {"in": jax.random.normal(keys[0], (16, 256)) / 4, "out": jax.random.normal(keys[1], (256, 16)) / 16}
    return params, jax.random.normal(keys[2], (1024, 16))
