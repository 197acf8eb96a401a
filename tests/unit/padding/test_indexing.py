"""What is read and written at run-time places stays in the valid part of each axis."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.support.padding import check, refusals

X = (("b", "s", 8), np.float64)
PLACES = (("b", "s"), np.int64)
TABLE = ((64, 8), np.float64)


def loss(x, i):
    return -jnp.take_along_axis(jax.nn.log_softmax(x, -1), i[..., None], -1).mean()


READS = {
    "rows of a table": (lambda t, i: t[i], TABLE, PLACES),
    "one place of each row": (lambda x, i: x[jnp.arange(x.shape[0]), i[:, 0]], X, PLACES),
    "along an axis": (lambda x, i: jnp.take_along_axis(x, i[..., None], 1), X, PLACES),
    "along an axis without padding": (lambda x, i: jnp.take_along_axis(x, i[..., None], 2), X, PLACES),
    "clipped": (lambda x, i: jnp.take(x, 3 * i[0], axis=1, mode="clip"), X, PLACES),
    "filled": (lambda x, i: jnp.take(x, 3 * i[0], axis=1, mode="fill", fill_value=-1.0), X, PLACES),
    "from the end": (lambda x, i: jnp.take(x, -i[0], axis=1), X, PLACES),
    "8-bit places": (lambda x, i: x[:, i[0].astype(jnp.uint8)], X, PLACES),
    "first, last": (lambda x: (x[:, 0], x[:, -1]), X),
    "reversed": (lambda x: x[:, ::-1], X),
    "every second": (lambda x: (x[:, ::2], x[:, 1::2], x[:, ::-2]), X),
    "halves": (lambda x: (x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]), X),
    "differences": (lambda x: jnp.diff(x, axis=1), X),
    "a table's first rows": (lambda t, x: x + t[: x.shape[1]], TABLE, X),
    "a piece of a table": (
        lambda t, x, i: lax.dynamic_slice_in_dim(t, i[0, 0] + 59, x.shape[1], 0) + x,
        TABLE,
        X,
        PLACES,
    ),
    "a slice for each row": (
        lambda x, i: jax.vmap(lambda a, k: lax.dynamic_slice_in_dim(a, k, 1))(x, i[:, 0]),
        X,
        PLACES,
    ),
    "of merged axes": (lambda x, i: x.reshape(-1, 8)[i.reshape(-1)].sum(0), X, PLACES),
}


@pytest.mark.parametrize("name", READS)
def test_reads_stay_in_the_valid_part(name):
    check(*READS[name])


WRITES = {
    "gradient of a table": (jax.grad(lambda t, i: (t[i] ** 2).sum()), TABLE, PLACES),
    "gradient of a loss": (jax.grad(loss), X, PLACES),
    "gradient of differences": (jax.grad(lambda x: (jnp.diff(x, axis=1) ** 2).sum()), X),
    "one place": (lambda x: (x.at[:, -1].set(1.0), x.at[0].mul(2.0)), X),
    "all but the last": (lambda x: x.at[:, :-1].set(0.0), X),
    "shifted": (lambda x: (x.at[:, 1:].add(x[:, :-1]), x.at[:, 1:].set(x[:, :-1]), x.at[:, 1:].min(x[:, :-1])), X),
    "sums of segments": (lambda x, i: jax.ops.segment_sum(x, i[:, 0], 3), X, PLACES),
    "maxima of segments": (lambda x, i: jax.ops.segment_max(x, i[:, 0], 3), X, PLACES),
    "one place of each row": (lambda x, i: x.at[jnp.arange(x.shape[0]), i[:, 0]].set(5.0), X, PLACES),
    "an update of each row": (lambda x, i: jax.vmap(lambda a, k: a.at[k].set(9.0))(x, i[:, 0]), X, PLACES),
    "counts": (lambda i: jnp.bincount(i[:, 0], length=5), PLACES),
    "a cache": (lambda t, x: lax.dynamic_update_slice(t, x[0], (59, 0)), TABLE, X),
    "a cache's rows": (lambda t, x: (t.at[4 : 4 + x.shape[1]].add(x[0]), t.at[: x.shape[1]].set(x[0])), TABLE, X),
    "into merged axes": (lambda x, i: jnp.zeros((i.size, 8)).at[i.reshape(-1)].add(x.reshape(-1, 8)).sum(0), X, PLACES),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_stay_in_the_valid_part(name):
    check(*WRITES[name])


def test_several_windows_of_a_size_that_varies_are_refused():
    def function(x):
        return jax.vmap(lambda row, at: lax.dynamic_update_slice(row, row[:-1], (at,)))(x, jnp.arange(x.shape[0]))

    (refusal,) = refusals(function, (("b", "s"), np.float32))
    assert "several windows" in refusal.reason
