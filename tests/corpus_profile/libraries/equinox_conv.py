"""A convolution, a transposed one and a pool of equinox."""

import equinox as eqx
import jax


class Net(eqx.Module):
    down: eqx.nn.Conv2d
    up: eqx.nn.ConvTranspose2d
    pool: eqx.nn.MaxPool2d

    def __init__(self, key):
        first, second = jax.random.split(key)
        self.down = eqx.nn.Conv2d(8, 8, 3, padding=1, key=first)
        self.up = eqx.nn.ConvTranspose2d(8, 8, 5, padding=2, key=second)
        self.pool = eqx.nn.MaxPool2d(3, 1, padding=1)

    def __call__(self, x):
        x = self.down(x)  # without: x
        x = self.pool(x)  # without: x
        x = jax.nn.softplus(x)  # without: x
        return self.up(x)  # hot; without: x


@eqx.filter_jit
def full(model, images):
    return jax.vmap(model)(images)


def arguments():
    return Net(jax.random.key(0)), jax.random.normal(jax.random.key(1), (8, 8, 64, 64))
