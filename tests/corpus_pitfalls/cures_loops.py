"""Cures of loops that are copied out, and of types that change from turn to turn. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

COST = """
def cost():
    return str(jax.make_jaxpr(f)({})).count("\\n")
"""
CASES = (
    Case(
        "unrolled-loop",
        "https://docs.jax.dev/en/latest/faq.html",
        "x = jax.lax.fori_loop(0, 100, body, x)\ndef body(i, x):",
        """
def f(x):
-    for i in range(100):
-        x = x + 0.01 * jnp.sin(x) - 0.001 * x**2
+    def body(i, x):
+        x = x + 0.01 * jnp.sin(x) - 0.001 * x**2
+        return x
+    x = jax.lax.fori_loop(0, 100, body, x)
    return x
# ---
def run(jit):
    return jit(f)(X)
"""
        + COST.format("X"),
    ),
    Case(
        "unrolled-loop",
        "",
        "def body(i, state):\nx, v = state\nx, v = jax.lax.fori_loop(2, 60, body, (x, v))",
        """
def f(x):
    v = x * 0.1
-    for i in range(2, 60):
-        x = x + v * 0.1
-        v = v - x * 0.01 * i
+    def body(i, state):
+        x, v = state
+        x = x + v * 0.1
+        v = v - x * 0.01 * i
+        return x, v
+    x, v = jax.lax.fori_loop(2, 60, body, (x, v))
    return x
# ---
def run(jit):
    return jit(f)(X)
"""
        + COST.format("X"),
    ),
    Case(
        "unrolled-loop",
        "",
        "def body(x, i):\nx, _ = jax.lax.scan(body, x, jnp.arange(0, 120, 2))",
        """
def f(x):
-    for i in range(0, 120, 2):
-        x = x + 0.01 * jnp.sin(x) * i
+    def body(x, i):
+        x = x + 0.01 * jnp.sin(x) * i
+        return x, None
+    x, _ = jax.lax.scan(body, x, jnp.arange(0, 120, 2))
    return x
# ---
def run(jit):
    return jit(f)(X)
"""
        + COST.format("X"),
    ),
    Case(
        "unrolled-loop",
        "https://github.com/jax-ml/jax/issues/16611",
        "def body(x, i):\nx, states = jax.lax.scan(body, x, jnp.arange(64))",
        """
def f(x, controls):
-    states = []
-    for i in range(64):
-        x = jnp.tanh(x + controls[i])
-        states.append(x)
-    return jnp.stack(states)
+    def body(x, i):
+        x = jnp.tanh(x + controls[i])
+        return x, x
+    x, states = jax.lax.scan(body, x, jnp.arange(64))
+    return states
# ---
def run(jit):
    return jit(f)(X, jnp.ones((64, 4)) * 0.1)
"""
        + COST.format("X, jnp.ones((64, 4))"),
        "f, X, jnp.ones((64, 4))",
    ),
    Case(
        "unrolled-loop",
        "https://github.com/jax-ml/jax/issues/2515",
        "stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *w)\ntotal, _ = jax.lax.scan(body, total, stacked)",
        """
def f(s, m, w):
    total = 0.0
-    for x in w:
-        total += -jnp.log(jnp.exp(-(((x - m) / s) ** 2) / 2) / s)
+    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *w)
+    def body(total, x):
+        total += -jnp.log(jnp.exp(-(((x - m) / s) ** 2) / 2) / s)
+        return total, None
+    total, _ = jax.lax.scan(body, total, stacked)
    return total
# ---
def run(jit):
    return jit(f)(5.0, 1.0, jnp.ones(60) * 2)

def cost():
    return str(jax.make_jaxpr(f)(5.0, 1.0, jnp.ones(60))).count(" log ")
""",
        "f, 5.0, 1.0, jnp.ones(60)",
    ),
    Case(
        "unrolled-loop",
        "https://docs.jax.dev/en/latest/control-flow.html",
        "stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)\nx, _ = jax.lax.scan(body, x, stacked)",
        """
def f(layers, x):
-    for layer in layers:
-        x = jnp.tanh(x @ layer["w"] + layer["b"])
+    stacked = jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
+    def body(x, layer):
+        x = jnp.tanh(x @ layer["w"] + layer["b"])
+        return x, None
+    x, _ = jax.lax.scan(body, x, stacked)
    return x

layers = [{"w": jnp.eye(4) * i / 9, "b": X / 10} for i in range(24)]
# ---
def run(jit):
    return jit(f)(layers, X)

def cost():
    return str(jax.make_jaxpr(f)(layers, X)).count("dot_general")
""",
        "f, layers, X",
    ),
    Case(
        "unrolled-loop",
        "",
        "jax.vmap(lambda i: ⟨…⟩)(⟨…⟩)",
        """
def f(x):
-    return sum([jnp.sin(x * i) + jnp.cos(x) * i for i in range(60)])
+    return jax.vmap(lambda i: jnp.sin(x * i) + jnp.cos(x) * i)(jnp.arange(60)).sum(0)
# ---
def run(jit):
    return jit(f)(X)
"""
        + COST.format("X"),
    ),
    Case(
        "unrolled-loop",
        "https://docs.jax.dev/en/latest/control-flow.html",
        "x, i = jax.lax.while_loop(⟨condition⟩, body, (x, i))",
        """
def f(x):
    i = 0
-    while i < 60:
-        x = x + 0.01 * jnp.sin(x) * i
-        i = i + 1
+    def body(state):
+        x, i = state
+        x = x + 0.01 * jnp.sin(x) * i
+        return x, i + 1
+    x, i = jax.lax.while_loop(lambda state: state[1] < 60, body, (x, i))
    return x
# ---
def run(jit):
    return jit(f)(X)
"""
        + COST.format("X"),
    ),
    Case(
        "weak-type",
        "https://docs.jax.dev/en/latest/type_promotion.html",
        "jnp.asarray(state, dtype=jnp.float32)",
        """
def f(state, x):
    return state + x.mean()
# ---
def run(jit):
    g, state = jit(f), 0.0
-    for _ in range(3):
+    for _ in range(3):
+        state = jnp.asarray(state, dtype=jnp.float32)
        state = g(state, X)
    return state

def cost():
    g, state = jax.jit(f), 0.0
    for _ in range(3):
+        state = jnp.asarray(state, dtype=jnp.float32)
        state = g(state, X)
    return g._cache_size()
""",
        "f, 0.0, X",
        cured="f, jnp.asarray(0.0, dtype=jnp.float32), X",
    ),
    Case(
        "weak-type",
        "https://github.com/pyro-ppl/numpyro/issues/463",
        "jnp.asarray(state[0], dtype=jnp.float32)",
        """
def f(state):
    step, position = state
    return step * jnp.float32(0.9), position + step
# ---
def run(jit):
    g, state = jit(f), (0.1, X)
+    state = (jnp.asarray(state[0], dtype=jnp.float32), state[1])
    for _ in range(3):
        state = g(state)
    return state

def cost():
    g, state = jax.jit(f), (0.1, X)
+    state = (jnp.asarray(state[0], dtype=jnp.float32), state[1])
    for _ in range(3):
        state = g(state)
    return g._cache_size()
""",
        "f, (0.1, X)",
        cured="f, (jnp.asarray(0.1, dtype=jnp.float32), X)",
    ),
    Case(
        "symbolic-equality",
        "https://docs.jax.dev/en/latest/export/shape_poly.html",
        "",
        """
import explorer

def f(x):
-    if x.shape[0] == 1:
-        return x[0]
    return x.sum(0)

rows = explorer.InputInfo((explorer.NamedDimension("batch", 1, 8, 64), 4), jnp.float32)
# ---
def run(jit):
    return [jit(f)(jnp.ones((n, 4))) for n in (1, 3)]

def cost():
    import inspect
    return inspect.getsource(f).count(" == ")
""",
        "f, rows",
        "compute without a special case",
    ),
    Case(
        "symbolic-equality",
        "",
        "",
        """
import explorer

def f(x):
    if x.shape[0] == 1:
        return x[0] * 2
    return x.sum(0)

-rows = explorer.InputInfo((explorer.NamedDimension("batch", 1, 8, 64), 4), jnp.float32)
+rows = jax.ShapeDtypeStruct((1, 4), jnp.float32)
# ---
def run(jit):
    return jit(f)(jnp.ones((1, 4)))

def cost():
    return int(isinstance(rows, explorer.InputInfo))
""",
        "f, rows",
        "compile the special sizes separately, as static sizes",
    ),
)
