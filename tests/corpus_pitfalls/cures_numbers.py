"""Cures of types and indices that lose what a program computes. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

SHARP = "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html"
CASES = (
    Case(
        "truncation",
        "https://docs.jax.dev/en/latest/default_dtypes.html",
        "jnp.float32",
        """
def f(x):
-    return x.astype(jnp.float64) * 2
+    return x.astype(jnp.float32) * 2
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.asarray(X) * 2
""",
    ),
    Case(
        "truncation",
        "https://github.com/jax-ml/jax/issues/652",
        'jax.config.update("jax_enable_x64", True)',
        """
+jax.config.update("jax_enable_x64", True)
+
def f(x):
    return x + jnp.full(4, 2**40, dtype="int64")
# ---
def run(jit):
    return jit(f)(np.arange(4))

def expected():
    return np.arange(4) + 2**40
""",
        "f, np.arange(4)",
    ),
    Case(
        "truncation",
        "https://github.com/jax-ml/jax/issues/470",
        "jnp.float32",
        """
def f(key):
-    return jax.random.uniform(key, (4,), dtype="float64") < 2
+    return jax.random.uniform(key, (4,), dtype=jnp.float32) < 2
# ---
def run(jit):
    return jit(f)(KEY)

def expected():
    return np.ones(4, bool)
""",
        "f, KEY",
    ),
    Case(
        "truncation",
        "",
        "jnp.clip(…, 0, 255)",
        """
def f(x):
-    return x + jnp.full((3,), 300).astype(jnp.uint8)
+    return x + jnp.clip(jnp.full((3,), 300), 0, 255).astype(jnp.uint8)
# ---
def run(jit):
    return jit(f)(jnp.zeros(3, jnp.uint8))

def expected():
    return np.full(3, 255, np.uint8)
""",
        "f, jnp.zeros(3, jnp.uint8)",
    ),
    Case(
        "truncation",
        "",
        "",
        """
def f(x):
-    return x + jnp.full((3,), 300).astype(jnp.uint8)
+    return x + jnp.full((3,), 300).astype(jnp.int16)
# ---
def run(jit):
    return jit(f)(jnp.zeros(3, jnp.uint8))

def expected():
    return np.full(3, 300, np.int16)
""",
        "f, jnp.zeros(3, jnp.uint8)",
        "a type that holds 300",
    ),
    Case(
        "truncation",
        "https://github.com/jax-ml/jax/issues/22688",
        ".astype(np.float32)",
        """
def f(x):
    return x * 2
# ---
def run(jit):
-    return jit(f)(np.array([0.1, 1.0]))
+    return jit(f)(np.array([0.1, 1.0]).astype(np.float32))

def cost():
-    return 1  # nothing says that digits are lost
+    return 0
""",
        "f, np.array([0.1, 1.0])",
        cured="f, np.array([0.1, 1.0]).astype(np.float32)",
    ),
    Case(
        "truncation",
        "https://github.com/jax-ml/jax/issues/5952",
        "",
        """
def f(x):
-    return x + (1 << 33)
+    return x + float(1 << 33)
# ---
def run(jit):
    return jit(f)(jnp.arange(3))

def expected():
    return np.arange(3, dtype=np.float32) + 2.0**33
""",
        "f, jnp.arange(3)",
        "a smaller number or a float",
    ),
    Case(
        "out-of-bounds",
        SHARP,
        'x.at[10].get(mode="fill", fill_value=0)',
        """
def f(x):
-    return x[10]
+    return x.at[10].get(mode="fill", fill_value=0)
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.float32(0)
""",
    ),
    Case(
        "out-of-bounds",
        "https://github.com/jax-ml/jax/issues/4383",
        'table.at[10, :].get(mode="fill", fill_value=0)',
        """
def f(table):
-    return table[10, :]
+    return table.at[10, :].get(mode="fill", fill_value=0)
# ---
def run(jit):
    return jit(f)(jnp.ones((10, 3)))

def expected():
    return np.zeros(3)
""",
        "f, jnp.ones((10, 3))",
    ),
    Case(
        "out-of-bounds",
        "https://github.com/jax-ml/jax/issues/11277",
        "",
        """
def f(x):
-    return x[4]
+    return x[-1]
# ---
def run(jit):
    return jit(f)(X + jnp.arange(4) * 2)

def expected():
    return np.float32(10)

def cost():
    try:
        f(np.asarray(X))
    except IndexError:
        return 1
    return 0
""",
        words="an index from 0 to 3, or from the end with -1",
    ),
    Case(
        "out-of-bounds",
        "",
        'x.at[5].set(1.0, mode="drop")',
        """
def f(x):
-    return x.at[5].set(1.0)
+    return x.at[5].set(1.0, mode="drop")
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.asarray(X)

def cost():
    import inspect
    return 1 - inspect.getsource(f).count("mode=")  # what is asked for is what happens, and is said
""",
    ),
    Case(
        "out-of-bounds",
        "https://github.com/jax-ml/jax/issues/3774",
        'vectors.take(jnp.array([4]), axis=0, mode="fill", fill_value=0)',
        """
def f(vectors):
-    return vectors.take(jnp.array([4]), axis=0)
+    return vectors.take(jnp.array([4]), axis=0, mode="fill", fill_value=0)
# ---
def run(jit):
    return jit(f)(jnp.ones((3, 3)))

def expected():
    return np.zeros((1, 3))
""",
        "f, jnp.ones((3, 3))",
    ),
    Case(
        "out-of-bounds",
        "https://github.com/jax-ml/jax/issues/14193",
        'jnp.take(x, jnp.array([0, 7]), mode="fill", fill_value=0)',
        """
def f(x):
-    return jnp.take(x, jnp.array([0, 7]))
+    return jnp.take(x, jnp.array([0, 7]), mode="fill", fill_value=0)
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.array([1.0, 0.0])
""",
    ),
    Case(
        "out-of-bounds",
        "https://github.com/jax-ml/jax/issues/9839",
        'board.at[3, 8].get(mode="fill", fill_value=0)',
        """
def f(board):
-    return board.at[3, 8].get()
+    return board.at[3, 8].get(mode="fill", fill_value=0)
# ---
def run(jit):
    return jit(f)(jnp.ones((8, 8)))

def expected():
    return np.float32(0)
""",
        "f, jnp.ones((8, 8))",
    ),
)
