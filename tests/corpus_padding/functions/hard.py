"""What a rule of padding may overlook: empty arrays, dtypes without infinities, loops inside primitives, callbacks."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.corpus_padding.functions.table import table

_EMPTY = """
x[1:].sum() : f[s]
x[1:].mean() : f[s]
x[1:].prod() : f[s]
jnp.diff(x).sum() : f[s]
jnp.diff(x) : f[s]
x[1:].std() : f[s]
(x[1:] > 0).all() : f[s]
x[2:].sum() : f[s]
jnp.sort(x[1:]) : f[s]
jnp.cumsum(x[1:]) : f[s]
nn.softmax(x[1:]) : f[s]
x[1:] @ x[:-1] : f[s]
x[:, 1:] @ y[1:] : f[b,s] f[s,2]
jnp.concatenate([x[1:], x[:1]]) : f[s]
jnp.concatenate([x[1:], x])[0] : f[s]
lax.scan(lambda c, v: (c + v, c), 0.0, x[1:]) : f[s]
lax.fori_loop(1, x.shape[0], lambda i, c: c * x[i] + x[i - 1], 1.0) : f[s]
lax.fori_loop(0, x.shape[0] - 1, lambda i, c: c.at[i + 1].add(c[i]), x) : f[s]
x.at[1:].add(1.0) : f[s]
x.at[1:].set(x[:-1]) : f[s]
jnp.max(x[1:], initial=-5.0) : f[s]
jnp.pad(x[1:], (1, 0)) : f[s]
jnp.repeat(x[1:], 2).sum() : f[s]
x[1:, None] * x[None, 1:] : f[s]
x[:, 1:].reshape(-1).sum() : f[b,s]
x[:, 1:].reshape(-1) : f[b,s]
x[: x.shape[0] // 2].sum() : f[s]
x[: x.shape[0] // 2] : f[s]
x[x.shape[0] // 2 :] : f[s]
x[x.shape[0] // 2 :].mean() : f[s]
x[: -(-x.shape[0] // 2)] : f[s]
x[::2].sum() + x[1::2].sum() : f[s]
x[::-2] : f[s]
x[-1:0:-1] : f[s]
x[::3][::-1] : f[s]
x[1:][::-1] : f[s]
x[1:][::2].sum() : f[s]
"""
_SMALL_TYPES = """
x.max(1) : f8[b,s]
x.min(0) : f8[s,b]
x.argmax(1) : f8[b,s]
x.sum(1) : f8[b,s]
jnp.sort(x) : f8[s]
jnp.argsort(x) : f8[s]
lax.cummax(x, 0, reverse=True) : f8[s]
nn.softmax(x.astype(jnp.float32)) : f8[s]
x.max(1) : f8wide[b,s]
x.argmin(1) : f8wide[b,s]
x.max() : f8uz[s]
x.argmax() : f8uz[s]
lax.reduce_window(x, jnp.asarray(-448, x.dtype), lax.max, (3,), (1,), 'SAME') : f8[s]
x.astype(jnp.int32).max() : i4[s]
lax.reduce_max(x, (0,)) : i4[s]
lax.argmin(x, 0, jnp.int32) : u4[s]
jnp.sum(x, dtype=jnp.int32) : u4[s]
lax.top_k(x, 2) : f8[b,s] : s>=2
x.max(0) : u64[s,b]
x.min(0) : u64[s,b]
jnp.sort(x) : u64[s]
jnp.bitwise_and.reduce(x) : u64[s]
jnp.bitwise_and.reduce(x) : u8[s]
jnp.bitwise_or.reduce(x) : i8[s]
jnp.bitwise_xor.reduce(x) : i8[s]
jnp.logical_and.reduce(x) : m[s]
jnp.logical_xor.reduce(x) : m[s]
jnp.cumsum(x) : u8[s]
lax.cumprod(x, 0, reverse=True) : i8[s]
lax.cummin(x, 0, reverse=True) : u8[s]
lax.cummax(x.astype(jnp.int32), 0, reverse=True) : m[s]
jnp.sort(x) : cwild[s]
jnp.sort(x) : c[b,s]
jnp.argsort(x) : cwild[s]
jnp.max(x) : c[s]
jnp.min(x, 1) : c[b,s]
jnp.prod(x, 1) : cwild[b,s]
jnp.sum(x.imag) : cwild[s]
jnp.cumsum(x) : c[s]
lax.cumprod(x, 0, reverse=True) : c[s]
jnp.any(x) : cwild[s]
jnp.isnan(x).sum() : cwild[s]
x.mean() : bf16[s]
x.var(1) : bf16[b,s]
nn.softmax(x) : bf16[b,s]
nn.logsumexp(x) : f16[s]
jnp.max(x) : bf16[s]
jnp.sort(x) : bf16[s]
x @ y : f16[b,s] f16[s]
jnp.arange(x.shape[0], dtype=jnp.int8) : f[s]
jnp.arange(0, x.shape[0], 2) : f[s]
jnp.arange(x.shape[0], 0, -1) : f[s]
jnp.arange(1, x.shape[0] + 1) * x : f[s]
jnp.arange(x.shape[0], dtype=float) / x.shape[0] : f[s]
"""
_ITERATIVE = """
special.gammainc(x, y) : positive[s] positive[s]
special.gammaincc(x, y) : positive[s] positive[s]
special.betainc(x, y, jnp.tanh(z)) : positive[s] positive[s] positive[s]
special.hyp1f1(x, y, z) : positive[s] positive[s] positive[s]
special.hyp2f1(x, y, z, w * 0.5) : positive[s] positive[s] positive[s] unit[s]
special.expn(2, x) : positive[s]
special.expi(x) : positive[s]
special.bessel_jn(x, v=2) : f[s]
special.sici(x) : f[s]
special.fresnel(x) : f[s]
special.spence(x) : positive[s]
special.dawsn(x) : f[s]
special.owens_t(x, y) : f[s] f[s]
special.boxcox(x, y) : positive[s] f[s]
special.factorial(x) : positive[s]
special.comb(x, y) : positive[s] positive[s]
special.poch(x, y) : positive[s] positive[s]
special.multigammaln(x + 3, 2) : positive[s]
special.gammasgn(x) : f[s]
random.gamma(x, y) : key[] positive[s]
random.poisson(x, y) : key[] positive[s]
random.binomial(x, 5.0, nn.sigmoid(y)) : key[] f[s]
random.rayleigh(x, y) : key[] positive[s]
random.geometric(x, nn.sigmoid(y)) : key[] f[s]
random.ball(x, 2, shape=(y.shape[0],)) : key[] f[s]
random.choice(x, 7, (y.shape[0],), p=jnp.ones(7) / 7) : key[] f[s]
random.choice(x, y, (2,), replace=False) : key[] f[s] : s>=2
jnp.linalg.eigvals(x) : f[b,3,3]
jnp.linalg.eig(x)[0] : c[b,2,2]
jnp.linalg.svd(x) : f[b,3,2]
jnp.linalg.eigh(x + x.mT)[0] : f[b,3,3]
jax.scipy.linalg.schur(x)[0] : f[3,3]
jax.scipy.linalg.expm(x * 0.1) : f[b,2,2]
jax.scipy.linalg.sqrtm(x @ x.T + jnp.eye(3)) : f[3,3]
jnp.linalg.matrix_rank(x) : f[b,3,2]
jnp.linalg.cond(x) : f[b,2,2]
lax.linalg.tridiagonal_solve(x, y, x, z) : f[b,4] positive[b,4] f[b,4,1]
lax.linalg.lu(x) : f[b,3,3]
lax.linalg.householder_product(x, y) : f[b,3,2] f[b,2]
newton_each(x) : positive[s]
collatz(x) : below<5[s]
until_all(x) : f[b,s]
bisect(x) : positive[b,s]
nested_loops(x) : f[b,s]
"""
_RANDOM_KEYS = """
random.normal(x, (y.shape[0],)) : rbg[] f[s]
random.uniform(x, (y.shape[0], 3)) : rbg[] f[s]
random.bits(x, (y.shape[0],), 'uint8') : key[] f[s]
random.bits(x, (y.shape[0], 2), 'uint16') : key[] f[s]
random.bits(x, (y.shape[0],), 'uint64') : key[] f[s]
random.normal(x, (y.shape[0],), jnp.bfloat16) : key[] f[s]
random.normal(x, (3, y.shape[0])) : key[] f[s]
random.normal(x, (y.shape[0], z.shape[0])) : key[] f[b] f[s]
jax.vmap(random.normal)(random.split(x, y.shape[0])) : key[] f[s]
jax.vmap(lambda k: random.split(k, 3))(x) : key[s]
jax.vmap(lambda k: random.normal(k, (y.shape[0],)))(x) : key[3] f[s]
jax.vmap(lambda k: random.normal(k, (y.shape[0],)))(x) : key[b] f[s]
jax.vmap(random.fold_in)(x, y) : key[s] i[s]
random.split(random.split(x, y.shape[0])[0]) : key[] f[s]
lax.scan(lambda k, v: (random.split(k)[0], v + random.normal(k)), x, y) : key[] f[s]
lax.scan(lambda k, v: (random.fold_in(k, 3), random.normal(k, v.shape)), x, y) : key[] f[4,s]
random.key_data(jnp.where(y > 0, x, x[::-1])) : key[s] f[s]
x[::-1] : key[s]
x[y] : key[s] below<s[b]
jnp.concatenate([x, x]) : key[s]
"""
_LARGE = """
jnp.cumsum(x) : f[s] : s>=1 s<=300
jnp.cumsum(x, 0) : f[s,2] : s<=150
lax.cumsum(x, 0, reverse=True) : f[s] : s<=300
lax.cummax(x, 0) : f[s] : s<=200
lax.cumlogsumexp(x, 0) : f[s] : s<=200
lax.cumprod(x, 0) : unit[s] : s<=130
jnp.sort(x) : wild[s] : s<=150
x.sum() : f[s] : s<=300
x @ y : f[s,s] f[s,3] : s<=70
x @ x.T : f[b,s] : s<=200
jnp.einsum('bs,bt->st', x, y) : f[b,s] f[b,t] : b<=40 s<=30 t<=30
lax.top_k(x, 5) : f[s] : s>=5 s<=200
x.reshape(-1).argmax() : f[b,s] : b<=20 s<=20
lax.reduce_window(x, 0.0, lax.add, (7,), (1,), ((6, 0),)) : f[s] : s<=100
jnp.fft.fft(x) : f[b,64] : b<=20
x.at[y].add(1.0) : f[s] below<s[n] : s<=60 n<=100
jnp.searchsorted(x, y) : sorted[50] f[s] : s<=90
jnp.bincount(x, length=9) : i[s] : s<=200
random.normal(x, (y.shape[0], 3)) : key[] f[s] : s<=200
jnp.mean(x) : bf16[s] : s<=200
"""
_OUTSIDE = """
jax.pure_callback(np.sin, x, x) : f[s]
jax.pure_callback(lambda v: np.float64(v.sum()), jax.ShapeDtypeStruct((), x.dtype), x) : f[s]
jax.pure_callback(np.sin, jax.ShapeDtypeStruct((), x.dtype), x.sum()) : f[s]
jax.vmap(lambda v: jax.pure_callback(np.sin, v, v, vmap_method='broadcast_all'))(x) : f[s]
custom_batching(x) : f[b,s]
x.at[y].apply(jnp.sin) : f[s] below<s[b]
x.at[y].divide(2.0) : f[s] below<s[b]
x.at[y].power(2) : f[s] below<s[b]
x.at[y].subtract(z) : f[s] below<s[b] f[b]
lax.reduce_window(x, (1.0, 2.0)[0], lax.mul, (2,), (1,), 'VALID') : f[s] : s>=2
lax.reduce_window(x, 0, lax.bitwise_or, (2,), (1,), 'SAME') : i[s]
lax.platform_dependent(x, cpu=jnp.sin, default=jnp.cos) : f[s]
x, x, x.shape[0], 3.0 : f[s]
(x.sum(), None, {'a': x, 'b': (y,)}) : f[s] f[b]
jnp.zeros((2, 3)) + 0 * x.shape[0] : f[s]
jnp.float64(x.shape[0] * x.shape[1] + 2 * x.shape[0]) : f[b,s]
jnp.asarray(x.shape[0] // 2) + x.shape[0] % 3 : f[s]
x * (1 / x.shape[0]) : f[s]
x * x.shape[0] ** -0.5 : f[s]
jnp.full((x.shape[0],), x.shape[0], jnp.uint8) : f[s]
jnp.int8(x.shape[0]) * 100 : f[s]
x[x.shape[0] % 2 :] : f[s]
x[: x.shape[0] - x.shape[0] % 2].reshape(-1, 2).sum(1) : f[s]
x[: min(x.shape[0], 3)] : f[s]
jnp.where(jnp.arange(6) < x.shape[0], 1.0, jnp.nan) : f[s]
jnp.linspace(0.0, 1.0, 5) * x.shape[0] : f[s]
lax.dynamic_slice(x, (0, 0), (y.shape[0], 2)) : f[4,2] f[b]
lax.dynamic_slice(x, (y.argmax(),), (y.shape[0],)) : f[8] f[s]
lax.dynamic_slice(x, (jnp.int32(9),), (x.shape[0] - 1,)) : f[s]
lax.dynamic_update_slice(x, x[1:], (0,)) : f[s]
lax.dynamic_update_slice(x, x[:1], (jnp.int32(7),)) : f[s]
lax.dynamic_update_slice(x, y, (0,)) : f[n] f[b] : n>=3
"""


def newton_each(x):
    """A square root each, lane by lane until it is found."""

    def root(v):
        return lax.while_loop(lambda r: jnp.abs(r * r - v) > 1e-12 * v, lambda r: 0.5 * (r + v / r), v)

    return jax.vmap(root)(x)


def collatz(x):
    """Steps until 1, of each number."""

    def steps(n):
        def step(state):
            return jnp.where(state[0] % 2 == 0, state[0] // 2, 3 * state[0] + 1), state[1] + 1

        return lax.while_loop(lambda state: state[0] != 1, step, (n + 1, 0))[1]

    return jax.vmap(steps)(x)


def until_all(x):
    return lax.while_loop(lambda v: (jnp.abs(v).max(1) > 0.1).any(), lambda v: v * 0.7, x)


def bisect(x):
    def step(ends, _):
        middle = ends.mean(0)
        return jnp.where(middle**3 < x, jnp.stack([middle, ends[1]]), jnp.stack([ends[0], middle])), None

    return lax.scan(step, jnp.stack([jnp.zeros_like(x), x + 1]), None, length=60)[0]


def nested_loops(x):
    """A scan over a padded axis, with a loop in it whose length its row decides, over another padded axis."""

    def row(total, values):
        shrunk = lax.while_loop(lambda v: v @ v > 0.5, lambda v: v * 0.8, values)
        return total + lax.fori_loop(0, values.shape[0], lambda i, c: c + shrunk[i], 0.0), shrunk.max()

    return lax.scan(row, 0.0, x)


@jax.custom_batching.custom_vmap
def _doubled(x: Any) -> Any:
    return x * 2


@_doubled.def_vmap
def _(_, __, x):
    return x * 2, True


def custom_batching(x):
    return jax.vmap(_doubled)(x)


CASES = [
    *table("empty arrays", _EMPTY),
    *table("small types", _SMALL_TYPES),
    *table(
        "loops in primitives",
        _ITERATIVE,
        **{f.__name__: f for f in (newton_each, collatz, until_all, bisect, nested_loops)},
    ),
    *table("keys", _RANDOM_KEYS),
    *table("larger sizes", _LARGE),
    *table(
        "outside",
        _OUTSIDE,
        custom_batching=custom_batching,
        np=np,
    ),
]
