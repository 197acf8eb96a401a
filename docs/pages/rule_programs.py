"""Programs for the rules whose cures the corpus doesn't hold: the bad one and the good one."""

_MESH = """
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

def array(mesh, shape, *spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, P(*spec)))
"""

PROGRAMS = {
    "nan-value": (
        """
def entropy(p):
    return -jnp.sum(p * jnp.log(p))

ex.lint(entropy, jnp.array([0.0, 1.0]))
""",
        """
def entropy(p):
    return jnp.sum(jax.scipy.special.entr(p))

ex.lint(entropy, jnp.array([0.0, 1.0]))
""",
    ),
    "zero-gradient": (
        """
def loss(w, x):
    return jnp.sum(jnp.round(w) * x)

ex.lint(jax.grad(loss), X, X)
""",
        """
def loss(w, x):
    q = w + jax.lax.stop_gradient(jnp.round(w) - w)
    return jnp.sum(q * x)

ex.lint(jax.grad(loss), X, X)
""",
    ),
    "integer-wrap": (
        """
def difference(a, b):
    return a - b

ex.lint(difference, jnp.uint8(10), jnp.uint8(20))
""",
        """
def difference(a, b):
    return a.astype(jnp.int16) - b.astype(jnp.int16)

ex.lint(difference, jnp.uint8(10), jnp.uint8(20))
""",
    ),
    "accidental-broadcast": (
        """
def loss(w, x, y):
    return jnp.mean((x @ w - y) ** 2)

ex.lint(loss, jnp.ones((3, 1)), jnp.ones((8, 3)), jnp.ones(8))
""",
        """
def loss(w, x, y):
    return jnp.mean(((x @ w).squeeze(-1) - y) ** 2)

ex.lint(loss, jnp.ones((3, 1)), jnp.ones((8, 3)), jnp.ones(8))
""",
    ),
    "nan-comparison": (
        """
def clean(x):
    return jnp.where(x == jnp.nan, 0.0, x)

ex.lint(clean, X)
""",
        """
def clean(x):
    return jnp.where(jnp.isnan(x), 0.0, x)

ex.lint(clean, X)
""",
    ),
    "promotion": (
        """
import numpy as np

def scores(q, k):
    return q @ k.T / np.sqrt(64)

ex.lint(scores, jnp.ones((4, 64), jnp.bfloat16), jnp.ones((4, 64), jnp.bfloat16))
""",
        """
import math

def scores(q, k):
    return q @ k.T / math.sqrt(64)

ex.lint(scores, jnp.ones((4, 64), jnp.bfloat16), jnp.ones((4, 64), jnp.bfloat16))
""",
    ),
    "missing-donation": (
        """
@jax.jit
def step(w, x):
    return w - 0.1 * x

ex.lint(step, jnp.ones((512, 1024)), jnp.ones(1024))
""",
        """
def step(w, x):
    return w - 0.1 * x

step = jax.jit(step, donate_argnames="w")
ex.lint(step, jnp.ones((512, 1024)), jnp.ones(1024))
""",
    ),
    "nan-gradient": (
        """
def f(x):
    return jnp.where(x > 0, jnp.log(x), 0.0).sum()

ex.lint(jax.grad(f), X)
""",
        """
def f(x):
    safe = jnp.where(x > 0, x, 1.0)
    return jnp.where(x > 0, jnp.log(safe), 0.0).sum()

ex.lint(jax.grad(f), X)
""",
    ),
    "stays-eager": (
        """
def f(x):
    print("called")
    return jnp.tanh(x) * 2

with ex.auto_compile(threshold=2, seconds=0.0, background=False):
    for _ in range(8):
        f(X)
ex.lint(f, X)
""",
        """
def f(x):
    return jnp.tanh(x) * 2

with ex.auto_compile(threshold=2, seconds=0.0, background=False):
    for _ in range(8):
        f(X)
ex.lint(f, X)
""",
    ),
    "gathered-operand": (
        _MESH
        + """
def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
x = array(mesh, (4096, 512), "data")
up, down = array(mesh, (512, 4096), None, "model"), array(mesh, (4096, 512), None, "model")
ex.lint(mlp, x, up, down)
""",
        _MESH
        + """
def mlp(x, up, down):
    return jax.nn.relu(x @ up) @ down

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
x = array(mesh, (4096, 512), "data")
up, down = array(mesh, (512, 4096), None, "model"), array(mesh, (4096, 512), "model")
ex.lint(mlp, x, up, down)
""",
    ),
    "replicated-output": (
        _MESH
        + """
def flat(x):
    return jnp.sin(x).T.reshape(-1)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(flat, array(mesh, (1024, 512), "data"))
""",
        _MESH
        + """
def flat(x):
    return jnp.sin(x).reshape(-1)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(flat, array(mesh, (1024, 512), "data"))
""",
    ),
    "replicated-argument": (
        _MESH
        + """
def loss(x, w):
    x = jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P("data")))
    return ((x @ w) ** 2).sum()

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(loss, array(mesh, (4096, 512)), array(mesh, (512, 64)))
""",
        _MESH
        + """
def loss(x, w):
    return ((x @ w) ** 2).sum()

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(loss, array(mesh, (4096, 512), "data"), array(mesh, (512, 64)))
""",
    ),
    "idle-axis": (
        _MESH
        + """
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).sum())(w)

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
ex.lint(step, array(mesh, (512, 1024)), array(mesh, (2048, 512), "data"))
""",
        _MESH
        + """
def step(w, x):
    return w - 0.1 * jax.grad(lambda w: ((x @ w) ** 2).sum())(w)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(step, array(mesh, (512, 1024)), array(mesh, (2048, 512), "data"))
""",
    ),
    "replicated-intermediate": (
        _MESH
        + """
def scaled(x, table):
    order = jnp.sort(table)
    return x * order.reshape(x.shape)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(scaled, array(mesh, (1024, 512), "data"), array(mesh, (1024 * 512,)))
""",
        _MESH
        + """
def scaled(x, order):
    return x * order.reshape(x.shape)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(scaled, array(mesh, (1024, 512), "data"), array(mesh, (1024 * 512,), "data"))
""",
    ),
    "sum-in-loop": (
        _MESH
        + """
def covariance(batches):
    def local(batches):
        def add(total, x):
            return total + jax.lax.psum(x.T @ x, "data"), None
        return jax.lax.scan(add, jnp.zeros((768, 768)), batches)[0]
    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "data"), out_specs=P(), check_vma=False)(batches)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(covariance, array(mesh, (4, 64, 768), None, "data"))
""",
        _MESH
        + """
def covariance(batches):
    def local(batches):
        total = jax.lax.scan(lambda total, x: (total + x.T @ x, None), jnp.zeros((768, 768)), batches)[0]
        return jax.lax.psum(total, "data")
    return jax.shard_map(local, mesh=mesh, in_specs=P(None, "data"), out_specs=P(), check_vma=False)(batches)

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(covariance, array(mesh, (4, 64, 768), None, "data"))
""",
    ),
    "resharding-back": (
        _MESH
        + """
def f(x):
    y = jax.lax.with_sharding_constraint(jnp.sin(x), NamedSharding(mesh, P(None, "data")))
    return jax.lax.with_sharding_constraint(jnp.cos(y), NamedSharding(mesh, P("data", None)))

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(f, array(mesh, (1024, 512), "data"))
""",
        _MESH
        + """
def f(x):
    return jnp.cos(jnp.sin(x))

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
ex.lint(f, array(mesh, (1024, 512), "data"))
""",
    ),
}
