"""Cures of how functions are compiled and called: statics, new functions in loops. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

COMPILES = """
def cost():
    count = 0

    def listen(event, *_, **__):
        nonlocal count
        count += event == "/jax/core/compile/backend_compile_duration"

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        run(jax.jit)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return count
"""
CASES = (
    Case(
        "rejit-in-loop",
        "https://docs.jax.dev/en/latest/jit-compilation.html#jit-and-caching",
        "jitted = jax.jit(lambda y: jnp.exp(-y))",
        """
def f(x):
+    jitted = jax.jit(lambda y: jnp.exp(-y))
    for _ in range(4):
-        x = jax.jit(lambda y: jnp.exp(-y))(x)
+        x = jitted(x)
    return x
# ---
def run(jit):
    return f(X)
"""
        + COMPILES,
        words="once, above the loop, and call jitted",
    ),
    Case(
        "rejit-in-loop",
        "https://docs.jax.dev/en/latest/jit-compilation.html#jit-and-caching",
        "jitted = jax.jit(partial(scale, 0.5))",
        """
def scale(factor, y):
    return y * factor

def f(x):
+    jitted = jax.jit(partial(scale, 0.5))
    for _ in range(4):
-        x = jax.jit(partial(scale, 0.5))(x)
+        x = jitted(x)
    return x
# ---
def run(jit):
    return f(X)
"""
        + COMPILES,
    ),
    Case(
        "rejit-in-loop",
        "https://github.com/google-deepmind/optax/issues/1171",
        "jitted = jax.jit(jax.grad(loss))",
        """
def loss(w):
    return (w**2).sum()

def f(w):
+    jitted = jax.jit(jax.grad(loss))
    for scale in (1.0, 0.5, 0.25):
-        w = w - scale * jax.jit(jax.grad(loss))(w)
+        w = w - scale * jitted(w)
    return w
# ---
def run(jit):
    return f(X)
"""
        + COMPILES,
    ),
    Case(
        "rejit-in-loop",
        "",
        "",
        """
+@jax.jit
+def turn(y, i):
+    return y * i
+
def f(x):
    for i in range(3):
-        @jax.jit
-        def turn(y):
-            return y * i
-
-        x = turn(x)
+        x = turn(x, i)
    return x
# ---
def run(jit):
    return f(X)
"""
        + COMPILES,
        words="move `def turn` with its jax.jit above the loop, and pass it what changes as arguments",
    ),
    Case(
        "unhashable-static",
        "https://github.com/jax-ml/jax/issues/7826",
        "",
        """
-@partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["c"])
+@partial(jax.tree_util.register_dataclass, data_fields=["w", "c"], meta_fields=[])
@dataclasses.dataclass
class Model:
    w: jax.Array
    c: np.ndarray

def f(model):
    return model.w * model.c
# ---
def run(jit):
    g = jit(f)
    return [g(Model(X, np.ones(4, "float32"))), g(Model(X, np.full(4, 2, "float32")))]

def expected():
    return [np.asarray(X), 2 * np.asarray(X)]
""",
        'f, Model(X, np.ones(4, "float32"))',
        "have `model.c` traced",
    ),
    Case(
        "unhashable-static",
        "",
        "",
        """
@partial(jax.tree_util.register_dataclass, data_fields=["w"], meta_fields=["sizes"])
@dataclasses.dataclass
class Model:
    w: jax.Array
    sizes: object

def f(layers):
    return sum(layer.w * layer.sizes[0] for layer in layers)

def layers():
-    return [Model(X, np.array([2, 3])), Model(X, np.array([4, 5]))]
+    return [Model(X, (2, 3)), Model(X, (4, 5))]
# ---
def run(jit):
    g = jit(f)
    return [g(layers()), g(layers())]

def expected():
    return [6 * np.asarray(X)] * 2
""",
        "f, layers()",
        "a tuple of its numbers",
    ),
    Case(
        "unhashable-static",
        "https://docs.jax.dev/en/latest/jit-compilation.html#marking-arguments-as-static",
        "sizes=tuple(sizes)",
        """
@partial(jax.jit, static_argnames="sizes")
def f(x, sizes):
    return [x * size for size in sizes]
# ---
def run(jit):
    sizes = [1, 2]
-    return f(X, sizes=sizes)
+    return f(X, sizes=tuple(sizes))

def expected():
    return [np.asarray(X), 2 * np.asarray(X)]
""",
        "f, X, sizes=[1, 2]",
        cured="f, X, sizes=(1, 2)",
    ),
    Case(
        "unhashable-static",
        "https://github.com/google/flax/issues/587",
        "config=tuple(sorted(config.items()))",
        """
@partial(jax.jit, static_argnames="config")
def f(x, config):
+    config = dict(config)
    return x * config["scale"]
# ---
def run(jit):
    config = {"scale": 2.0, "depth": 3}
-    return f(X, config=config)
+    return f(X, config=tuple(sorted(config.items())))

def expected():
    return 2 * np.asarray(X)
""",
        'f, X, config={"scale": 2.0, "depth": 3}',
        "dict(…) of the argument inside the function",
        cured='f, X, config=(("depth", 3), ("scale", 2.0))',
    ),
    Case(
        "unhashable-static",
        "",
        "names=frozenset(names)",
        """
@partial(jax.jit, static_argnames="names")
def f(x, names):
    return x * len(names)
# ---
def run(jit):
    names = {"a", "b"}
-    return f(X, names=names)
+    return f(X, names=frozenset(names))

def expected():
    return 2 * np.asarray(X)
""",
        'f, X, names={"a", "b"}',
        cured='f, X, names=frozenset({"a", "b"})',
    ),
    Case(
        "unhashable-static",
        "https://github.com/google/flax/issues/2410",
        "",
        """
-@partial(jax.jit, static_argnums=1)
+@jax.jit
def f(x, table):
    return x * table[0]
# ---
def run(jit):
    return f(X, np.array([2.0, 3.0], np.float32))

def expected():
    return 2 * np.asarray(X)
""",
        "f, X, np.array([2.0, 3.0], np.float32)",
        "take `table` out of static_argnums",
    ),
    Case(
        "unhashable-static",
        "https://github.com/jax-ml/jax/issues/3701",
        "@dataclass(frozen=True)",
        """
from dataclasses import dataclass

-@dataclass
+@dataclass(frozen=True)
class Config:
    width: int

@partial(jax.jit, static_argnums=1)
def f(x, config):
    return x * config.width
# ---
def run(jit):
    return [f(X, Config(2)), f(X, Config(3)), f._cache_size()][:2]

def expected():
    return [2 * np.asarray(X), 3 * np.asarray(X)]
""",
        "f, X, Config(2)",
        "on class Config hashes it by its fields",
    ),
    Case(
        "unhashable-static",
        "",
        "@dataclass(frozen=True)\nscale: float; name: str",
        """
from dataclasses import dataclass

-class Config:
-    def __init__(self, scale, name):
-        self.scale, self.name = scale, name
+@dataclass(frozen=True)
+class Config:
+    scale: float; name: str

@partial(jax.jit, static_argnames="config")
def f(x, config):
    return x * config.scale
# ---
def run(jit):
    return [f(X, config=Config(scale, "a")) for scale in (2.0, 2.0, 5.0)]

def cost():
    run(jax.jit)
    return f._cache_size()
""",
        'f, X, config=Config(2.0, "a")',
        "instead of its __init__",
    ),
    Case(
        "unhashable-static",
        "",
        "",
        """
class Config:
    def __init__(self, *factors):
        self.total = sum(factors)
+
+    def __eq__(self, other):
+        return type(other) is Config and self.total == other.total
+
+    def __hash__(self):
+        return hash(self.total)

@partial(jax.jit, static_argnames="config")
def f(x, config):
    return x * config.total
# ---
def run(jit):
    return [f(X, config=Config(*factors)) for factors in ((1, 2), (2, 1), (5,))]

def cost():
    run(jax.jit)
    return f._cache_size()
""",
        "f, X, config=Config(1, 2)",
        "__eq__ and __hash__ in class Config",
    ),
    Case(
        "unhashable-static",
        "https://github.com/jax-ml/jax/issues/7561",
        "tuple([-2, 2])",
        """
@partial(jax.jit, static_argnames="limits")
def mesh(x, limits):
    return x * jnp.linspace(*limits, 4)

def f(x):
-    return mesh(x, limits=[-2, 2])
+    return mesh(x, limits=tuple([-2, 2]))
# ---
def run(jit):
    return f(X)

def expected():
    return np.asarray(X) * np.linspace(-2, 2, 4)
""",
    ),
    Case(
        "unhashable-static",
        "",
        "",
        """
@partial(jax.jit, static_argnames="activation")
def layer(x, activation):
    return activation(x)

+def double(v):
+    return v * 2
+
def f(x):
-    return layer(x, activation=lambda v: v * 2)
+    return layer(x, activation=double)
# ---
def run(jit):
    return [f(X), f(X), f(X)]
"""
        + COMPILES,
        words="make it once, outside of f, and give layer that one",
    ),
)
