"""Public issue threads retold: control flow, masks, shapes, NumPy. A line with a pitfall ends in `# HIT rule`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = jnp.arange(1.0, 5.0)


def thread_jax_16430():
    def with_default(scale, fallback):
        chosen = scale or fallback  # HIT concretization
        return chosen * 2

    return with_default, (1.0, 2.0)


def thread_jax_22098():
    def choose(flag):
        if True and flag:  # HIT concretization
            return 1
        return 0

    return choose, (True,)


def thread_chex_387():
    def checked(x):
        assert x == 0, "x must be zero"  # HIT concretization
        return x + 1

    return checked, (0,)


def thread_probml_70():
    def attend(scores, valid):
        return scores.at[~valid].set(-1e6) + scores[valid].sum()  # HIT boolean-mask

    return attend, (X, X > 2)


def thread_jax_4471():
    def subset_sum(x, n):
        mask = jnp.arange(4) < n
        return x[mask].sum()  # HIT boolean-mask

    return subset_sum, (X, 2)


def thread_jax_5186():
    def steps(n):
        return jnp.arange(0, n, 1)  # HIT concretization

    return steps, (5,)


def thread_jax_4418():
    def zero_rows(rows):
        empty = jnp.where(~rows.any(axis=1))  # HIT boolean-mask
        return jnp.ones(rows.shape[0]).at[empty].set(0)

    return zero_rows, (jnp.array([[1, 2], [0, 0]]),)


def thread_secretflow_406():
    def centroids(points, labels):
        means = [points[labels == j].mean(axis=0) for j in range(3)]  # HIT boolean-mask
        return jnp.stack(means)

    return centroids, (jnp.ones((6, 2)), jnp.array([0, 1, 2, 0, 1, 2]))


def thread_jax_21994():
    def even_columns(x):
        return x.at[:2, jnp.mod(x[0], 2) == 0].set(0) + x[x[:, 0] > 1].sum()  # HIT boolean-mask

    return even_columns, (jnp.arange(16.0).reshape(4, 4),)


def thread_numpyro_853():
    def model(volume, effects):
        kinds = jnp.unique(volume).size  # HIT boolean-mask
        return effects[:kinds].sum()

    return model, (jnp.array([0, 1, 1]), X)


def thread_jax_204():
    def padded(row, length):
        empty = lax.full((length, row.shape[0]), 0.0)  # HIT concretization
        return lax.dynamic_update_slice(empty, row[None], (0, 0))

    return padded, (X, 3)


def thread_jax_14279():
    def noise(key, count):
        return jax.random.normal(key, (8, count))  # HIT concretization

    return noise, (jax.random.key(0), 3)


def thread_aesara_43():
    def reshaped(x, shape):
        return jnp.reshape(x, shape)  # HIT concretization

    return reshaped, (X, (2, 2))


def thread_jax_3654():
    def encoded(actions, number):
        return jax.nn.one_hot(actions, number)  # HIT concretization

    return encoded, (jnp.array([0, 1]), 3)


def thread_tinygp_85():
    def shifted(x):
        return np.append(x[0], x[:-1])  # HIT concretization

    return shifted, (X,)


def thread_jax_7545():
    table = np.arange(5.0)

    def looked_up(index):
        return table[index] * 2  # HIT concretization

    return looked_up, (jnp.array(1),)


def thread_distrax_291():
    def entropies(logits):
        grid = np.indices(logits.shape)[0]
        mask = jnp.arange(logits.shape[0]) > 0
        return grid[mask].sum()  # HIT concretization

    return entropies, (jnp.zeros((3, 3)),)


def thread_jax_5853():
    def pick(i):
        return [10.0, 20.0, 30.0][i]  # HIT concretization

    return pick, (0,)


def thread_lightweight_mmm_206():
    def windows(x, start):
        return x[start : start + 2]  # HIT concretization

    return windows, (X, 1)


def thread_llama_jax_14():
    def generate(tokens, limit):
        def body(state):
            i, tokens = state
            return i + 1, tokens.at[range(i)[0]].set(1)  # HIT concretization

        return lax.while_loop(lambda state: state[0] < limit, body, (0, tokens))

    return generate, (jnp.zeros(4), 2)


def thread_jax_207():
    def repeated(n, x):
        for _ in range(n):  # HIT concretization
            x = x[::-1] + 1
        return x

    return repeated, (10, X)


def thread_jax_365():
    def waves():
        return jnp.sin([0.2, 0.4])  # HIT list-of-scalars

    return waves, ()
