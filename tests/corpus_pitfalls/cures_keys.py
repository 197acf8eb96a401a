"""Cures of random keys that are used twice. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

RANDOM = "https://docs.jax.dev/en/latest/random-numbers.html"
DIFFER = """
# ---
def run(jit):
    a, b = jit(f)(KEY)
    return bool(jnp.abs(a - b).max() > 1e-3), a.shape == b.shape == (64,)

def expected():
    return True, True
"""
SHARED = """
# ---
def run(jit):
    rows = jit(f)(jnp.zeros((5, 3)), KEY)
    return jnp.unique(rows).size, rows.shape

def expected():
    return 15, (5, 3)
"""
CASES = (
    Case(
        "key-reuse",
        RANDOM,
        "key, subkey = jax.random.split(key)",
        """
def f(key):
+    key, subkey = jax.random.split(key)
-    a = jax.random.normal(key, (64,))
-    b = jax.random.normal(key, (64,))
+    a = jax.random.normal(subkey, (64,))
+    key, subkey = jax.random.split(key)
+    b = jax.random.normal(subkey, (64,))
    return a, b
"""
        + DIFFER,
        "f, KEY",
        "use the subkey once",
    ),
    Case(
        "key-reuse",
        "https://docs.jax.dev/en/latest/errors.html#jax.errors.KeyReuseError",
        "key, subkey = jax.random.split(key)",
        """
def f(key):
-    a = jax.random.uniform(key, (64,))
+    key, subkey = jax.random.split(key)
+    a = jax.random.uniform(subkey, (64,))
+    key, subkey = jax.random.split(key)
-    b = draw(key)
+    b = draw(subkey)
    return a, b

def draw(key):
    return jax.random.uniform(key, (64,))
"""
        + DIFFER,
        "f, KEY",
    ),
    Case(
        "key-reuse",
        RANDOM,
        "jax.random.fold_in(key, i)",
        """
def f(x, key):
    def body(i, x):
-        return x + jax.random.normal(key)
+        return x + jax.random.normal(jax.random.fold_in(key, i))

    return lax.fori_loop(0, 3, body, x)
# ---
def run(jit):
    total = jit(f)(0.0, KEY)
    first = jax.random.normal(jax.random.fold_in(KEY, 0))
    return bool(abs(total - 3 * first) > 1e-3), bool(abs(total - 3 * jax.random.normal(KEY)) > 1e-3)

def expected():
    return True, True
""",
        "f, 0.0, KEY",
    ),
    Case(
        "key-reuse",
        "",
        "jax.random.split(key, ⟨n⟩)",
        """
def f(x, key):
-    def body(x, _):
-        return x + jax.random.normal(key), None
+    def body(x, key):
+        return x + jax.random.normal(key), None

-    return lax.scan(body, x, length=3)[0]
+    return lax.scan(body, x, jax.random.split(key, 3))[0]
# ---
def run(jit):
    return jit(f)(0.0, KEY)

def expected():
    return sum(np.asarray(jax.random.normal(key)) for key in jax.random.split(KEY, 3))
""",
        "f, 0.0, KEY",
        "one key per turn",
    ),
    Case(
        "key-reuse",
        "https://github.com/jax-ml/jax/issues/170",
        "(…, key=⟨key⟩)",
        """
-def f(x):
-    keep = jax.random.bernoulli(jax.random.key(0), 0.5, x.shape)
+def f(x, key):
+    keep = jax.random.bernoulli(key, 0.5, x.shape)
    return x * keep
# ---
def run(jit):
    g = jit(f)
-    draws = [g(jnp.ones(64)) for _ in range(2)]
+    draws = [g(jnp.ones(64), key=key) for key in jax.random.split(KEY)]
~    draws = [g(jnp.ones(64), key=jax.random.key(i)) for i in (0, 1)]
    return bool((draws[0] != draws[1]).any())

def expected():
    return True
""",
        "f, jnp.ones(64)",
        "with a new one for each call",
        cured="f, jnp.ones(64), KEY",
        rewritten="f, jnp.ones(64), key=KEY",
    ),
    Case(
        "key-reuse",
        "https://github.com/jcmgray/autoray/issues/27",
        "f(…, key=⟨key⟩)",
        """
key = jax.random.key(42)

-def f():
+def f(*, key):
    return jax.random.normal(key, (64,))
# ---
def run(jit):
    g = jit(f)
-    draws = [g(), g()]
+    draws = [g(key=key) for key in jax.random.split(KEY)]
    return bool((draws[0] != draws[1]).any())

def expected():
    return True
""",
        "f",
        cured="f, key=KEY",
    ),
    Case(
        "key-reuse",
        "https://github.com/google/flax/issues/4973",
        "jax.vmap(⟨f⟩)(xs, jax.random.split(key, len(xs)))",
        """
-def f(xs, key):
-    return jax.vmap(lambda x: x + jax.random.normal(key, x.shape))(xs)
+def f(xs, key):
+    return jax.vmap(lambda x, key: x + jax.random.normal(key, x.shape))(xs, jax.random.split(key, len(xs)))
"""
        + SHARED,
        "f, jnp.zeros((5, 3)), KEY",
    ),
    Case(
        "key-reuse",
        "",
        "jax.vmap(⟨f⟩)(xs, jax.random.split(key, len(xs)))",
        """
def noisy(x, key):
    return x + jax.random.uniform(key, x.shape)

def f(xs, key):
-    return jax.vmap(noisy, in_axes=(0, None))(xs, key)
+    return jax.vmap(noisy)(xs, jax.random.split(key, len(xs)))
"""
        + SHARED,
        "f, jnp.zeros((5, 3)), KEY",
    ),
)
