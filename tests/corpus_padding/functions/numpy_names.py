"""`jax.nn` whole, and of `jax.numpy` the element-wise functions, reductions and products, along either kind of axis.

Each family is listed twice where it has an axis that it reduces: `batch` leaves that axis fixed and varies another,
`reduced` varies the axis itself. The coverage table is counted from these.
"""

from __future__ import annotations

from tests.corpus_padding.cases import Case
from tests.corpus_padding.functions.table import table

_UNARY = """
abs absolute arccos:unit acos:unit arccosh:positive acosh:positive arcsin:unit asin:unit arcsinh asinh arctan atan
arctanh:unit atanh:unit around cbrt ceil conj conjugate copy cos cosh deg2rad degrees exp exp2 expm1 fabs floor frexp i0
imag:c real:c angle:c invert:m bitwise_not:i bitwise_invert:i bitwise_count:i iscomplex:c isfinite:wild isinf:wild
isnan:wild isneginf:wild isposinf:wild isreal:c log:positive log10:positive log1p:positive log2:positive logical_not:m
modf nan_to_num:wild negative positive rad2deg radians reciprocal rint round sign signbit sin sinc sinh spacing
sqrt:positive square tan tanh trunc
"""
_BINARY = """
add arctan2 atan2 bitwise_and:i bitwise_or:i bitwise_xor:i bitwise_left_shift:i bitwise_right_shift:i copysign divide
divmod equal:ties float_power:positive floor_divide fmax:wild fmin:wild fmod gcd:i greater greater_equal:ties heaviside
hypot isclose:ties lcm:i left_shift:i less less_equal:ties logaddexp logaddexp2 logical_and:m logical_or:m logical_xor:m
maximum minimum mod multiply nextafter not_equal:ties power:positive pow:positive remainder right_shift:i subtract
true_divide
"""
_MORE_ELEMENTWISE = """
jnp.clip(x, -0.5, 0.5) : f[b,s]
jnp.ldexp(x, y) : f[b,s] i[b,s]
jnp.where(x, y, z) : m[b,s] f[b,s] f[b,s]
jnp.select([x > 0, x < -1], [x, y], 3.0) : f[b,s] f[b,s]
jnp.piecewise(x, [x < 0, x >= 0], [lambda v: -v, lambda v: v * 2]) : f[b,s]
jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x) : f[b,s]
jnp.interp(x, jnp.array([-1.0, 0.0, 1.0]), jnp.array([0.0, 5.0, 1.0])) : f[b,s]
jnp.digitize(x, jnp.array([-1.0, 0.0, 1.0])) : f[b,s]
jnp.isin(x, jnp.array([1, 3])) : i[b,s]
jnp.full_like(x, 7) : f[b,s]
jnp.zeros_like(x) : f[b,s]
jnp.ones_like(x) : f[b,s]
jnp.astype(x, jnp.float32) : f[b,s]
jnp.choose(x, [y, -y], mode='clip') : below<2[b,s] f[b,s]
"""
# `X` is the axis that it reduces: fixed for the one table, a symbol for the other.
_REDUCTIONS = """
jnp.all(x, -1) : m[B,X]
jnp.any(x, -1) : m[B,X]
jnp.amax(x, -1) : wild[B,X]
jnp.amin(x, -1) : wild[B,X]
jnp.max(x, -1) : f[B,X]
jnp.min(x, -1) : f[B,X]
jnp.argmax(x, -1) : ties[B,X]
jnp.argmin(x, -1) : ties[B,X]
jnp.average(x, -1) : f[B,X]
jnp.average(x, -1, weights=y) : f[B,X] positive[B,X]
jnp.count_nonzero(x, -1) : ties[B,X]
jnp.cumprod(x, -1) : f[B,X]
jnp.cumsum(x, -1) : f[B,X]
jnp.cumulative_sum(x, axis=-1) : f[B,X]
jnp.cumulative_prod(x, axis=-1) : f[B,X]
jnp.mean(x, -1) : f[B,X]
jnp.median(x, -1) : f[B,X]
jnp.nanargmax(x, -1) : wild[B,X]
jnp.nanargmin(x, -1) : wild[B,X]
jnp.nancumprod(x, -1) : wild[B,X]
jnp.nancumsum(x, -1) : wild[B,X]
jnp.nanmax(x, -1) : wild[B,X]
jnp.nanmin(x, -1) : wild[B,X]
jnp.nanmean(x, -1) : wild[B,X]
jnp.nanmedian(x, -1) : f[B,X]
jnp.nanpercentile(x, 30, -1) : f[B,X]
jnp.nanquantile(x, 0.3, -1) : f[B,X]
jnp.nanprod(x, -1) : wild[B,X]
jnp.nanstd(x, -1) : f[B,X]
jnp.nansum(x, -1) : wild[B,X]
jnp.nanvar(x, -1) : f[B,X]
jnp.percentile(x, 30, -1) : f[B,X]
jnp.quantile(x, 0.3, -1) : f[B,X]
jnp.prod(x, -1) : f[B,X]
jnp.ptp(x, -1) : f[B,X]
jnp.std(x, -1) : f[B,X]
jnp.sum(x, -1) : f[B,X]
jnp.trapezoid(x, axis=-1) : f[B,X]
jnp.var(x, -1) : f[B,X]
jnp.linalg.norm(x, axis=-1) : f[B,X]
jnp.linalg.vector_norm(x, axis=-1) : f[B,X]
"""
_PRODUCTS = """
jnp.dot(x, y) : f[B,X] f[X,3]
jnp.matmul(x, y) : f[B,X] f[X,3]
x @ y : f[B,2,X] f[B,X,3]
jnp.einsum('bi,ij->bj', x, y) : f[B,X] f[X,3]
jnp.einsum('bi,bi->b', x, y) : f[B,X] f[B,X]
jnp.inner(x, y) : f[B,X] f[3,X]
jnp.tensordot(x, y, 1) : f[B,X] f[X,3]
jnp.matvec(x, y) : f[B,2,X] f[B,X]
jnp.vecdot(x, y) : f[B,X] f[B,X]
jnp.vecmat(x, y) : f[B,X] f[B,X,2]
jnp.cross(x, y) : f[B,3] f[B,3]
jnp.outer(x, y) : f[B] f[2]
jnp.kron(x, y) : f[B] f[2]
jnp.vdot(x, y) : f[X] f[X]
jnp.linalg.multi_dot([x, y, z]) : f[B,X] f[X,3] f[3,2]
jnp.linalg.vecdot(x, y) : f[B,X] f[B,X]
jnp.convolve(x, y) : f[X] f[3]
jnp.correlate(x, y) : f[X] f[3] : s>=3
jnp.cov(x) : f[3,X]
jnp.corrcoef(x) : f[3,X] : s>=3
jnp.trace(x, axis1=1, axis2=2) : f[B,X,X]
"""
_NN = """
nn.celu(x) : f[B,X]
nn.elu(x) : f[B,X]
nn.gelu(x) : f[B,X]
nn.gelu(x, approximate=False) : f[B,X]
nn.glu(x, 0) : f[4,X,B]
nn.glu(x, 1) : f[B,4,X]
nn.hard_sigmoid(x) : f[B,X]
nn.hard_silu(x) : f[B,X]
nn.hard_swish(x) : f[B,X]
nn.hard_tanh(x) : f[B,X]
nn.identity(x) : f[B,X]
nn.leaky_relu(x) : f[B,X]
nn.log1mexp(x) : positive[B,X]
nn.log_sigmoid(x) : f[B,X]
nn.log_softmax(x) : f[B,X]
nn.logmeanexp(x, -1) : f[B,X]
nn.logsumexp(x, -1) : f[B,X]
nn.mish(x) : f[B,X]
nn.one_hot(x, 4) : i[B,X]
nn.relu(x) : f[B,X]
nn.relu6(x) : f[B,X]
nn.selu(x) : f[B,X]
nn.sigmoid(x) : f[B,X]
nn.silu(x) : f[B,X]
nn.soft_sign(x) : f[B,X]
nn.softmax(x) : f[B,X]
nn.softmax(x, where=y) : f[B,X] m[B,X]
nn.softplus(x) : f[B,X]
nn.sparse_plus(x) : f[B,X]
nn.sparse_sigmoid(x) : f[B,X]
nn.squareplus(x) : f[B,X]
nn.standardize(x) : f[B,X]
nn.swish(x) : f[B,X]
nn.tanh(x) : f[B,X]
nn.dot_product_attention(x, y, z) : f[B,3,2,4] f[B,X,2,4] f[B,X,2,4]
nn.dot_product_attention(x, y, z, is_causal=True) : f[B,X,2,4] f[B,X,2,4] f[B,X,2,4]
nn.dot_product_attention(x, y, z, mask=w) : f[B,3,2,4] f[B,X,2,4] f[B,X,2,4] m[B,1,3,X]
nn.scaled_dot_general(x, y, (((1,), (0,)), ((), ()))) : f32[B,X] f32[X,3]
"""
# What `jax.nn` has that computes nothing of arrays, and what runs on one kind of GPU alone.
NOT_ARRAYS = {"get_scaled_dot_general_config", "scaled_matmul"}


def _along(family: str, text: str) -> list[Case]:
    batch = "\n".join(line.replace("B", "b").replace("X", "4") for line in _arguments_only(text))
    batch = "\n".join(line for line in batch.splitlines() if "b" in line.split(" : ")[1])
    reduced = "\n".join(
        line.replace("B", "3").replace("X", "s") for line in _arguments_only(text) if "X" in line.split(" : ")[1]
    )
    return [*table(f"{family}, batch axis", batch), *table(f"{family}, reduced axis", reduced)]


def _arguments_only(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _elementwise() -> list[Case]:
    lines: list[str] = []
    for text, count in ((_UNARY, 1), (_BINARY, 2)):
        for entry in text.split():
            name, _, kind = entry.partition(":")
            lines.append(f"jnp.{name}({', '.join('xy'[:count])}) : " + " ".join([f"{kind or 'f'}[b,s]"] * count))
    return table("element-wise, batch axis", "\n".join(lines) + _MORE_ELEMENTWISE)


CASES = [
    *_elementwise(),
    *_along("reductions", _REDUCTIONS),
    *_along("products", _PRODUCTS),
    *_along("jax.nn", _NN),
]
