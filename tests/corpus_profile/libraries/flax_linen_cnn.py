"""A convolutional classifier of flax.linen."""

import flax.linen as nn
import jax
import jax.numpy as jnp


class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.Conv(16, (3, 3))(x)  # without: jnp.tile(x, (1, 1, 1, 16))
        x = nn.relu(x)  # without: x
        x = nn.max_pool(x, (2, 2), (2, 2))  # without: x[:, ::2, ::2]
        x = nn.Conv(64, (5, 5))(x)  # hot; without: jnp.tile(x, (1, 1, 1, 4))
        x = nn.avg_pool(x, (2, 2), (2, 2))  # without: x[:, ::2, ::2]
        return nn.Dense(10)(x.mean((1, 2)))  # without: x.mean((1, 2))[:, :10]


def full(images):
    net = Net()
    return net.apply(constants(net, images), images)


def constants(net, images):
    return jax.tree.map(lambda a: jnp.full(a.shape, 0.01), jax.eval_shape(net.init, jax.random.key(0), images))


def arguments():
    return (jax.random.normal(jax.random.key(1), (16, 48, 48, 1)),)
