"""Windows, linear algebra, random numbers and special functions."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from tests.corpus_padding.functions.table import table

_WINDOWS = """
lax.reduce_window(x, 0.0, lax.add, (2,), (1,), 'VALID') : f[s] : s>=2
lax.reduce_window(x, -jnp.inf, lax.max, (1, 2), (1, 2), 'VALID') : f[b,s] : s>=2
lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), 'SAME') : f[s]
lax.reduce_window(x, 0.0, lax.add, (3,), (2,), 'SAME') : f[s]
lax.reduce_window(x, jnp.inf, lax.min, (2, 1), (1, 1), ((1, 1), (0, 0))) : f[s,b]
lax.conv(x, y, (1, 1), 'VALID') : f[b,2,4,4] f[3,2,2,2]
lax.conv(x, y, (1, 1), 'SAME') : f[b,2,s,4] f[3,2,3,3]
lax.conv(x, y, (2, 2), 'SAME') : f[1,2,s,4] f[3,2,3,3]
lax.conv(x, y, (2, 2), 'VALID') : f[1,2,s,4] f[3,2,3,3] : s>=3
lax.conv(x, y, (1, 1), 'VALID') : f[1,s,4,4] f[2,s,3,3]
lax.conv(x, y, (1, 1), 'VALID') : f[1,2,4,4] f[s,2,3,3]
lax.conv_general_dilated(x, y, (1,), ((1, 1),)) : f[b,2,s] f[3,2,3]
lax.conv_general_dilated(x, y, (1,), ((2, 0),), rhs_dilation=(2,)) : f[b,2,s] f[3,2,2]
lax.conv_general_dilated(x, y, (1,), ((2, 2),), lhs_dilation=(2,)) : f[b,2,s] f[3,2,3]
lax.conv_general_dilated(x, y, (2,), ((1, 1),)) : f[b,2,s] f[3,2,3]
lax.conv_general_dilated(x, y, (1,), ((1, 1),), feature_group_count=2) : f[b,2,s] f[4,1,3]
lax.conv_general_dilated(x, y, (1,), ((0, 0),)) : f[b,2,5] f[3,2,s] : s<=4
lax.conv_transpose(x, y, (2,), 'VALID', dimension_numbers=('NWC', 'WIO', 'NWC')) : f[b,s,2] f[3,2,3]
lax.conv_transpose(x, y, (2,), 'SAME', dimension_numbers=('NWC', 'WIO', 'NWC')) : f[b,4,2] f[3,2,3]
lax.conv_general_dilated_patches(x, (2,), (1,), 'VALID') : f[b,2,s] : s>=2
nn_avg(x) : f[b,s,s,2] : s>=2 s<=4
nn_max(x) : f[b,4,4,2]
jnp.convolve(x, jnp.array([1.0, 2.0, 1.0]), mode='valid') : f[s] : s>=3
jnp.convolve(x, y, mode='same') : f[6] f[3]
jax.image.resize(x, (x.shape[0], 4, 4), 'bilinear') : f[b,2,2]
jax.image.resize(x, (3, x.shape[1]), 'nearest') : f[2,s]
jax.scipy.signal.convolve(x, y) : f[4] f[3]
"""
_LINEAR = """
jnp.linalg.norm(x) : f[b,s]
jnp.linalg.norm(x, axis=0) : f[s,b]
jnp.linalg.norm(x, 1, axis=1) : f[b,s]
jnp.linalg.norm(x, jnp.inf, axis=1) : f[b,s]
jnp.linalg.norm(x, axis=(1, 2)) : f[b,s,2]
jnp.linalg.inv(x @ x.mT + jnp.eye(3)) : f[b,3,3]
jnp.linalg.solve(x @ x.mT + jnp.eye(3), y) : f[b,3,3] f[b,3,1]
jnp.linalg.solve(x @ x.T + jnp.eye(3), y) : f[3,3] f[3,b]
jnp.linalg.cholesky(x @ x.mT + jnp.eye(3)) : f[b,3,3]
jnp.linalg.cholesky(x @ x.T + jnp.eye(x.shape[0])) : f[s,s]
jnp.linalg.det(x) : f[b,3,3]
jnp.linalg.slogdet(x) : f[b,3,3]
jnp.linalg.qr(x)[1] : f[b,3,2]
jnp.linalg.svd(x, compute_uv=False) : f[b,3,2]
jnp.linalg.eigvalsh(x + x.mT) : f[b,3,3]
jnp.linalg.inv(x @ x.T + jnp.eye(x.shape[0])) : f[s,s]
jnp.linalg.matrix_power(x, 3) : f[s,s]
jnp.linalg.matrix_power(x, 2) : f[b,3,3]
jnp.linalg.pinv(x) : f[b,3,2]
jnp.linalg.lstsq(x, y)[0] : f[4,2] f[4,b]
lax.linalg.triangular_solve(x, y, left_side=True) : positive[b,3,3] f[b,3,2]
jax.scipy.linalg.solve_triangular(x, y, lower=True) : positive[3,3] f[3,b]
jax.scipy.linalg.cho_solve((x, True), y) : positive[3,3] f[3,b]
jax.scipy.linalg.expm(x * 0.1) : f[3,3]
lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,)))) : f[b,s,2] f[b,s,3]
lax.dot(x, y) : f[s] f[s]
lax.batch_matmul(x, y) : f[b,2,s] f[b,s,2]
lax.ragged_dot(x, y, z) : f[4,2] f[2,2,3] i[2]
jnp.einsum('bik,bkj,bjl->bil', x, y, z) : f[b,2,s] f[b,s,t] f[b,t,2]
jnp.einsum('ij,kj->ik', x, x) : f[b,s]
jnp.einsum('ii->i', x) : f[s,s]
jnp.einsum('ijk->kij', x) : f[b,s,2]
jnp.einsum('ij,jk,kl->il', x, y, z) : f[b,s] f[s,t] f[t,2]
jnp.einsum('i,j,k->ijk', x, y, z) : f[b] f[s] f[t]
jnp.tensordot(x, y, ((0, 1), (0, 1))) : f[b,s,2] f[b,s,3]
x @ x.T : f[b,s]
x.T @ x : f[b,s]
(x @ y) @ z : f[b,s] f[s,t] f[t,b]
x @ y @ x.T : f[b,s] f[s,s]
jnp.matmul(x, y, preferred_element_type=jnp.float64) : i[b,s] i[s,2]
x @ y : i8[b,s] i8[s,2]
x @ y : c[b,s] c[s,2]
x @ y : bf16[b,s] bf16[s,2]
x @ y : f16[b,s] f16[s,2]
x @ y : f32[b,s] f32[s,2]
jnp.fft.fft(x) : f[b,4]
jnp.fft.fft(x) : f[s]
jnp.fft.rfft(x, axis=0) : f[4,s]
jnp.fft.irfft(x) : c[b,3]
jnp.fft.fft2(x) : f[b,2,4]
jnp.fft.fftshift(x, axes=1) : f[b,4]
jnp.fft.fftshift(x) : f[s]
"""
_RANDOM = """
random.normal(x, (y.shape[0],)) : key[] f[b]
random.normal(x, y.shape) : key[] f[b,3]
random.normal(x, y.shape) : key[] f[3,s]
random.uniform(x, (y.shape[0], 4)) * y[:, None] : key[] f[b]
random.bernoulli(x, 0.5, y.shape) : key[] f[s]
random.categorical(x, y) : key[] f[b,4]
random.categorical(x, y) : key[] f[3,s]
random.randint(x, (y.shape[0],), 0, 9) : key[] f[s]
random.truncated_normal(x, -1.0, 1.0, y.shape) : key[] f[s]
random.exponential(x, y.shape) : key[] f[s]
random.gumbel(x, y.shape) : key[] f[s,2]
random.laplace(x, y.shape) : key[] f[s]
random.permutation(x, y) : key[] f[s]
random.permutation(x, 4) * y[:, None] : key[] f[s]
random.choice(x, y, (3,)) : key[] f[s]
random.choice(x, 5, (y.shape[0],)) : key[] f[s]
random.key_data(random.split(x, y.shape[0])) : key[] f[s]
jax.vmap(lambda k: random.normal(k, (2,)))(random.split(x, y.shape[0])) : key[] f[s]
jax.vmap(lambda k: random.normal(k, (2,)))(x) : key[b]
jax.vmap(lambda k, v: random.normal(k, v.shape) * v)(x, y) : key[b] f[b,s]
jax.vmap(lambda i: random.uniform(random.fold_in(random.key(1), i), (3,)))(x) : i[s]
random.fold_in(x, y.shape[0]) : key[] f[s]
jnp.where(random.bernoulli(x, 0.5, y.shape), y / 0.5, 0) : key[] f[b,6]
jnp.where(random.bernoulli(x, 0.5, y.shape), y / 0.5, 0) : key[] f[b,s]
jnp.where(random.bernoulli(x, 0.5, (y.shape[0], 1)), y, 0) : key[] f[b,s]
random.gamma(x, 2.0, (y.shape[0],)) : key[] f[b]
random.orthogonal(x, 3, (2,)) : key[]
random.poisson(x, 3.0, (y.shape[0],)) : key[] f[b]
random.multivariate_normal(x, jnp.zeros(2), jnp.eye(2), (y.shape[0],)) : key[] f[b]
"""
_SPECIAL = """
special.erf(x) : f[b,s]
special.erfinv(x) : unit[b,s]
special.expit(x) : f[b,s]
special.logit(x) : f[b,s]
special.gammaln(x) : positive[b,s]
special.digamma(x) : positive[b,s]
special.polygamma(1, x) : positive[b,s]
special.beta(x, y) : positive[b,s] positive[b,s]
special.betainc(x, y, jnp.tanh(z)) : positive[s] positive[s] positive[s]
special.gammainc(x, y) : positive[s] positive[s]
special.i0e(x) : f[b,s]
special.i1(x) : f[b,s]
special.ndtr(x) : f[b,s]
special.ndtri(x * 0.5 + 0.5) : unit[b,s]
special.log_ndtr(x) : f[b,s]
special.xlogy(x, y) : positive[b,s] positive[b,s]
special.entr(x) : f[b,s]
special.kl_div(x, y) : positive[b,s] positive[b,s]
special.zeta(x + 1, y) : positive[s] positive[s]
special.exp1(x) : positive[s]
special.logsumexp(x, 1, b=y) : f[b,s] positive[b,s]
special.logsumexp(x) : f[b,s]
jax.scipy.stats.norm.logpdf(x).sum() : f[b,s]
jax.scipy.stats.multivariate_normal.logpdf(x, jnp.zeros(2), jnp.eye(2)) : f[b,2]
lax.erf_inv(x) : unit[s]
lax.clamp(0.0, x, 1.0) : f[s]
lax.clz(x) : i[s]
lax.population_count(x) : u32[s]
lax.integer_pow(x, -3) : f[s]
lax.rsqrt(x) : positive[s]
lax.nextafter(x, y) : f[s] f[s]
lax.reduce_precision(x, 5, 10) : f[s]
lax.bitcast_convert_type(x, jnp.uint8) : f32[s]
lax.bitcast_convert_type(x, jnp.uint32) : f32[b,s]
lax.select(x, y, z) : m[b,s] f[b,s] f[b,s]
lax.select_n(x, y, z) : m[] f[b,s] f[b,s]
lax.shift_right_arithmetic(x, y) : i8[s] i8[s]
lax.mulhi(x, y) : u32[s] u32[s]
lax.complex(x, y) : f[b,s] f[b,s]
lax.stop_gradient(x) * x : f[b,s]
lax.optimization_barrier((x, y)) : f[s] f[b]
x ** 2 + 1j * x : c[s]
jnp.abs(x).sum() : c[b,s]
x.astype(jnp.int8) : f[b,s]
x.astype(bool).all(1) : ties[b,s]
(x.astype(jnp.uint8) + jnp.uint8(200)).sum() : i[s]
"""


def nn_avg(x):
    """Mean over 2×2 windows, divided by how many lie within."""
    sums = lax.reduce_window(x, 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")
    counts = lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (1, 2, 2, 1), (1, 1, 1, 1), "SAME")
    return sums / counts


def nn_max(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


CASES = [
    *table("windows", _WINDOWS, nn_avg=nn_avg, nn_max=nn_max),
    *table("linear algebra", _LINEAR),
    *table("random numbers", _RANDOM),
    *table("special functions", _SPECIAL),
]
