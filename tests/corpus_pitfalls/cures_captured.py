"""Cures of arrays that a program captures or may write over, and of methods that are compiled. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

CASES = (
    Case(
        "large-constant",
        "https://github.com/jax-ml/jax/issues/10596",
        "f(…, weights)",
        """
weights = jnp.ones((512, 1024))

-def f(x):
+def f(x, weights):
    return x @ weights
# ---
def run(jit):
-    return jit(f)(jnp.ones((2, 512)))
+    return jit(f)(jnp.ones((2, 512)), weights)

def cost():
-    return sum(const.nbytes for const in jax.make_jaxpr(f)(jnp.ones((2, 512))).consts)
+    return sum(const.nbytes for const in jax.make_jaxpr(f)(jnp.ones((2, 512)), weights).consts)
""",
        "f, jnp.ones((2, 512))",
        cured="f, jnp.ones((2, 512)), weights",
    ),
    Case(
        "large-constant",
        "https://github.com/jax-ml/jax/issues/14655",
        "",
        """
def f(x):
-    table = np.arange(400_000, dtype=np.float32)
+    table = jnp.arange(400_000, dtype=jnp.float32)
    return x * table
# ---
def run(jit):
    return jit(f)(2.0)

def cost():
    return sum(const.nbytes for const in jax.make_jaxpr(f)(2.0).consts)
""",
        "f, 2.0",
        "make it with jax.numpy",
    ),
    Case(
        "large-constant",
        "https://github.com/jax-ml/jax/issues/10585",
        "",
        """
class Field:
    def __init__(self):
        self.mesh = jnp.ones((700, 700))

-    def at(self, x):
-        return x @ self.mesh
+    def at(self, x, mesh):
+        return x @ mesh

field = Field()
# ---
def run(jit):
-    return jit(field.at)(jnp.ones(700))
+    return jit(field.at)(jnp.ones(700), field.mesh)

def cost():
-    return sum(const.nbytes for const in jax.make_jaxpr(field.at)(jnp.ones(700)).consts)
+    return sum(const.nbytes for const in jax.make_jaxpr(field.at)(jnp.ones(700), field.mesh).consts)
""",
        "field.at, jnp.ones(700)",
        "pass them separately",
        cured="field.at, jnp.ones(700), field.mesh",
    ),
    Case(
        "jit-on-method",
        "https://docs.jax.dev/en/latest/faq.html#how-to-use-jit-with-methods",
        "jax.tree_util.register_dataclass(Custom, data_fields=['x'], meta_fields=['mul'])",
        """
class Custom:
    def __init__(self, x, mul):
        self.x, self.mul = x, mul

    @jax.jit
    def calc(self, y):
        return self.x * y if self.mul else y

+jax.tree_util.register_dataclass(Custom, data_fields=['x'], meta_fields=['mul'])
# ---
def run(jit):
    custom = Custom(X, True)
    results = [custom.calc(3.0)]
    custom.x = 2 * X
    return [*results, custom.calc(3.0), Custom(X, False).calc(3.0)]
""",
        "Custom(X, True).calc, 3.0",
    ),
    Case(
        "jit-on-method",
        "https://github.com/chaobrain/diffuco/issues/13",
        "jax.tree_util.register_dataclass(Model, data_fields=['a'], meta_fields=[])",
        """
class Model:
    def __init__(self, a):
        self.a = a

-    @partial(jax.jit, static_argnums=0)
+    @jax.jit
    def scaled(self, x):
        return self.a * x

+jax.tree_util.register_dataclass(Model, data_fields=['a'], meta_fields=[])
# ---
def run(jit):
    model = Model(2.0)
    results = [model.scaled(X)]
    model.a = 5.0
    return [*results, model.scaled(X)]
""",
        "Model(2.0).scaled, X",
        "plain @jax.jit",
    ),
    Case(
        "jit-on-method",
        "https://github.com/jax-ml/jax/issues/17074",
        "def apply(kernel, …)\nself.kernel",
        """
+@jax.jit
+def apply(kernel, x):
+    return kernel * x
+
class Layer:
    def __init__(self, size):
        self.kernel = jnp.ones(size)

-    @jax.jit
-    def apply(self, x):
-        return self.kernel * x
+    def apply(self, x):
+        return apply(self.kernel, x)
# ---
def run(jit):
    layer = Layer(4)
    results = [layer.apply(X)]
    layer.kernel = 3 * X
    return [*results, layer.apply(X)]
""",
        "Layer(4).apply, X",
    ),
    Case(
        "unusable-donation",
        "https://docs.jax.dev/en/latest/buffer_donation.html",
        "",
        """
-@partial(jax.jit, donate_argnums=0)
+@jax.jit
def f(x):
    return x.mean()
# ---
def run(jit):
    return f(jnp.ones((8, 8)))
""",
        "f, jnp.ones((8, 8))",
        "leave `x` out of donate_argnums",
    ),
    Case(
        "unusable-donation",
        "https://github.com/jax-ml/jax/issues/9675",
        "",
        """
@partial(jax.jit, donate_argnames="x")
def f(x):
-    return (x * 127).astype(jnp.int8)
+    return x * 127
# ---
def run(jit):
    return f(jnp.ones(8)).astype(jnp.int8)

def cost():
    return int(f.lower(jnp.ones(8)).compile().memory_analysis().alias_size_in_bytes == 0)
""",
        "f, jnp.ones(8)",
        "return an array of its shape and dtype",
    ),
    Case(
        "donated-reuse",
        "https://docs.jax.dev/en/latest/buffer_donation.html",
        "jnp.copy",
        """
@partial(jax.jit, donate_argnums=0)
def f(x, y):
    return x + y
# ---
def run(jit):
    x = jnp.ones(8)
-    return f(x, x)
+    return f(jnp.copy(x), x)
""",
        "f, *[jnp.ones(8)] * 2",
        "pass a copy of one of them",
        cured="f, jnp.ones(8), jnp.ones(8)",
    ),
    Case(
        "donated-reuse",
        "https://github.com/jax-ml/jax/issues/2936",
        "",
        """
-@partial(jax.jit, donate_argnums=(0, 1))
+@partial(jax.jit, donate_argnums=1)
def f(x, y):
    return x + 1, y + 2
# ---
def run(jit):
    x = jnp.ones(8)
-    return f(x, x)
+    return f(x, jnp.copy(x))
""",
        "f, *[jnp.ones(8)] * 2",
        "don't donate",
        cured="f, jnp.ones(8), jnp.ones(8)",
    ),
    Case(
        "donated-reuse",
        "",
        "",
        """
buffer = jnp.ones(8)

@partial(jax.jit, donate_argnums=0)
def f(x):
-    return x + buffer
+    return x + x
# ---
def run(jit):
    return [f(buffer), f(jnp.ones(8, jnp.int32))]

def expected():
    return [np.full(8, 2.0)] * 2
""",
        "f, buffer",
        "use the argument `x` instead of `buffer`",
    ),
    Case(
        "donated-reuse",
        "https://docs.jax.dev/en/latest/faq.html#buffer-donation",
        "state = …",
        """
@partial(jax.jit, donate_argnums=0)
def f(state, x):
    return state + x
# ---
def run(jit):
    state = jnp.zeros(4)
-    result = f(state, X)
-    return result + state
+    state = f(state, X)
+    return state + state

def expected():
    return 2 * np.asarray(X)
""",
        "f, jnp.zeros(4), X",
        "of what f returns",
    ),
    Case(
        "donated-reuse",
        "https://docs.jax.dev/en/latest/faq.html#buffer-donation",
        "f(jnp.copy(state), …)",
        """
@partial(jax.jit, donate_argnums=0)
def f(state, x):
    return state + x
# ---
def run(jit):
    state = jnp.zeros(4)
-    result = f(state, X)
+    result = f(jnp.copy(state), X)
    return result + state

def expected():
    return np.asarray(X)
""",
        "f, jnp.zeros(4), X",
    ),
    Case(
        "donated-reuse",
        "https://github.com/jax-ml/jax/issues/3412",
        "update(jnp.copy(x), …)",
        """
update = jax.jit(lambda array, at: array.at[at].set(77.0), donate_argnums=0)

def f(x):
-    new = update(x, 0)
+    new = update(jnp.copy(x), 0)
    return new + x
# ---
def run(jit):
    return f(jnp.ones(3))

def expected():
    return np.array([78.0, 2, 2])
""",
        "f, jnp.ones(3)",
    ),
    Case(
        "donated-reuse",
        "",
        "state = …",
        """
advance = jax.jit(lambda state, x: state + x, donate_argnames="state")

def f(state, x):
-    advance(state, x)
-    return state * 2
+    state = advance(state, x)
+    return state * 2
# ---
def run(jit):
    return f(jnp.zeros(4), X)

def expected():
    return 2 * np.asarray(X)
""",
        "f, jnp.zeros(4), X",
        "of what advance returns",
    ),
    Case(
        "donated-reuse",
        "https://github.com/liesel-devs/liesel/pull/272",
        "jnp.copy(x)",
        """
advance = jax.jit(lambda model, kernel: (model + 1, kernel * 2), donate_argnums=(0, 1))

def f(x):
-    return advance(x, x)
+    return advance(x, jnp.copy(x))
# ---
def run(jit):
    return f(jnp.ones(3))

def expected():
    return np.full(3, 2.0), np.full(3, 2.0)
""",
        "f, jnp.ones(3)",
        "the second time",
    ),
)
