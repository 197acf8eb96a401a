"""JAX's sharp bits, retold from its documentation. A line with a pitfall ends in `# HIT rule`."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

X = jnp.arange(1.0, 5.0)
offset = 0.0
registry = []


def sharp_bits_printing():
    def shout(x):
        print("Executing function")  # HIT impure-print
        return x

    return shout, (4.0,)


def sharp_bits_reading_a_global():
    def shifted(x):
        return x + offset  # HIT stale-closure

    def move():
        global offset
        offset = 10.0

    del move
    return shifted, (4.0,)


def sharp_bits_saving_a_global():
    def keep(x):
        global kept
        kept = x  # HIT leaked-tracer
        return x

    return keep, (4.0,)


def sharp_bits_iterator_in_fori_loop():
    numbers = iter(range(10))
    return (lambda x: lax.fori_loop(0, 10, lambda i, s: s + next(numbers), x)), (0,)  # HIT iterator


def sharp_bits_iterator_in_cond():
    numbers = iter(range(10))

    def either(x):
        return lax.cond(x > 0, lambda: next(numbers) + 1, lambda: 0)  # HIT iterator

    return either, (1,)


def sharp_bits_in_place():
    def row_of_ones(table):
        table[1, :] = 1.0  # HIT argument-mutation
        return table

    return row_of_ones, (jnp.zeros((3, 3)),)


def sharp_bits_updated_copy_dropped():
    def row_of_ones(table):
        table.at[1, :].set(1.0)  # HIT dropped-result
        return table

    return row_of_ones, (jnp.zeros((3, 3)),)


def sharp_bits_added_copy_dropped():
    def twice_a_quarter(table):
        table.at[::2, 3:].add(7.0)  # HIT dropped-result
        return table.sum()

    return twice_a_quarter, (jnp.ones((5, 6)),)


def sharp_bits_reading_outside():
    return (lambda x: jnp.arange(10)[11] + x), (1,)  # HIT out-of-bounds


def sharp_bits_writing_outside():
    def bumped(x):
        return x.at[11].add(23)  # HIT out-of-bounds

    return bumped, (jnp.arange(10),)


def sharp_bits_list_as_an_array():
    def permissive_sum(x):  # HIT list-of-scalars
        return jnp.sum(jnp.array(x))

    return permissive_sum, (list(range(100)),)


def sharp_bits_list_refused():
    def total():
        return jnp.sum([1, 2, 3])  # HIT list-of-scalars

    return total, ()


def sharp_bits_numpy_random():
    def drawn(x):
        return x + np.random.random()  # HIT impure-random

    return drawn, (X,)


def sharp_bits_one_key_for_all():
    def drawn(key):
        first = jax.random.normal(key, shape=(1,))
        return first + jax.random.normal(key, shape=(1,))  # HIT key-reuse

    return drawn, (jax.random.key(0),)


def sharp_bits_control_flow():
    def f(x):
        if x < 3:  # HIT concretization
            return 3.0 * x**2
        return -4 * x

    return f, (2.0,)


def sharp_bits_length_as_an_argument():
    def example(length, value):
        return jnp.ones((length,)) * value  # HIT concretization

    return example, (5, 4.0)


def sharp_bits_chained_comparison():
    def inside(x):
        return jnp.where(0 < x < 3, x, 0.0)  # HIT concretization

    return inside, (2.0,)


def sharp_bits_dynamic_shape():
    def nansum(x):
        mask = ~jnp.isnan(x)
        return jnp.sum(x[mask])  # HIT boolean-mask

    return nansum, (X,)


def sharp_bits_double_precision():
    def drawn(key):
        return jax.random.uniform(key, (1000,), dtype=jnp.float64)  # HIT truncation

    return drawn, (jax.random.key(0),)


def sharp_bits_cast_out_of_range():
    def bytes_of(x):
        return x + jnp.arange(254.0, 258.0).astype("uint8")  # HIT truncation

    return bytes_of, (jnp.zeros(4, jnp.uint8),)
