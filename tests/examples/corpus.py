"""Functions of every kind that people compile: what the readers are held against XLA's own parsers with.

`CORPUS` maps a name to a function and its arguments; `COLLECTIVES` likewise, for four devices.
"""

from functools import partial

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax.sharding import Mesh, PartitionSpec

X = jnp.linspace(-1.0, 1.0, 8 * 16).reshape(8, 16)
V = jnp.linspace(-1.0, 1.0, 16)
SQUARE = jnp.eye(8) * 3 + 0.1
IMAGE = jnp.ones((2, 12, 12, 3))
KERNEL = jnp.ones((3, 3, 3, 4)) / 9
KEY = jax.random.key(7)


def softmax(x):
    z = jnp.exp(x - x.max(-1, keepdims=True))
    return z / z.sum(-1, keepdims=True)


def attention(q, k, v):
    return softmax(jnp.where(jnp.tri(len(q), dtype=bool), q @ k.T / 4.0, -1e9)) @ v


def layer_norm(x, gain, bias):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * gain + bias


def pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def scan(x):
    return lax.scan(lambda carry, row: (jnp.tanh(carry + row), carry.sum()), jnp.zeros(16), x)


def loops_within_loops(x):
    return lax.fori_loop(0, 5, lambda i, y: lax.fori_loop(0, i, lambda j, z: jnp.sin(z) + j, y), x)


def collatz(n):
    def step(carry):
        m, count = carry
        return jnp.where(m % 2 == 0, m // 2, 3 * m + 1), count + 1

    return lax.while_loop(lambda carry: carry[0] != 1, step, (n, 0))


def switch(i, x):
    return lax.switch(i, (jnp.sin, jnp.cos, lambda y: y * y, lambda y: -y), x)


def gather_scatter(x, i):
    return x.at[i].add(x[i[::-1]] * 2).at[0].set(0.0).at[:, i[:2]].max(1.0)


def dynamic(x, i):
    row = lax.dynamic_slice_in_dim(x, i, 2)
    return lax.dynamic_update_slice(x, row * 2, (i, 0))


def random(key):
    one, two, three = jax.random.split(key, 3)
    return jax.random.normal(one, (4,)), jax.random.bernoulli(two, 0.3, (5,)), jax.random.permutation(three, 6)


@jax.custom_vjp
def clipped(x):
    return jnp.clip(x, -0.5, 0.5)


clipped.defvjp(lambda x: (clipped(x), x), lambda x, g: (jnp.where(jnp.abs(x) < 1, g, 0),))


@jax.custom_jvp
def log1pexp(x):
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return log1pexp(x), t * jax.nn.sigmoid(x)


def network(params, x):
    for p in params:
        x = jnp.tanh(x @ p["w"] + p["b"])
    return (x * x).mean()


PARAMS = [{"w": jnp.eye(16) / 4, "b": jnp.zeros(16)} for _ in range(3)]


def adam_step(params, state, x):
    value, gradients = jax.value_and_grad(network)(params, x)
    updates, state = OPTIMIZER.update(gradients, state, params)
    return optax.apply_updates(params, updates), state, value


OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(1e-3))


@jax.jit
def inner(x):
    return jnp.sin(x) * 2


def nested(x):
    return inner(inner(x)) + jax.jit(lambda y: inner(y) + 1)(x)


def printing(x):
    jax.debug.print("sum {}", x.sum())
    return x * 2


def eight_bits(x):
    return (x.astype(jnp.int8) * jnp.int8(3)).astype(jnp.int32).sum(), x.astype(jnp.uint8) >> 1


def small_floats(x):
    return (x.astype(jnp.float8_e4m3fn).astype(jnp.bfloat16) @ jnp.ones((16, 4), jnp.bfloat16)).astype(jnp.float16)


def four_bits(x):
    return x.astype(jnp.int4).astype(jnp.int32) + 1


def complex_numbers(x):
    z = lax.complex(x, -x)
    return jnp.abs(z * jnp.conj(z) + jnp.exp(1j * x)), z.real


def bits(x):
    return lax.bitcast_convert_type(x, jnp.int32) ^ 0x5F, lax.population_count(jnp.arange(8)), lax.clz(jnp.arange(8))


def booleans(x):
    return (x > 0) & ~(x > 0.5) | (x == 0), jnp.any(x > 0), jnp.all(x < 1, axis=0)


def named(x):
    with jax.named_scope('outer "quoted" {braces}'), jax.named_scope("inner/%percent"):
        return jnp.tanh(x)


def sharded(x):
    mesh = Mesh(jax.devices()[:1], "i")
    part = PartitionSpec("i")
    return jax.shard_map(lambda y: lax.psum(jnp.sin(y), "i"), mesh=mesh, in_specs=part, out_specs=part)(x)


def unrolled(x):
    for i in range(12):
        x = jnp.tanh(x * i) @ SQUARE if i % 3 == 0 else jnp.sin(x)
    return x


CORPUS = {
    "elementwise": (lambda x: jnp.tanh(x) * 2 + jnp.exp(-x) / (1 + x**2), X),
    "elementary functions": (
        lambda x: jnp.log1p(x * x) + jnp.expm1(x) + jnp.cbrt(x) + lax.erf(x) + jnp.arctan2(x, 2),
        X,
    ),
    "special functions": (lambda x: lax.lgamma(x + 2) + lax.digamma(x + 2) + lax.bessel_i1e(x), X),
    "reductions": (lambda x: (x.sum(), x.max(0), x.min(1), x.prod(), jnp.argmax(x, 1), x.std()), X),
    "reduction of two": (lambda x: lax.reduce((x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (0,)), X),
    "softmax": (softmax, X),
    "log_softmax and its gradient": (jax.value_and_grad(lambda x: jax.nn.log_softmax(x)[:, 0].sum()), X),
    "attention": (attention, X, X, X),
    "attention, differentiated": (jax.grad(lambda q, k, v: attention(q, k, v).sum(), (0, 1, 2)), X, X, X),
    "layer norm": (layer_norm, X, V, V),
    "gelu": (jax.nn.gelu, X),
    "matrix product": (lambda x: x @ x.T @ x, X),
    "einsum": (lambda a, b: jnp.einsum("bij,bjk->bki", a, b), jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5))),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        IMAGE,
        KERNEL,
    ),
    "convolution, differentiated": (
        jax.grad(
            lambda x, k: lax.conv_general_dilated(
                x, k, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            ).sum(),
            (0, 1),
        ),
        IMAGE,
        KERNEL,
    ),
    "pooling": (pool, IMAGE),
    "pooling, differentiated": (jax.grad(lambda x: pool(x).sum()), IMAGE),
    "scan": (scan, X),
    "scan, differentiated": (jax.grad(lambda x: scan(x)[0].sum()), X),
    "associative scan": (lambda x: lax.associative_scan(jnp.add, x), X),
    "loops within loops": (loops_within_loops, X),
    "while": (collatz, 27),
    "cond": (lambda x: lax.cond(x.sum() > 0, jnp.sin, lambda y: y * 2, x), X),
    "switch": (switch, 2, X),
    "map": (lambda x: lax.map(lambda row: jnp.sort(row)[:3], x), X),
    "sort": (lambda x: (jnp.sort(x, 0), jnp.argsort(x), jnp.median(x), lax.sort((x, -x), num_keys=2)), X),
    "top_k": (lambda x: lax.top_k(x, 3), X),
    "unique": (lambda x: jnp.unique(jnp.round(x * 4), size=5), X),
    "gather and scatter": (gather_scatter, X, jnp.array([3, 1, 4, 1])),
    "segment sum": (lambda x, i: jax.ops.segment_sum(x, i, 4), X, jnp.arange(8) % 4),
    "dynamic slices": (dynamic, X, 3),
    "fft": (lambda x: (jnp.fft.rfft(x), jnp.fft.ifft2(x).real), X),
    "cholesky": (jnp.linalg.cholesky, SQUARE @ SQUARE.T),
    "qr": (jnp.linalg.qr, SQUARE),
    "eigenvalues": (jnp.linalg.eigh, SQUARE @ SQUARE.T),
    "solve": (jnp.linalg.solve, SQUARE, jnp.ones(8)),
    "triangular solve": (lambda a, b: lax.linalg.triangular_solve(a, b, lower=True), SQUARE, SQUARE),
    "random numbers": (random, KEY),
    "random bits of the hardware's kind": (lambda: jax.random.bits(jax.random.key(0, impl="rbg"), (8,)),),
    "cumulative": (lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x), lax.cummax(x)), X),
    "padding and stacking": (lambda x: jnp.concatenate([jnp.pad(x, ((1, 0), (0, 2))), jnp.ones((2, 18))]), X),
    "rolled, flipped, transposed": (lambda x: (jnp.roll(x, 3), x[::-1], x.T.reshape(4, -1), jnp.tile(x, 2)), X),
    "vmap": (jax.vmap(lambda x: x @ x + jnp.outer(x, x).sum()), X),
    "jacobian": (jax.jacfwd(jax.grad(lambda x: (jnp.sin(x) ** 2).sum())), V),
    "jvp": (lambda x, t: jax.jvp(softmax, (x,), (t,)), X, X),
    "checkpoint": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x @ x.T)).sum())), X),
    "custom vjp": (jax.grad(lambda x: clipped(x).sum()), X),
    "custom jvp": (jax.grad(lambda x: log1pexp(x).sum()), X),
    "shard_map": (sharded, X),
    "sharding constraint": (
        lambda x: lax.with_sharding_constraint(
            x * 2, jax.sharding.NamedSharding(Mesh(jax.devices()[:1], "i"), PartitionSpec("i"))
        ),
        X,
    ),
    "printing": (printing, X),
    "callback": (lambda x: jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct((8, 16), jnp.float32), x) + 1, X),
    "optimization barrier": (lambda x: lax.optimization_barrier((jnp.sin(x), x * 2)), X),
    "large constant": (lambda x: x + jnp.arange(128.0).reshape(8, 16) ** 2 + jnp.array([[1.5] * 16] * 8), X),
    "many outputs": (lambda x: tuple(x * i for i in range(24)), V),
    "many arguments": (lambda *xs: sum(xs), *([V] * 24)),
    "no arguments": (lambda: jnp.ones((3, 3)).sum(),),
    "a tree": (lambda tree: jax.tree.map(jnp.sin, tree) | {"extra": (1, [2.0])}, {"a": V, 'b"c': (V, {"d%": X})}),
    "donated": (jax.jit(lambda state, x: (state + x, x * 2), donate_argnums=0), X, X),
    "static argument": (jax.jit(lambda x, n: x**n, static_argnums=1), X, 3),
    "nested jit": (nested, X),
    "unrolled loop": (unrolled, X.T @ X @ jnp.ones((16, 8))),
    "network": (network, PARAMS, X),
    "optimizer step": (adam_step, PARAMS, OPTIMIZER.init(PARAMS), X),
    "named scopes of odd names": (named, X),
    "integers of eight bits": (eight_bits, X * 100),
    "integers of four bits": (four_bits, X * 4),
    "small floats": (small_floats, X),
    "complex numbers": (complex_numbers, X),
    "bits": (bits, X),
    "booleans": (booleans, X),
    "an empty array": (lambda x: jnp.concatenate([x, x])[:0].sum(), X),
    "a scalar": (lambda x: x, 1.0),
}


def collectives(mesh):
    """Functions over the devices of a mesh with one axis, `i`."""
    part = PartitionSpec("i")
    around = [(k, (k + 1) % mesh.size) for k in range(mesh.size)]
    shared = partial(jax.shard_map, mesh=mesh, in_specs=part, out_specs=part, check_vma=False)
    x = jnp.ones((16, 16))
    return {
        "psum": (shared(lambda y: lax.psum(jnp.sin(y), "i")), x),
        "all_gather": (shared(lambda y: lax.all_gather(y, "i").sum(0)), x),
        "ppermute": (shared(lambda y: lax.ppermute(y, "i", around)), x),
        "all_to_all": (shared(lambda y: lax.all_to_all(y, "i", 1, 0, tiled=True).T.reshape(4, 16)), x),
        "psum_scatter": (shared(lambda y: lax.psum_scatter(y, "i", scatter_dimension=1, tiled=True)), x),
        "partitioned product": (
            jax.jit(lambda y: y @ y.T, in_shardings=jax.sharding.NamedSharding(mesh, part)),
            x,
        ),
    }
