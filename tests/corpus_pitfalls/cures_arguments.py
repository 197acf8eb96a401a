"""Cures of changes to what a function was passed. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

CASES = (
    Case(
        "argument-mutation",
        "",
        "params = ⟨f⟩(…)",
        """
def f(params):
    params["b"] = params["b"] + 1
-    return params["w"] * 2
+    return params["w"] * 2, params
# ---
def run(jit):
    g, params = jit(f), {"w": X, "b": X}
-    return [g(params), g(params), params]
+    results = []
+    for _ in range(2):
+        result, params = g(params)
+        results.append(result)
+    return [*results, params]
""",
        'f, {"w": X, "b": X}',
        "return params",
    ),
    Case(
        "argument-mutation",
        "https://docs.jax.dev/en/latest/pytrees.html",
        "params = {**params, …}",
        """
def f(params):
-    params["b"] = params["b"] + 1
+    params = {**params, "b": params["b"] + 1}
    return (params["w"] * params["b"]).sum()
# ---
def run(jit):
    g, params = jit(f), {"w": X, "b": X}
    return [g(params), g(params)]

def expected():
    return [np.float32(40), np.float32(40)]

def cost():
    params = {"w": X, "b": X}
    f(params)
    return int((params["b"] != X).any())  # the plain call changes what the compiled one does not
""",
        'f, {"w": X, "b": X}',
    ),
    Case(
        "argument-mutation",
        "",
        "xs = [*xs, …]",
        """
def f(xs):
-    xs.append(jnp.zeros(4))
+    xs = [*xs, jnp.zeros(4)]
    return sum(xs) + len(xs)
# ---
def run(jit):
    g, xs = jit(f), [X, X]
    return [g(xs), g(xs)]

def expected():
    return [np.asarray(X) * 2 + 3] * 2

def cost():
    xs = [X, X]
    f(xs)
    return len(xs) - 2
""",
        "f, [X, X]",
    ),
    Case(
        "argument-mutation",
        "https://github.com/jax-ml/jax/issues/24315",
        "x = x.at[0].set(1.0)",
        """
def f(x):
-    x[0] = 1.0
+    x = x.at[0].set(1.0)
    return x
# ---
def run(jit):
    return jit(f)(X + 1)

def expected():
    x = np.array(X) + 1
    x[0] = 1
    return x
""",
    ),
    Case(
        "argument-mutation",
        "https://github.com/google/objax/issues/59",
        "v = v.at[2:4].add(n + 1)",
        """
def f(v, n):
-    v[2:4] += n + 1
+    v = v.at[2:4].add(n + 1)
    return v
# ---
def run(jit):
    return jit(f)(X, 2)

def expected():
    x = np.array(X)
    x[2:4] += 3
    return x
""",
        "f, X, 2",
    ),
    Case(
        "argument-mutation",
        "",
        "x = x.at[1].set(x[1] % 2)",
        """
def f(x):
-    x[1] %= 2
+    x = x.at[1].set(x[1] % 2)
    return x
# ---
def run(jit):
    return jit(f)(X * 3)

def expected():
    x = np.array(X) * 3
    x[1] %= 2
    return x
""",
    ),
    Case(
        "argument-mutation",
        "",
        "changed = table.at[0].set(x.sum())",
        """
table = jnp.zeros(3)

def f(x):
-    table[0] = x.sum()
-    return table * 2
+    changed = table.at[0].set(x.sum())
+    return changed * 2
# ---
def run(jit):
    return jit(f)(X)

def expected():
    return np.array([20.0, 0, 0])
""",
        words="changed instead of table from there on",
    ),
    Case(
        "argument-mutation",
        "",
        'batch["x"].at[0].set(5.0)',
        """
def f(batch):
-    batch["x"][0] = 5.0
-    return batch["x"].sum()
+    changed = batch["x"].at[0].set(5.0)
+    return changed.sum()
# ---
def run(jit):
    return jit(f)({"x": X})

def expected():
    return np.float32(14)
""",
        'f, {"x": X}',
        "give it a name of its own",
    ),
    Case(
        "argument-mutation",
        "",
        "stats = ⟨…⟩",
        """
def f(stats, x):
    stats *= 0.9
-    return x - stats.mean()
+    return x - stats.mean(), stats
# ---
def run(jit):
    g, stats, results = jit(f), np.ones(4, np.float32), []
    for _ in range(3):
-        results.append(g(stats, X))
+        result, stats = g(stats, X)
+        results.append(result)
    return [*results, stats]
""",
        "f, np.ones(4, np.float32), X",
        "return stats too",
    ),
    Case(
        "argument-mutation",
        "https://github.com/jax-ml/jax/issues/899",
        "jnp.array(source)",
        """
source = np.array([42.0, 1, 2])

def f(x):
-    return x * jnp.asarray(source)
+    return x * jnp.array(source)
# ---
def run(jit):
    return jit(f)(3.0)

def cost():
    import inspect
    return inspect.getsource(f).count("asarray")
""",
        "f, 3.0",
    ),
)
