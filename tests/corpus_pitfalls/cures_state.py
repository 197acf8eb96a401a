"""Cures of what a function keeps, writes and reads outside of itself. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

GOTCHAS = "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html"
CASES = (
    Case(
        "stale-closure",
        GOTCHAS,
        "def f(…, scale)\nf(…, scale)",
        """
scale = 2.0

-def f(x):
+def f(x, scale):
    return x * scale
# ---
def run(jit):
    global scale
    g, results = jit(f), []
    for scale in (2.0, 5.0):
-        results.append(g(X))
+        results.append(g(X, scale))
    return results
""",
        cured="f, X, 2.0",
    ),
    Case(
        "stale-closure",
        "https://docs.jax.dev/en/latest/stateful-computations.html",
        "def f(…, rate)\n(…, settings['rate'])",
        """
settings = {"rate": 0.1}

-def f(x):
-    return x - settings["rate"] * x
+def f(x, rate):
+    return x - rate * x
# ---
def run(jit):
    g, results = jit(f), []
    for settings["rate"] in (0.1, 0.5):
-        results.append(g(X))
+        results.append(g(X, settings['rate']))
    return results
""",
        words="with rate instead of settings['rate']",
        cured="f, X, 0.1",
    ),
    Case(
        "stale-closure",
        "",
        "def f(…, rates_0)\n(…, rates[0])",
        """
rates = [0.1, 0.2]

-def f(x):
-    return x * rates[0]
+def f(x, rates_0):
+    return x * rates_0
# ---
def run(jit):
    g, results = jit(f), []
    for rates[0] in (0.1, 0.5):
-        results.append(g(X))
+        results.append(g(X, rates[0]))
    return results
""",
        cured="f, X, 0.1",
    ),
    Case(
        "stale-closure",
        "https://github.com/PlasmaControl/DESC/issues/310",
        "def compute(…, weight)\ncompute(…, self.weight)",
        """
class Objective:
    def __init__(self):
        self.weight = 1.0

    def update(self, weight):
        self.weight = weight

-    def compute(self, x):
-        return jnp.sum(x**2) * self.weight
+    def compute(self, x, weight):
+        return jnp.sum(x**2) * weight

    def value(self, x):
-        return compiled(x)
+        return compiled(x, self.weight)

objective = Objective()
# ---
def run(jit):
    global compiled
    compiled = jit(objective.compute)
    results = [objective.value(X)]
    objective.update(3.0)
    return [*results, objective.value(X)]
""",
        "objective.compute, X",
        cured="objective.compute, X, 1.0",
    ),
    Case(
        "stale-closure",
        "https://docs.jax.dev/en/latest/stateful-computations.html",
        "explorer.jit(f, inputs=⟨…⟩)",
        """
import explorer

settings = {"rate": 0.1}

def f(x):
    return x - settings["rate"] * x
# ---
def run(jit):
-    g, results = jit(f), []
+    g, results = explorer.jit(f, inputs=settings), []
    for settings["rate"] in (0.1, 0.5):
        results.append(g(X))
    return results
""",
        cured="explorer.jit(f, inputs=settings), X",
    ),
    Case(
        "state-write",
        "",
        "",
        """
calls = 0

-def f(x):
-    global calls
-    calls += 1
-    return x * 2
+def f(x, calls):
+    return x * 2, calls + 1
# ---
def run(jit):
    global calls
    g, calls = jit(f), 0
-    results = [g(X), g(X)]
+    results = []
+    for _ in range(2):
+        result, calls = g(X, calls)
+        results.append(result)
    return results, calls
""",
        words="return the new value from f, and set calls where it is called",
        cured="f, X, 0",
    ),
    Case(
        "state-write",
        "https://docs.jax.dev/en/latest/stateful-computations.html",
        "",
        """
class Counter:
    def __init__(self):
        self.n = 0

-    def count(self):
-        self.n += 1
-        return self.n * jnp.ones(())
+    def count(self, n):
+        return (n + 1) * jnp.ones(()), n + 1

counter = Counter()
# ---
def run(jit):
    g = jit(counter.count)
-    return [g(), g(), g()]
+    results = []
+    for _ in range(3):
+        result, counter.n = g(counter.n)
+        results.append(result)
+    return results
""",
        "counter.count",
        "return the new value from count, and set self.n where it is called",
        cured="counter.count, 0",
    ),
    Case(
        "state-write",
        "",
        "explorer.jit(f, inputs=⟨…⟩, outputs=⟨…⟩)",
        """
import explorer

state = {"n": 0.0}

def f(x):
    state["n"] += 1
    return x * state["n"]
# ---
def run(jit):
-    g = jit(f)
+    g = explorer.jit(f, inputs=state, outputs=state)
    return [g(X), g(X), g(X)]
""",
        cured="explorer.jit(f, inputs=state, outputs=state), X",
    ),
    Case(
        "leaked-tracer",
        "https://docs.jax.dev/en/latest/errors.html#jax.errors.UnexpectedTracerError",
        "",
        """
losses = []

def f(x):
    loss = (x**2).sum()
-    losses.append(loss)
-    return x
+    return x, loss
# ---
def run(jit):
    g = jit(f)
    losses.clear()
-    results = [g(X), g(2 * X)]
+    results = []
+    for x in (X, 2 * X):
+        result, loss = g(x)
+        losses.append(loss)
+        results.append(result)
    return results, [loss + 1 for loss in losses]
""",
        words="return it from f instead, and set losses where f is called",
    ),
    Case(
        "leaked-tracer",
        "https://github.com/jax-ml/jax/issues/20082",
        "",
        """
class Source:
    def __init__(self, key):
        self.key = key

-    def draw(self):
-        self.key, subkey = jax.random.split(self.key)
-        return jax.random.normal(subkey)
+    def draw(self, key):
+        key, subkey = jax.random.split(key)
+        return jax.random.normal(subkey), key

source = Source(KEY)
# ---
def run(jit):
    g = jit(source.draw)
-    return [g(), g()]
+    results = []
+    for _ in range(2):
+        result, source.key = g(source.key)
+        results.append(result)
+    return results
""",
        "source.draw",
        "return it from draw instead, and set self.key where draw is called",
        cured="source.draw, KEY",
    ),
    Case(
        "leaked-tracer",
        "https://github.com/pyro-ppl/numpyro/issues/2000",
        "with jax.ensure_compile_time_eval():",
        """
@functools.lru_cache
def grid(n):
-    return jnp.linspace(0.0, 1.0, n)
+    with jax.ensure_compile_time_eval():
+        return jnp.linspace(0.0, 1.0, n)

def f(x):
    return (x * grid(4)).sum()
# ---
def run(jit):
    return [jit(f)(X), grid(4) + 1]
""",
    ),
    Case(
        "leaked-tracer",
        "https://github.com/jax-ml/jax/issues/2884",
        "",
        """
-@functools.cache
def basis(size):
    return jnp.eye(size) * 2

def f(x):
    return basis(x.shape[0]) @ x
# ---
def run(jit):
    return [jit(f)(X), basis(4) + 1]
""",
        words="leave out the cache",
    ),
    Case(
        "leaked-tracer",
        "",
        "",
        """
class Kernel:
    def __init__(self, scale):
        self.scale = scale

-    @functools.cached_property
+    @property
    def table(self):
        return jnp.exp(-jnp.arange(4.0) / self.scale)

    def __call__(self, x):
        return x * self.table

kernel = Kernel(2.0)
# ---
def run(jit):
    return [jit(kernel.__call__)(X), kernel.table + 1]
""",
        "kernel, X",
        "make table a plain property",
    ),
    Case(
        "leaked-tracer",
        "",
        "seen = [] if seen is None else seen",
        """
-def f(x, seen=[]):
-    seen.append(x * 2)
-    return seen[-1] + x
+def f(x, seen=None):
+    seen = [] if seen is None else seen
+    seen.append(x * 2)
+    return seen[-1] + x
# ---
def run(jit):
    return [jit(f)(X), jit(f)(X), [kept + 1 for kept in (f.__defaults__[0] or [])][2:]]
""",
        words="seen=None in the head of f",
    ),
)
