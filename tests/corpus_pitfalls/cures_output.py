"""Cures of what is printed and formatted while a function is traced. See `cure_case`."""

from tests.corpus_pitfalls.cure_case import CureCase as Case

TWICE = """
# ---
def run(jit):
    g = jit(f)
    return [g(X), g(X + 1)]
"""
CASES = (
    Case(
        "impure-print",
        "",
        'jax.debug.print("{}", y)',
        """
def f(x):
    y = x * 2
-    print(y)
+    jax.debug.print("{}", y)
    return y
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "https://docs.jax.dev/en/latest/debugging/print_breakpoint.html",
        'jax.debug.print("step {} has {} of {{x}}", 3, x.sum())',
        """
def f(x):
-    print("step", 3, f"has {x.sum()} of {{x}}")
+    jax.debug.print("step {} has {} of {{x}}", 3, x.sum())
    return x * 2
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "https://github.com/jax-ml/jax/issues/4615",
        'jax.debug.callback(lambda x: print("JUtotal: ", x, sep="; "), x)',
        """
def f(x):
-    print("JUtotal: ", x, sep="; ")
+    jax.debug.callback(lambda x: print("JUtotal: ", x, sep="; "), x)
    return x.sum()
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "https://github.com/jax-ml/jax/issues/4618",
        'jax.debug.print("x is {}", x)',
        """
def f(x):
-    print("x is {}".format(x))
+    jax.debug.print("x is {}", x)
    return x * 2
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "",
        'jax.debug.callback(lambda x: print("x is %r" % x), x)',
        """
def f(x):
-    print("x is %r" % x)
+    jax.debug.callback(lambda x: print("x is %r" % x), x)
    return x * 2
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "",
        'jax.debug.callback(lambda loss: sys.stdout.write(f"loss {loss}\\n"), loss)',
        """
import sys

def f(x):
    loss = x.sum()
-    sys.stdout.write(f"loss {loss}\\n")
+    jax.debug.callback(lambda loss: sys.stdout.write(f"loss {loss}\\n"), loss)
    return loss
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "",
        'jax.debug.print("called")',
        """
def f(x):
-    print("called")
+    jax.debug.print("called")
    return x * 2
"""
        + TWICE,
    ),
    Case(
        "impure-print",
        "",
        'jax.debug.callback(lambda loss: log.info("loss %s", loss), loss)',
        """
import logging

records = []
log = logging.getLogger("cures")
log.setLevel("INFO")
log.handlers = [logging.NullHandler()]
log.filters = [lambda record: records.append(record.getMessage()) or True]
log.propagate = False

def f(x):
    loss = x.sum()
-    log.info("loss %s", loss)
+    jax.debug.callback(lambda loss: log.info("loss %s", loss), loss)
    return loss

# ---
def run(jit):
    records.clear()
    g = jit(f)
    result = [g(X), g(X + 1)]
    jax.effects_barrier()
    return result, list(records)
""",
    ),
    Case(
        "formatted-tracer",
        "https://github.com/jax-ml/jax/issues/11770",
        'jax.debug.print("x = {}", x)',
        """
def f(x):
-    jax.debug.print(f"x = {x}")
+    jax.debug.print("x = {}", x)
    return x + 1
"""
        + TWICE,
    ),
    Case(
        "formatted-tracer",
        "",
        'jax.debug.print("loss {:.3f} of {}", y, x)',
        """
def f(x):
    y = x.sum()
-    jax.debug.print(f"loss {y:.3f} of {x}")
+    jax.debug.print("loss {:.3f} of {}", y, x)
    return y
"""
        + TWICE,
    ),
    Case(
        "formatted-tracer",
        "",
        'jax.debug.print("x is {}, y is {:.2f}", x, y)',
        """
def f(x):
    y = x.sum()
-    jax.debug.print("x is %s, y is %.2f" % (x, y))
+    jax.debug.print("x is {}, y is {:.2f}", x, y)
    return y
# ---
def run(jit):
    g = jit(f)
    return [g(X), g(X + 1)]
""",
    ),
    Case(
        "formatted-tracer",
        "",
        'jax.debug.print("x0 {:.2f}, x1 {:.1f}", x[0], x[1])',
        """
def f(x):
-    text = f"x0 {x[0]:.2f}, x1 {x[1]:.1f}"
-    print(text)
+    jax.debug.print("x0 {:.2f}, x1 {:.1f}", x[0], x[1])
    return x * 2
"""
        + TWICE,
    ),
    Case(
        "formatted-tracer",
        "",
        'jax.debug.print("x {:.2f} of {:.1f}", x[0], x[1])',
        """
def f(x):
-    print("x {:.2f} of {:.1f}".format(x[0], x[1]))
+    jax.debug.print("x {:.2f} of {:.1f}", x[0], x[1])
    return x * 2
"""
        + TWICE,
    ),
    Case(
        "formatted-tracer",
        "",
        'jax.debug.print("{}", x)',
        """
def f(x):
-    message = str(x)
-    print(message)
+    jax.debug.print("{}", x)
    return x * 2
# ---
def run(jit):
    g = jit(f)
    return [g(X), g(X + 1)]

def expected():
    print(np.asarray(X))
    print(np.asarray(X) + 1)
    return [np.asarray(X) * 2, np.asarray(X) * 2 + 2]
""",
    ),
    Case(
        "slow-path-effect",
        "https://docs.jax.dev/en/latest/external-callbacks.html",
        "",
        """
-def f(x):
-    jax.debug.print("x = {}", x)
-    return x * 2
+@partial(jax.jit, static_argnames="shown")
+def f(x, shown=False):
+    if shown:
+        jax.debug.print("x = {}", x)
+    return x * 2
# ---
def run(jit):
    return [f(X)]

def expected():
    return [np.asarray(X) * 2]

def cost():
    return str(jax.make_jaxpr(f)(X)).count("debug")
""",
        words="switch it by a static argument",
    ),
    Case(
        "slow-path-effect",
        "",
        "",
        """
import jax.experimental

def f(x):
-    jax.experimental.io_callback(lambda v: None, None, x)
    return x * 2
# ---
def run(jit):
    return jit(f)(X)

def cost():
    return str(jax.make_jaxpr(f)(X)).count("io_callback")
""",
        words="take io_callback out",
    ),
)
