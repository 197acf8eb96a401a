"""Cures of what Python asks of a traced value: branches, loops, sizes, items. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

TWICE = """
# ---
def run(jit):
    g = jit(f)
    return [g(X), g(-X)]
"""
COUNTED = """
# ---
def run(jit):
    g = jit(f)
    return [g(X, 2), g(-X, 3)]
"""
DOCS = "https://docs.jax.dev/en/latest/errors.html"
GOTCHAS = "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html"


def asks(told, before, after, source="", calls=TWICE, rule="concretization", call="f, X", words="", **more):
    """A function of one statement that asks for a value."""
    head = f"def f({'x, n' if calls is COUNTED else 'x'}):\n"
    lines = [f"-    {line}" for line in before.splitlines()] + [f"+    {line}" for line in after.splitlines()]
    call = "f, X, 2" if calls is COUNTED else call
    return Case(rule, source, told, head + "\n".join(lines) + calls, call, words, **more)


CASES = (
    asks(
        "jnp.where(x.sum() > 0, ⟨a⟩, ⟨b⟩)",
        "return x if x.sum() > 0 else x * 3",
        "return jnp.where(x.sum() > 0, x, x * 3)",
    ),
    asks(
        "jax.lax.cond(x.sum() > 0, ⟨f⟩, ⟨g⟩, x)",
        "if x.sum() > 0:\n    x = x * 2\nreturn x",
        "return jax.lax.cond(x.sum() > 0, lambda x: x * 2, lambda x: x, x)",
        GOTCHAS,
    ),
    asks(
        "jnp.where(jnp.logical_and(x[0] > 0, x[1] < 3), ⟨a⟩, ⟨b⟩)",
        "if x[0] > 0 and x[1] < 3:\n    return x\nreturn -x",
        "return jnp.where(jnp.logical_and(x[0] > 0, x[1] < 3), x, -x)",
        "https://github.com/jax-ml/jax/issues/22098",
    ),
    asks(
        "jnp.logical_or(x[0] > 0, x[1] < 3)", "return x[0] > 0 or x[1] < 3", "return jnp.logical_or(x[0] > 0, x[1] < 3)"
    ),
    asks("jnp.logical_not(x[0] > 0)", "return not x[0] > 0", "return jnp.logical_not(x[0] > 0)"),
    asks(
        "jnp.logical_and(0 < x[0], x[0] < 3)",
        "return 0 < x[0] < 3",
        "return jnp.logical_and(0 < x[0], x[0] < 3)",
    ),
    asks(
        "jax.lax.while_loop(⟨condition⟩, ⟨body⟩, ⟨state⟩)",
        "while x.sum() > 1:\n    x = x * 0.5\nreturn x",
        "return jax.lax.while_loop(lambda x: x.sum() > 1, lambda x: x * 0.5, x)",
        GOTCHAS,
    ),
    Case(
        "concretization",
        "https://github.com/google-deepmind/chex/issues/387",
        "jax.experimental.checkify.check(jnp.all(x > 0), ⟨message⟩)\n"
        "error, y = jax.jit(jax.experimental.checkify.checkify(f))(⟨x⟩)\nerror.throw()",
        """
import jax.experimental.checkify

def f(x):
-    assert jnp.all(x > 0)
+    jax.experimental.checkify.check(jnp.all(x > 0), "x must be positive")
    return jnp.log(x)
# ---
def run(jit):
-    g = jit(f)
    results = []
    for x in (X, -X):
        try:
-            results.append(g(x))
+            error, y = jax.jit(jax.experimental.checkify.checkify(f))(x)
+            error.throw()
+            results.append(y)
        except (AssertionError, ValueError):
            results.append("no")
    return results

def expected():
    return [np.log(np.asarray(X)), "no"]
""",
        cured="jax.experimental.checkify.checkify(f), X",
    ),
    Case(
        "concretization",
        "",
        "jax.experimental.checkify.check(x[0] != 0, ⟨message⟩)\n"
        "error, y = jax.jit(jax.experimental.checkify.checkify(f))(⟨x⟩)",
        """
import jax.experimental.checkify

def f(x):
-    assert x[0] != 0
+    jax.experimental.checkify.check(x[0] != 0, "zero")
    return 1 / x
# ---
def run(jit):
-    return jit(f)(X)
+    error, y = jax.jit(jax.experimental.checkify.checkify(f))(X)
+    error.throw()
+    return y
""",
        cured="jax.experimental.checkify.checkify(f), X",
    ),
    asks(
        "jnp.where(v > 0, ⟨a⟩, ⟨b⟩)",
        "return sum([v for v in x if v > 0])",
        "return sum([jnp.where(v > 0, v, 0) for v in x])",
    ),
    asks("jnp.asarray(jnp.max(x), float)", "return x * float(jnp.max(x))", "return x * jnp.asarray(jnp.max(x), float)"),
    asks("jnp.asarray(x.sum(), int)", "return x * int(x.sum())", "return x * jnp.asarray(x.sum(), int)", DOCS),
    asks("jnp.asarray(x[1], complex)", "return x * complex(x[1])", "return x * jnp.asarray(x[1], complex)"),
    asks("jnp.where(x.sum(), ⟨a⟩, ⟨b⟩)", "return 1.0 if bool(x.sum()) else 2.0", "return jnp.where(x.sum(), 1.0, 2.0)"),
    asks(
        "jax.lax.fori_loop(0, n, ⟨body⟩, ⟨start⟩)",
        "for _ in range(n):\n    x = x * 2\nreturn x",
        "return jax.lax.fori_loop(0, n, lambda _, x: x * 2, x)",
        "https://github.com/jax-ml/jax/issues/207",
        COUNTED,
    ),
    asks(
        "jax.lax.fori_loop(1, n, ⟨body⟩, ⟨start⟩)",
        "for i in range(1, n):\n    x = x * i\nreturn x",
        "return jax.lax.fori_loop(1, n, lambda i, x: x * i, x)",
        calls=COUNTED,
    ),
    asks(
        "jax.lax.while_loop(⟨condition⟩, ⟨body⟩, ⟨state⟩)",
        "for i in range(0, n, 2):\n    x = x + i\nreturn x",
        "return jax.lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 2, s[1] + s[0]), (0, x))[1]",
        calls=COUNTED,
    ),
    Case(
        "concretization",
        "https://docs.jax.dev/en/latest/errors.html",
        'jax.jit(f, static_argnames=("n",))',
        """
def f(x, n):
    for _ in range(n):
        x = x * 2
    return x
# ---
def run(jit):
-    g = jit(f)
+    g = jax.jit(f, static_argnames=("n",))
    return [g(X, 2), g(X, 3)]
""",
        "f, X, 2",
        cured='jax.jit(f, static_argnames=("n",)), X, 2',
    ),
    Case(
        "concretization",
        "https://github.com/jax-ml/jax/issues/14279",
        'jax.jit(f, static_argnames=("n",))',
        """
def f(x, n):
    return jnp.ones((n, 2)) * x[0]
# ---
def run(jit):
-    g = jit(f)
+    g = jax.jit(f, static_argnames=("n",))
    return [g(X, 2), g(X, 3)]
""",
        "f, X, 2",
        cured='jax.jit(f, static_argnames=("n",)), X, 2',
    ),
    Case(
        "concretization",
        "https://docs.jax.dev/en/latest/errors.html",
        'jax.jit(f, static_argnames=("axis",))',
        """
def f(x, axis):
    return np.split(np.arange(4.0), 2, axis)[0].sum() + x
# ---
def run(jit):
-    g = jit(f)
+    g = jax.jit(f, static_argnames=("axis",))
    return [g(X, 0)]
""",
        "f, X, 0",
        "shapes, sizes and axes can't depend on values",
        cured='jax.jit(f, static_argnames=("axis",)), X, 0',
    ),
    asks("jnp.maximum(x[0], x[1])", "return max(x[0], x[1])", "return jnp.maximum(x[0], x[1])", DOCS),
    asks(
        "jnp.minimum(jnp.minimum(x[0], 2), x[1])",
        "return min(x[0], 2, x[1])",
        "return jnp.minimum(jnp.minimum(x[0], 2), x[1])",
    ),
    asks("jnp.max(x)", "return max(x)", "return jnp.max(x)"),
    asks("jnp.min(jnp.asarray([x[0], x[1]]))", "return min([x[0], x[1]])", "return jnp.min(jnp.asarray([x[0], x[1]]))"),
    asks("jnp.any(x > 2)", "return any(x > 2)", "return jnp.any(x > 2)"),
    asks(
        "jnp.all(jnp.asarray([v > 0 for v in x]))",
        "return all(v > 0 for v in x)",
        "return jnp.all(jnp.asarray([v > 0 for v in x]))",
    ),
    Case(
        "concretization",
        "",
        "jnp.sort(x)",
        """
def f(x):
-    return sorted(x)
+    return jnp.sort(x)
# ---
def run(jit):
    return jnp.asarray(jit(f)(-X))

def expected():
    return np.sort(-np.asarray(X))
""",
    ),
    asks("", "return x.sum().item() * x", "return x.sum() * x", words="leaving `.item()` out"),
    asks(
        "",
        "return [2 * v for v in x.tolist()]",
        "return [2 * v for v in x]",
        "",
        words="leaving `.tolist()` out",
    ),
    asks("jnp.sin", "return np.sin(x)", "return jnp.sin(x)", DOCS, words="jnp.sin instead of np.sin"),
    asks(
        "jnp.nanmean",
        "x -= np.nanmean(x, axis=0)\nreturn x",
        "x -= jnp.nanmean(x, axis=0)\nreturn x",
        "https://github.com/flatironinstitute/nemos/issues/214",
    ),
    asks(
        "jnp.append",
        "return np.append(x[0], x[:-1])",
        "return jnp.append(x[0], x[:-1])",
        "https://github.com/dfm/tinygp/issues/85",
    ),
    Case(
        "concretization",
        "",
        "jnp.exp",
        """
import math

def f(x):
-    return math.exp(x[0])
+    return jnp.exp(x[0])
# ---
def run(jit):
    return jnp.asarray(jit(f)(X))
""",
    ),
    Case(
        "concretization",
        "https://github.com/jax-ml/jax/issues/7545",
        "jnp.asarray(table)[index]",
        """
table = np.arange(5.0) ** 2

def f(index):
-    return table[index] * 2
+    return jnp.asarray(table)[index] * 2
# ---
def run(jit):
    return [jit(f)(jnp.asarray(i)) for i in (1, 3)]
""",
        "f, jnp.asarray(1)",
    ),
    Case(
        "concretization",
        "https://github.com/jax-ml/jax/issues/5853",
        "jnp.asarray([10.0, 20.0, 30.0])[i]",
        """
def f(i):
-    return [10.0, 20.0, 30.0][i]
+    return jnp.asarray([10.0, 20.0, 30.0])[i]
# ---
def run(jit):
    return [jnp.float32(jit(f)(i)) for i in (0, 2)]
""",
        "f, 0",
    ),
    Case(
        "concretization",
        "",
        "jax.lax.switch(i, steps, ⟨x⟩)",
        """
steps = [jnp.sin, jnp.cos]

def f(x, i):
-    return steps[i](x)
+    return jax.lax.switch(i, steps, x)
# ---
def run(jit):
    return [jit(f)(X, i) for i in (0, 1)]
""",
        "f, X, 0",
    ),
    Case(
        "concretization",
        "",
        "jnp.select([i == key for key in rates], list(rates.values()))",
        """
rates = {0: 1.5, 4: -2.0}

def f(i):
-    return rates[i] * 2
+    return jnp.select([i == key for key in rates], list(rates.values())) * 2
# ---
def run(jit):
    return [jnp.float32(jit(f)(i)) for i in (0, 4)]
""",
        "f, 0",
    ),
    asks(
        "jax.lax.dynamic_slice_in_dim(x, ⟨start⟩, ⟨size⟩)",
        "return x[n : n + 1]",
        "return jax.lax.dynamic_slice_in_dim(x, n, 1)",
        "https://github.com/google/lightweight_mmm/issues/206",
        COUNTED,
    ),
    asks(
        "jnp.isin(n, jnp.asarray((1, 2)))",
        "return n in (1, 2)",
        "return jnp.isin(n, jnp.asarray((1, 2)))",
        calls=COUNTED,
    ),
    asks(
        'jax.debug.print("{}", x.sum())',
        'text = f"{x.sum():.3f}"\nprint(text)\nreturn x',
        'jax.debug.print("{}", x.sum())\nreturn x',
        calls="""
# ---
def run(jit):
    return jit(f)(X)

def expected():
    print("10.0")
    return X
""",
    ),
)
