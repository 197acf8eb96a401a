"""Any sequence of operations that merge, move, cut and reduce padded axes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.padding import check


def merged(x):
    return x.reshape(-1, *x.shape[2:]) if x.ndim > 1 else x


def folded(x):
    return x.reshape(*x.shape[:-1], 2, x.shape[-1] // 2) if x.shape[-1] in (4, 8) else x


def apart(x):
    """The first axis in two, whatever it is: there and back."""
    doubled = jnp.concatenate([x, x], 0)
    return doubled.reshape(2, *x.shape)[1]


STEPS = {
    "merged": lambda x, rows: merged(x),
    "apart": lambda x, rows: apart(x),
    "merged and back": lambda x, rows: jnp.tanh(merged(x)).reshape(x.shape),
    "folded": lambda x, rows: folded(x),
    "moved": lambda x, rows: jnp.moveaxis(x, 0, -1),
    "reversed": lambda x, rows: jnp.flip(x, 0),
    "rolled": lambda x, rows: jnp.roll(x, 1, 0),
    "doubled": lambda x, rows: jnp.concatenate([x, x * 2], 0),
    "summed": lambda x, rows: x.sum(0) if x.ndim > 1 else x,
    "softmax": lambda x, rows: jax.nn.softmax(x, 0),
    "centred": lambda x, rows: x - x.mean(0, keepdims=True),
    "sorted": lambda x, rows: jnp.sort(x, 0),
    "accumulated": lambda x, rows: jnp.cumsum(x, 0),
    "accumulated backwards": lambda x, rows: jax.lax.cummax(x, 0, reverse=True),
    "numbered": lambda x, rows: x + jnp.arange(x.shape[0]).reshape(-1, *[1] * (x.ndim - 1)),
    "squared": lambda x, rows: x @ jnp.swapaxes(x, -1, -2) if x.ndim > 1 else x,
    "shifted": lambda x, rows: jnp.pad(x, [(1, 2), *[(0, 0)] * (x.ndim - 1)]),
    "largest": lambda x, rows: jnp.where(x > x.max(), 0.0, x),
}


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(st.sampled_from(sorted(STEPS)), min_size=2, max_size=5))
def test_compositions_give_what_they_give_unpadded(steps):
    def function(x):
        rows = x.shape[:2]
        for step in steps:
            x = STEPS[step](x, rows)
        return x

    check(function, (("b", "s", 4), np.float64))
