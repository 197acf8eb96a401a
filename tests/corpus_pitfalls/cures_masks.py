"""Cures of masks and sizes that depend on values. See `cure_case`."""

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


def asks(told, before, after, source="", calls=TWICE, rule="concretization", call="f, X", words="", **more):
    """A function of one statement that asks for a value."""
    head = f"def f({'x, n' if calls is COUNTED else 'x'}):\n"
    lines = [f"-    {line}" for line in before.splitlines()] + [f"+    {line}" for line in after.splitlines()]
    call = "f, X, 2" if calls is COUNTED else call
    return Case(rule, source, told, head + "\n".join(lines) + calls, call, words, **more)


CASES = (
    asks("x.sum(where=x > 2)", "return x[x > 2].sum()", "return x.sum(where=x > 2)", rule="boolean-mask"),
    asks(
        "jnp.mean(x, where=x > -3)",
        "kept = x > -3\nreturn jnp.mean(x[x > -3])",
        "return jnp.mean(x, where=x > -3)",
        "https://github.com/jax-ml/jax/issues/4471",
        rule="boolean-mask",
    ),
    asks(
        "x.max(where=x < 4, initial=x.min())",
        "return x[x < 4].max()",
        "return x.max(where=x < 4, initial=x.min())",
        rule="boolean-mask",
    ),
    asks(
        "jnp.nanmedian(jnp.where(x > -4, x, jnp.nan))",
        "return jnp.median(x[x > -4])",
        "return jnp.nanmedian(jnp.where(x > -4, x, jnp.nan))",
        rule="boolean-mask",
    ),
    asks(
        "jnp.where(x > 2, x, ⟨fill⟩)",
        "chosen = x[x > 2]\nreturn (chosen**2).sum()",
        "chosen = jnp.where(x > 2, x, 0)\nreturn (chosen**2).sum()",
        "https://docs.jax.dev/en/latest/notebooks/Common_Gotchas_in_JAX.html#dynamic-shapes",
        rule="boolean-mask",
    ),
    asks("jnp.sum(x > 2)", "return len(x[x > 2])", "return jnp.sum(x > 2)", rule="boolean-mask"),
    asks("jnp.sum(x > 2)", "return x[x > 2].size", "return jnp.sum(x > 2)", rule="boolean-mask"),
    asks(
        "jnp.where(x > 2, x * (x[0] + 1), x)",
        "return x.at[x > 2].multiply(x[0] + 1)",
        "return jnp.where(x > 2, x * (x[0] + 1), x)",
        rule="boolean-mask",
        calls=TWICE
        + """
def expected():
    return [np.where(x > 2, x * (x[0] + 1), x) for x in (np.asarray(X), -np.asarray(X))]
""",
    ),
    asks(
        "jnp.where(x > 2, x - (x[0] - 1), x)",
        "return x.at[x > 2].subtract(x[0] - 1)",
        "return jnp.where(x > 2, x - (x[0] - 1), x)",
        rule="boolean-mask",
        calls=TWICE
        + """
def expected():
    return [np.where(x > 2, x - (x[0] - 1), x) for x in (np.asarray(X), -np.asarray(X))]
""",
    ),
    Case(
        "boolean-mask",
        "https://docs.jax.dev/en/latest/errors.html#jax.errors.NonConcreteBooleanIndexError",
        "jnp.nonzero(…, size=⟨n⟩)",
        """
def f(x):
-    return jnp.nonzero(x > 2)[0]
+    return jnp.nonzero(x > 2, size=2)[0]
# ---
def run(jit):
    return jit(f)(X)
""",
    ),
    Case(
        "boolean-mask",
        "https://github.com/jax-ml/jax/issues/4418",
        "jnp.where(⟨condition⟩, ⟨a⟩, ⟨b⟩)",
        """
def f(x):
-    (small,) = jnp.nonzero(x < 2)
-    return jnp.ones(4).at[small].set(0)
+    return jnp.where(x < 2, 0.0, jnp.ones(4))
# ---
def run(jit):
    return jit(f)(X)
""",
    ),
    Case(
        "boolean-mask",
        "https://github.com/pyro-ppl/numpyro/issues/853",
        "jnp.sum(⟨condition⟩)",
        """
def f(x):
-    return jnp.nonzero(x > 2)[0].size
+    return jnp.sum(x > 2)
# ---
def run(jit):
    return [jit(f)(X), jit(f)(-X)]
""",
    ),
)
