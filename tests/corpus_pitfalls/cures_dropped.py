"""Cures of what is computed for nobody, and of numbers that are passed one by one. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

SHARP = "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html"
COST = """
def cost():
    return str(jax.make_jaxpr(f)({})).count("\\n")
"""
CASES = (
    Case(
        "dropped-result",
        SHARP,
        "x = x.at[0].set(9.0)",
        """
def f(x):
-    x.at[0].set(9.0)
+    x = x.at[0].set(9.0)
    return x
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.array([9.0, 2, 3, 4])
""",
    ),
    Case(
        "dropped-result",
        "https://github.com/jax-ml/jax/issues/2287",
        "x = x.at[0].set(9.0).at[1].add(1.0)",
        """
def f(x):
-    x.at[0].set(9.0).at[1].add(1.0)
+    x = x.at[0].set(9.0).at[1].add(1.0)
    return x
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.array([9.0, 3, 3, 4])
""",
    ),
    Case(
        "dropped-result",
        "https://github.com/jax-ml/jax/issues/7783",
        "return table.at[1].set(x[0])",
        """
table = jnp.zeros(3)

def f(x):
-    table.at[1].set(x[0])
+    return table.at[1].set(x[0])
# ---
def run(jit):
    global table
    g = jit(f)
-    g(X + 1)
+    table = g(X + 1)
    return table * 2

def expected():
    return np.array([0.0, 4, 0])
""",
        words="and set table to it where this is called",
    ),
    Case(
        "dropped-result",
        "https://docs.jax.dev/en/latest/random-numbers.html",
        "rng, subkey = jax.random.split(rng)",
        """
def f(rng):
    a = jax.random.normal(rng, (3,))
-    jax.random.split(rng)
-    return a - jax.random.normal(rng, (3,))
+    rng, subkey = jax.random.split(rng)
+    return a - jax.random.normal(rng, (3,))
# ---
def run(jit):
    return (jit(f)(KEY) != 0).all()

def expected():
    return np.bool_(True)
""",
        "f, KEY",
    ),
    Case(
        "dropped-result",
        "",
        "keys = jax.random.split(key, 3)",
        """
def f(key):
-    jax.random.split(key, 3)
-    return jnp.stack([jax.random.normal(key) for _ in range(3)])
+    keys = jax.random.split(key, 3)
+    return jnp.stack([jax.random.normal(key) for key in keys])
# ---
def run(jit):
    return jnp.unique(jit(f)(KEY)).size

def expected():
    return 3
""",
        "f, KEY",
        "draw with these, each once",
    ),
    Case(
        "dropped-result",
        "",
        "key = jax.random.fold_in(key, i)",
        """
def f(key, i):
-    jax.random.fold_in(key, i)
+    key = jax.random.fold_in(key, i)
    return jax.random.normal(key)
# ---
def run(jit):
    g = jit(f)
    return g(KEY, 0) != g(KEY, 1)

def expected():
    return np.bool_(True)
""",
        "f, KEY, 1",
    ),
    Case(
        "dropped-result",
        "https://optax.readthedocs.io/en/latest/getting_started.html",
        "weights = optax.apply_updates(weights, updates)",
        """
import optax

optimizer = optax.sgd(0.5)

def f(weights, state):
    gradients = jax.grad(lambda w: (w**2).sum())(weights)
    updates, state = optimizer.update(gradients, state)
-    optax.apply_updates(weights, updates)
+    weights = optax.apply_updates(weights, updates)
    return weights, state
# ---
def run(jit):
    return jit(f)(X, optimizer.init(X))[0]

def expected():
    return np.zeros(4)
""",
        "f, X, optimizer.init(X)",
    ),
    Case(
        "dropped-result",
        "https://optax.readthedocs.io/en/latest/getting_started.html",
        "updates, state = optimizer.update(gradients, state, weights)\nweights = optax.apply_updates(weights, updates)",
        """
import optax

optimizer = optax.sgd(0.5)

def f(weights, state):
    gradients = jax.grad(lambda w: (w**2).sum())(weights)
-    optimizer.update(gradients, state, weights)
+    updates, state = optimizer.update(gradients, state, weights)
+    weights = optax.apply_updates(weights, updates)
    return weights, state
# ---
def run(jit):
    return jit(f)(X, optimizer.init(X))[0]

def expected():
    return np.zeros(4)
""",
        "f, X, optimizer.init(X)",
    ),
    Case(
        "dropped-result",
        "https://docs.jax.dev/en/latest/pytrees.html",
        "result = jax.tree.map(lambda g: jnp.clip(g, -1, 1), gradients)",
        """
def f(gradients):
-    jax.tree.map(lambda g: jnp.clip(g, -1, 1), gradients)
-    return gradients
+    result = jax.tree.map(lambda g: jnp.clip(g, -1, 1), gradients)
+    return result
# ---
def run(jit):
    return jit(f)({"w": X})["w"]

def expected():
    return np.ones(4)
""",
        'f, {"w": X}',
    ),
    Case(
        "dead-code",
        "",
        "",
        """
def f(x, w):
-    logits = x @ w
    return x * 2, w.sum()
# ---
def run(jit):
    return jit(f)(jnp.ones((64, 64)), jnp.ones((64, 64)))
"""
        + COST.format("jnp.ones((64, 64)), jnp.ones((64, 64))"),
        "f, jnp.ones((64, 64)), jnp.ones((64, 64))",
        "delete the line",
    ),
    Case(
        "dead-code",
        "https://docs.jax.dev/en/latest/jit-compilation.html",
        "",
        """
-def f(x, mask):
+def f(x):
    return x * 2
# ---
def run(jit):
-    return jit(f)(X, X)
+    return jit(f)(X)

def cost():
    import inspect
    return len(inspect.signature(f).parameters)
""",
        "f, X, X",
        "leave `mask` out",
        cured="f, X",
    ),
    Case(
        "list-of-scalars",
        "https://github.com/jax-ml/jax/issues/2919",
        "jnp.asarray(values)",
        """
def f(values):
    return jnp.array(values) * 2
# ---
def run(jit):
    values = [float(i) for i in range(40)]
-    return jit(f)(values)
+    return jit(f)(jnp.asarray(values))

def cost():
    values = [float(i) for i in range(40)]
-    return len(jax.make_jaxpr(f)(values).jaxpr.invars)
+    return len(jax.make_jaxpr(f)(jnp.asarray(values)).jaxpr.invars)
""",
        "f, [float(i) for i in range(40)]",
        cured="f, jnp.asarray([float(i) for i in range(40)])",
    ),
    Case(
        "list-of-scalars",
        "https://github.com/jax-ml/jax/issues/365",
        "jnp.sin(jnp.array(…))",
        """
def f():
-    return jnp.sin([0.2, 0.4])
+    return jnp.sin(jnp.array([0.2, 0.4]))
# ---
def run(jit):
    return jit(f)()

def expected():
    return np.sin([0.2, 0.4])
""",
        "f",
    ),
)
