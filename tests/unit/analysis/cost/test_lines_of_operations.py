"""What an operation costs is on its own line, whatever the compiler makes of it, and not on the line that reads it.

The oracle is arithmetic: `e * 2 + 1` is two operations for each element of `e`, in any program. All that the compiler
makes for the operation itself, with or without metadata, is the rest.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import explorer as ex

KEY = jax.random.key(0)
V = jnp.linspace(-1.0, 1.0, 4096)
M = jnp.reshape(jnp.linspace(0.1, 1.0, 48 * 48), (48, 48)) + 4 * jnp.eye(48)
IMAGE = jnp.ones((1, 16, 16, 3))
INDICES = jnp.asarray(np.arange(64) * 7 % 4096)


def window(x, init, op, size, strides=None):
    return lax.reduce_window(x, init, op, (size,), strides or (1,), "SAME")


OPERATIONS = {
    "cumsum": (jnp.cumsum, V),
    "cumprod": (jnp.cumprod, V),
    "cummax": (lax.cummax, V),
    "cummin": (lax.cummin, V),
    "cumlogsumexp": (lax.cumlogsumexp, V),
    "cumsum of rows": (lambda a: jnp.cumsum(a, axis=1), M),
    "cumsum reversed": (lambda a: lax.cumsum(a, reverse=True), V),
    "sort": (jnp.sort, V),
    "argsort": (lambda a: jnp.argsort(a).astype(jnp.float32), V),
    "top_k": (lambda a: lax.top_k(a, 64)[0], V),
    "median": (jnp.median, V),
    "quantile": (lambda a: jnp.quantile(a, 0.3), V),
    "searchsorted": (lambda a: jnp.searchsorted(a, a).astype(jnp.float32), V),
    "cholesky": (jnp.linalg.cholesky, M),
    "qr": (lambda a: jnp.linalg.qr(a)[1], M),
    "svd": (lambda a: jnp.linalg.svd(a, compute_uv=False), M),
    "eigh": (lambda a: jnp.linalg.eigh(a)[0], M),
    "inverse": (jnp.linalg.inv, M),
    "solve": (lambda a: jnp.linalg.solve(a, a), M),
    "triangular solve": (lambda a: jax.scipy.linalg.solve_triangular(a, a, lower=True), M),
    "lu": (lambda a: lax.linalg.lu(a)[0], M),
    "determinant": (jnp.linalg.det, M),
    "expm": (jax.scipy.linalg.expm, M),
    "matrix power": (lambda a: jnp.linalg.matrix_power(a, 5), M),
    "uniform": (lambda a: jax.random.uniform(KEY, a.shape), V),
    "normal": (lambda a: jax.random.normal(KEY, a.shape), V),
    "permutation": (lambda a: jax.random.permutation(KEY, a), V),
    "categorical": (lambda a: jax.random.categorical(KEY, a, shape=(32,)).astype(jnp.float32), V),
    "fft": (lambda a: jnp.fft.fft(a).real, V),
    "rfft": (lambda a: jnp.abs(jnp.fft.rfft(a)), V),
    "irfft": (lambda a: jnp.fft.irfft(a + 0j), V),
    "convolution": (lambda a: lax.conv(jnp.moveaxis(a, 3, 1), jnp.ones((4, 3, 3, 3)), (1, 1), "SAME"), IMAGE),
    "convolve": (lambda a: jnp.convolve(a, a[:32]), V),
    "average pool": (lambda a: lax.reduce_window(a, 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), IMAGE),
    "max pool": (lambda a: lax.reduce_window(a, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), IMAGE),
    "window of sums": (lambda a: window(a, 0.0, lax.add, 33), V),
    "window of maxima": (lambda a: window(a, -jnp.inf, lax.max, 9), V),
    "gather": (lambda a: a[INDICES], V),
    "take along axis": (lambda a: jnp.take_along_axis(a, jnp.argmax(a, 1, keepdims=True), 1), M),
    "scatter": (lambda a: a.at[INDICES].set(2.5), V),
    "scatter-add": (lambda a: a.at[INDICES].add(1.5), V),
    "segment sum": (lambda a: jax.ops.segment_sum(a[:64], INDICES % 8, 8), V),
    "bincount": (lambda a: jnp.bincount(jnp.abs(a * 8).astype(int), length=9).astype(jnp.float32), V),
    "histogram": (lambda a: jnp.histogram(a, 8)[0], V),
    "sum": (jnp.sum, V),
    "sum of columns": (lambda a: a.sum(0), M),
    "mean": (jnp.mean, V),
    "variance": (lambda a: a.var(1), M),
    "maximum": (jnp.max, V),
    "argmax": (lambda a: jnp.argmax(a, 1).astype(jnp.float32), M),
    "product": (jnp.prod, V),
    "logsumexp": (jax.nn.logsumexp, V),
    "softmax": (lambda a: jax.nn.softmax(a, 1), M),
    "norm": (jnp.linalg.norm, M),
    "matmul": (lambda a: a @ a, M),
    "einsum": (lambda a: jnp.einsum("ij,kj->ik", a, a), M),
    "transposed product": (lambda a: (a @ a).T, M),
    "dynamic slice": (lambda a: lax.dynamic_slice(a, (jnp.argmax(a[:4]),), (512,)), V),
    "roll": (lambda a: jnp.roll(a, 5), V),
    "interp": (lambda a: jnp.interp(a, V, a), V),
    "polyval": (lambda a: jnp.polyval(a[:6], a), V),
    "erf_inv": (lambda a: lax.erf_inv(a), V),
    "digamma": (lambda a: lax.digamma(a + 3), V),
    "scan": (lambda a: lax.scan(lambda c, x: (c * 0.5 + x, c), 0.0, a[:64])[1], V),
    "associative scan": (lambda a: lax.associative_scan(jnp.add, a[:256]), V),
}


QUICK = ["cumsum", "sort", "top_k", "qr", "fft", "window of sums", "scatter-add", "argmax", "norm"]
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in OPERATIONS if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *_SLOW])
def test_what_an_operation_costs_is_on_its_own_line(name):
    op, argument = OPERATIONS[name]

    def f(a):
        e = op(a)
        return e * 2 + 1

    capture = ex.explore(f, argument)
    _ = capture.passes
    elements = math.prod(jax.eval_shape(op, argument).shape)
    reads = capture.file, capture.line + 2
    rows = {(row.file, row.line): row for row in capture.lines()}
    assert reads not in rows or rows[reads].flops <= 2 * elements, capture.lines()
    own = [row for place, row in rows.items() if place != reads and row.file]
    assert any(row.flops > 0 or row.bytes > 0 for row in own), capture.lines()
