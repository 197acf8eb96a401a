"""Cures of what a trace asks once: random numbers, clocks, files, iterators, the device. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

CASES = (
    Case(
        "impure-random",
        "",
        "jax.random.normal(key, …)",
        """
-def f(x):
-    return x + np.random.normal(size=4)
+def f(x, key):
+    return x + jax.random.normal(key, (4,))
# ---
def run(jit):
    g = jit(f)
-    draws = np.stack([np.asarray(g(X)) for _ in range(200)]) - np.asarray(X)
+    draws = np.stack([np.asarray(g(X, key)) for key in jax.random.split(KEY, 200)]) - np.asarray(X)
    return len(np.unique(draws.round(4))) > 700, abs(draws.mean()) < 0.15, abs(draws.std() - 1) < 0.1
""",
        words="give f an argument `key`",
        cured="f, X, KEY",
    ),
    Case(
        "impure-random",
        "https://github.com/jax-ml/jax/issues/2793",
        "jax.random.uniform(key, …)",
        """
-def f(x):
-    noise = random.random()
-    return x * noise
+def f(x, key):
+    noise = jax.random.uniform(key)
+    return x * noise
# ---
def run(jit):
    g = jit(f)
-    draws = np.array([g(1.0) for _ in range(300)])
+    draws = np.array([g(1.0, key) for key in jax.random.split(KEY, 300)])
~    draws = np.array([g(1.0, noise=random.random()) for _ in range(300)])
    return len(np.unique(draws)) > 290, abs(draws.mean() - 0.5) < 0.07, draws.min() >= 0 and draws.max() < 1
""",
        "f, 1.0",
        cured="f, 1.0, KEY",
        rewritten="f, 1.0, noise=0.5",
    ),
    Case(
        "impure-random",
        "https://github.com/google/jumpy/issues/29",
        "jax.random.randint(key, (), ⟨low⟩, ⟨high⟩ + 1)",
        """
-def f(x):
-    return x * random.randint(1, 3)
+def f(x, key):
+    return x * jax.random.randint(key, (), 1, 3 + 1)
# ---
def run(jit):
    g = jit(f)
-    draws = np.array([g(1.0) for _ in range(90)])
+    draws = np.array([g(1.0, key) for key in jax.random.split(KEY, 90)])
    return sorted({float(draw) for draw in draws})
""",
        "f, 1.0",
        cured="f, 1.0, KEY",
    ),
    Case(
        "impure-random",
        "",
        "jax.random.permutation(key, …)",
        """
-def f(x):
-    order = [0, 1, 2, 3]
-    random.shuffle(order)
-    return x[jnp.array(order)]
+def f(x, key):
+    order = jax.random.permutation(key, jnp.array([0, 1, 2, 3]))
+    return x[order]
# ---
def run(jit):
    g = jit(f)
-    draws = [np.asarray(g(X)) for _ in range(40)]
+    draws = [np.asarray(g(X, key)) for key in jax.random.split(KEY, 40)]
    return len({tuple(draw.tolist()) for draw in draws}) > 8, [np.sort(draw) for draw in draws]
""",
        cured="f, X, KEY",
    ),
    Case(
        "impure-time",
        "",
        "",
        """
-def f(x):
-    return x * time.time()
+def f(x, now):
+    return x * now
# ---
def run(jit):
    g = jit(f)
-    first, _, second = g(1.0), time.sleep(0.3), g(1.0)
+    first, _, second = g(1.0, time.time() % 1000), time.sleep(0.3), g(1.0, time.time() % 1000)
~    first, _, second = g(1.0, now=time.time() % 1000), time.sleep(0.3), g(1.0, now=time.time() % 1000)
    return second != first
""",
        "f, 1.0",
        words="ask time.time() outside of f, and pass it as an argument",
        cured="f, 1.0, 2.0",
        rewritten="f, 1.0, now=2.0",
    ),
    Case(
        "impure-time",
        "https://docs.jax.dev/en/latest/async_dispatch.html",
        "jax.block_until_ready(⟨f⟩(…))",
        """
def f(x):
-    start = time.perf_counter()
-    y = jnp.exp(x)
-    return y, time.perf_counter() - start
+    return jnp.exp(x)
# ---
def run(jit):
    g = jit(f)
-    times = [g(X)[1] for _ in range(5)]
+    times = []
+    for _ in range(5):
+        start = time.perf_counter()
+        jax.block_until_ready(g(X))
+        times.append(time.perf_counter() - start)
    return len(set(map(float, times)))
""",
    ),
    Case(
        "impure-io",
        "",
        "",
        """
import os

-def f(x):
-    return x * float(os.environ.get("CURES_SCALE", "2"))
+def f(x, scale):
+    return x * scale
# ---
def run(jit):
    g, results = jit(f), []
    for value in ("2", "5"):
        os.environ["CURES_SCALE"] = value
-        results.append(g(X))
+        results.append(g(X, float(os.environ.get("CURES_SCALE", "2"))))
    return results
""",
        words="do it outside of f and pass its result as an argument",
        cured="f, X, 2.0",
    ),
    Case(
        "impure-io",
        "https://docs.jax.dev/en/latest/external-callbacks.html",
        "jax.experimental.io_callback",
        """
import tempfile

import jax.experimental

path = tempfile.mktemp()

+def keep(x):
+    with open(path, "a") as file:
+        file.write(f"{x.shape}")
+
def f(x):
-    with open(path, "a") as file:
-        file.write(f"{x.shape}")
+    jax.experimental.io_callback(keep, None, x, ordered=True)
    return x * 2
# ---
def run(jit):
    open(path, "w").close()
    g = jit(f)
    results = [g(X), g(X)]
    jax.effects_barrier()
    with open(path) as file:
        return results, file.read()
""",
    ),
    Case(
        "iterator",
        "",
        "(…, next(batches))",
        """
batches = iter([1.0, 2.0, 3.0])

-def f(x):
-    return x + next(batches)
+def f(x, batch):
+    return x + batch
# ---
def run(jit):
    g = jit(f)
-    return [g(X), g(X)]
+    return [g(X, next(batches)), g(X, next(batches))]
""",
        words="take the item where f is called, and pass it",
        cured="f, X, 1.0",
    ),
    Case(
        "iterator",
        "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html",
        "(…, list(numbers))",
        """
def upwards(start):
    yield from (start, start + 1.0)

-numbers = upwards(1.0)
-
-def f(x):
-    for number in numbers:
+def f(x, numbers):
+    for number in numbers:
        x = x * number
    return x
# ---
def run(jit):
-    global numbers
    g, results = jit(f), []
    for start in (1.0, 3.0):
        numbers = upwards(start)
-        results.append(g(X))
+        results.append(g(X, list(numbers)))
    return results
""",
        cured="f, X, [1.0, 2.0]",
    ),
    Case(
        "host-transfer",
        "https://github.com/p-doom/jasmine/issues/158",
        "",
        """
update = jax.jit(lambda w: (w * 0.9, (w**2).sum()))

def f(w):
    history = []
    for _ in range(3):
        w, loss = update(w)
-        history.append(loss.block_until_ready())
-    return w, history
+        history.append(loss)
+    return w, jax.block_until_ready(history)
# ---
def run(jit):
    return f(X)

def cost():
    import inspect
    return inspect.getsource(f).split("return")[0].count("block_until_ready")
""",
        words="keep `loss` as it is, in a list, and bring all to the host after the loop",
    ),
    Case(
        "host-transfer",
        "https://docs.jax.dev/en/latest/external-callbacks.html",
        "",
        """
def f(x):
    def body(_, x):
-        return jax.pure_callback(np.sin, jax.ShapeDtypeStruct((4,), np.float32), x)
+        return jnp.sin(x)

    return lax.fori_loop(0, 10, body, x)
# ---
def run(jit):
    return jit(f)(X)

def cost():
    return str(jax.make_jaxpr(f)(X)).count("pure_callback")
""",
        words="compute it with JAX in the loop",
    ),
    Case(
        "host-transfer",
        "",
        "",
        """
weights = jnp.ones(4)

-def f(x):
-    return x * jax.device_get(weights)
+def f(x, weights):
+    return x * weights
# ---
def run(jit):
-    return jit(f)(X)
+    return jit(f)(X, weights)

def cost():
    import inspect
    return inspect.getsource(f).count("device_get")
""",
        words="pass it as an argument",
        cured="f, X, X",
    ),
    Case(
        "async-timing",
        "https://github.com/jax-ml/jax/issues/1219",
        "jax.block_until_ready(multiply(a, b))",
        """
multiply = jax.jit(jnp.multiply)

def f(a, b):
    start = time.time()
-    result = multiply(a, b)
+    result = jax.block_until_ready(multiply(a, b))
    return result, time.time() - start
# ---
def run(jit):
    return f(X, X)[0]

def cost():
    global multiply, waited
    waited, plain, wait = False, multiply, jax.block_until_ready

    def listening(result):
        global waited
        waited = True
        return wait(result)

    jax.block_until_ready = listening
    try:
        f(X, X)
    finally:
        jax.block_until_ready = wait
    return 0 if waited else 1
""",
        "f, X, X",
    ),
    Case(
        "async-timing",
        "https://docs.jax.dev/en/latest/faq.html#benchmarking-jax-code",
        "jax.block_until_ready(product(x, x))",
        """
product = jax.jit(jnp.dot)

def f(x):
    start = time.perf_counter()
    for _ in range(10):
-        y = product(x, x)
+        y = jax.block_until_ready(product(x, x))
    return y, (time.perf_counter() - start) / 10
# ---
def run(jit):
    return f(jnp.ones((1500, 1500)))[0][0, 0]

def cost():
    f(jnp.ones((1500, 1500)))
    x, started = jnp.ones((1500, 1500)), time.perf_counter()
    y, told = f(x)
    y.block_until_ready()
    real = (time.perf_counter() - started) / 10
    return round(max(0.0, real - told) / real, 1) > 0.2
""",
        "f, jnp.ones((4, 4))",
    ),
)
