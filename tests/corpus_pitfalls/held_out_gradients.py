"""Public gotchas about gradients that were put down before lint saw them; in the form of public_gradients.py."""

import jax
import jax.numpy as jnp
import numpy as np

from tests.corpus_pitfalls.public_gradients import Case

CASES = []


def case(*points, oracle, others=()):
    def add(function):
        CASES.append(Case(function, tuple(np.asarray(point, float) for point in points), oracle, others))
        return function

    return add


def unit(x):
    norms = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(norms == 0, 1, norms)


@case([10.0, 0.3], [0.5, -0.3], oracle=lambda y: np.arccos(np.clip(y, -1, 1)).sum())
def angle_that_is_clipped(y):
    """https://github.com/jax-ml/jax/issues/23649"""
    return jnp.arccos(jnp.clip(y, -1, 1)).sum()


@case([[0.0, 0.0], [1.0, 2.0]], [[0.5, 1.0], [1.0, 2.0]], oracle=lambda x: (unit(x)[0] * unit(x)[1]).sum())
def similarity_of_embeddings(embeddings):
    """https://github.com/google-deepmind/optax/pull/946"""
    norms = jnp.linalg.norm(embeddings, axis=1, keepdims=True)
    norms = jnp.where(norms == 0.0, 1.0, norms)
    embeddings = embeddings / norms
    return (embeddings[0] * embeddings[1]).sum()


@case([0.0, 0.0, 0.0], [1.0, -2.0, 0.5], oracle=lambda x: (unit(x) * np.arange(3.0)).sum())
def vector_that_is_normalized(x):
    """https://github.com/google-deepmind/optax/pull/946"""
    norm = jnp.sqrt(jnp.sum(x**2))
    return (jnp.where(norm == 0.0, x, x / norm) * jnp.arange(3.0)).sum()


@case([-0.5, 0.3], [0.2, 0.9], oracle=lambda y: (np.clip(y, 0, 1) ** (1 / 2.4)).sum())
def gamma_of_clipped_colours(y):
    """https://github.com/tensorflow/tensorflow/issues/2295"""
    return jnp.power(jnp.clip(y, 0.0, 1.0), 1 / 2.4).sum()


@case(
    [1.0, 2.0],
    [0.5, -1.0],
    oracle=lambda a: np.maximum(np.sqrt(((a - [1, 2]) ** 2).sum()) - np.sqrt(((a - [3, 0]) ** 2).sum()) + 9, 0),
)
def triplet_of_equal_embeddings(anchor):
    """https://github.com/tensorflow/tensorflow/issues/30199"""
    near = jnp.sqrt(jnp.sum((anchor - jnp.array([1.0, 2.0])) ** 2))
    far = jnp.sqrt(jnp.sum((anchor - jnp.array([3.0, 0.0])) ** 2))
    return jnp.maximum(near - far + 9.0, 0.0)


@case([0.0, 0.0], [0.5, -1.0], oracle=lambda x: np.exp(-(x**2).sum()))
def bell_of_a_squared_norm(x):
    """https://github.com/HIPS/autograd/issues/183"""
    return jnp.exp(-1.0 * jnp.linalg.norm(x) ** 2)


@case([1.0, 2.0], oracle=lambda w: (np.sqrt(((0.0 * w) ** 2).sum()) - 1) ** 2)
def loss_of_a_root_of_nothing(w):
    """https://github.com/jax-ml/jax/issues/2377"""
    y = jnp.sqrt(jnp.square(0.0 * w).sum())
    return (y - 1.0) ** 2


@case([1.0, 2.0], oracle=lambda x: np.where(x > 0, 0.0, np.inf).sum())
def infinity_beside_the_guard(x):
    """https://github.com/jax-ml/jax/issues/2630"""
    return jnp.where(x > 0, 0.0, x * jnp.inf).sum()


@case([0.0, 2.0], [0.5, 3.0], oracle=lambda x: np.where(x < 1, x, np.sqrt(np.abs(x))).sum())
def fine_root_of_what_is_valid(x):
    """https://github.com/jax-ml/jax/issues/5798"""
    small = x < 1
    return jnp.where(small, x, jnp.sqrt(jnp.where(small, 1, x))).sum()


@case([0.0, 0.0], [1.0, -2.0], oracle=lambda x: (x / np.sqrt((x**2).sum() + 1e-6)).sum())
def fine_norm_with_an_epsilon(x):
    """https://github.com/google-deepmind/optax/pull/946"""
    return (x / jnp.sqrt(jnp.sum(x**2) + 1e-6)).sum()


@case([-3.0, 0.5], oracle=lambda y: np.arccos(np.clip(y, -1 + 1e-6, 1 - 1e-6)).sum())
def fine_angle_clipped_inside(y):
    """https://github.com/jax-ml/jax/issues/23649"""
    return jnp.arccos(jnp.clip(y, -1 + 1e-6, 1 - 1e-6)).sum()


@case([0.0, 1.0], [2.0, -1.0], oracle=lambda x: np.log(np.exp(x).sum()))
def fine_sum_of_exponentials(x):
    """https://github.com/jax-ml/jax/issues/6811"""
    return jax.nn.logsumexp(x)
