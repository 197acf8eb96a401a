"""Loops run as often as the true sizes say, and garbage keeps none of them going."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.padding import check

X = (("b", "s", 8), np.float64)
PLACES = (("b", "s"), np.int64)


def recurrent(x):
    weights = jnp.full((8, 8), 0.1)
    return lax.scan(lambda c, row: (jnp.tanh(row @ weights + c),) * 2, x[:, 0], x.transpose(1, 0, 2))


def halved(x):
    return lax.while_loop(lambda c: jnp.abs(c).sum() > 1.0, lambda c: c * 0.5, x)


LOOPS = {
    "recurrence over a padded axis": (recurrent, X),
    "its gradient": (jax.grad(lambda x: recurrent(x)[1].sum()), X),
    "reversed": (lambda x: lax.scan(lambda c, r: (c / 2 + r, c), x[:, 0], x.transpose(1, 0, 2), reverse=True), X),
    "over an axis without padding": (
        lambda x: lax.scan(lambda c, r: (c + r.mean(), r.sum(1)), 0.0, x.transpose(2, 0, 1)), X),
    "map": (lambda x: lax.map(lambda row: jax.nn.softmax(row, 0), x), X),
    "as many turns as a size": (lambda x: lax.fori_loop(0, x.shape[1], lambda i, c: c + x[:, i], x[:, 0]), X),
    "while": (halved, X),
    "while for each row": (lambda x: jax.vmap(jax.vmap(halved))(x), X),
    "while within a scan": (lambda x: lax.scan(lambda c, r: (c + halved(r.sum()), c), 0.0, x[:, 0]), X),
    "merged axes carried": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + 1, x.reshape(-1, 8)).sum(0), X),
    "branches": (lambda x: lax.cond(x[0, 0, 0] > 0, lambda y: y.sum(1), lambda y: -y.max(1), x), X),
    "branches of each row": (lambda x: jax.vmap(lambda y: lax.cond(y.sum() > 0, jnp.sin, jnp.cos, y))(x), X),
    "one branch of several": (
        lambda x, i: lax.switch(i[0, 0], [jnp.sin, jnp.cos, lambda y: jax.nn.softmax(y, 1)], x), X, PLACES),
}  # fmt: skip


@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_branches_give_what_they_give_unpadded(name):
    check(*LOOPS[name])


def test_a_scan_over_a_padded_axis_leaves_zeros_behind_which_a_sum_need_not_mask():
    proof = check(
        lambda x: lax.scan(lambda c, r: (c, jnp.cos(r)), 0.0, x.transpose(1, 0))[1].sum(0), (("b", "s"), float)
    )
    assert proof.masks == 0
