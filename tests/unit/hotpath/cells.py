"""Cells with loops that do more than compute, or compute in a way that moves badly into a function.

Each is run as it is and with its loops watched; `PRELUDE` is in front of all.
"""

PRELUDE = """
import jax, jax.numpy as jnp, numpy as np
X = jnp.linspace(-1.0, 1.0, 12).reshape(3, 4)
W = jnp.full((4, 2), 0.5)
b = jnp.zeros((2,))
def layer(W, x):
    return jnp.tanh(x @ W + b)
def loss_of(W):
    return jnp.mean((layer(W, X) - 0.25) ** 2)
"""

CELLS = {
    "a training loop": """
for step in range(12):
    loss, grad = jax.value_and_grad(loss_of)(W)
    W = W - 0.1 * grad
""",
    "weights in a list, by a comprehension whose names are its own": """
w = "kept"
weights = [W, b]
for step in range(12):
    grads = jax.grad(lambda p: jnp.sum(jnp.tanh(X @ p[0] + p[1])))(weights)
    weights = [w - 0.1 * g for w, g in zip(weights, grads)]
""",
    "prints between": """
for step in range(12):
    h = X @ W
    print(step, float(h.sum()))
    W = W * 0.9
    print(W[0])
""",
    "a list that grows": """
losses = []
for step in range(12):
    loss = loss_of(W)
    W = W - 0.1 * jax.grad(loss_of)(W)
    losses.append(float(loss))
""",
    "a function reads a global that the loop gives": """
def of_global():
    return jnp.sum(W ** 2)
seen = []
for step in range(12):
    W = W * 0.9
    norm = of_global()
    seen.append(norm)
""",
    "a function reads a global that the same statement gives": """
def of_global():
    return W * 0.9
for step in range(12):
    W = of_global()
""",
    "a function of the cell that counts": """
calls = 0
def counted(x):
    global calls
    calls += 1
    return x * 0.5
for step in range(12):
    W = counted(W)
    z = W + 1.0
""",
    "an error in the middle of a turn": """
def fails(x):
    if len(log) > 8:
        raise ValueError("at last")
    return x + 1.0
log = []
for step in range(12):
    a = W * 2.0
    c = fails(a)
    d = c - 1.0
    log.append(step)
""",
    "a shape that doesn't fit any more": """
sizes = [4] * 9 + [5]
for n in sizes:
    x = jnp.ones((2, n))
    a = x * 2.0
    y = a @ W
    z = y + 1.0
""",
    "a name that is not there in the end": """
for step in range(12):
    a = W * 2.0
    c = a + later if step > 20 else a
    if step == 9:
        del a
    if step == 10:
        e = missing + a
""",
    "del at the end of each turn": """
for step in range(12):
    tmp = X @ W
    W = W - 0.01 * jnp.mean(tmp)
    del tmp
""",
    "break": """
for step in range(50):
    W = W * 0.5
    n = jnp.sum(W)
    if n < 1e-2:
        break
else:
    print("never")
print(step)
""",
    "continue and else": """
for step in range(12):
    if step % 3 == 0:
        continue
    W = W * 0.5
    z = W + 1
else:
    print("done", step)
""",
    "while over a value": """
x = jnp.float32(100.0)
turns = 0
while x > 1.0:
    y = jnp.sqrt(x) * 1.01
    x = y * 0.99
    turns += 1
""",
    "a number that changes at each turn": """
for step in range(12):
    rate = 0.1 / (1 + step)
    W = W - rate * jnp.sign(W)
""",
    "a number that changes late": """
rate = 0.1
for step in range(20):
    if step == 13:
        rate = 0.05
    g = jnp.sign(W) * 2.0
    W = W - rate * g
""",
    "augmented assignments": """
total = jnp.zeros(())
for step in range(12):
    total += jnp.sum(X)
    W *= 0.9
""",
    "a NumPy array in place": """
acc = np.zeros((4, 2))
for step in range(12):
    W = W * 0.9
    acc += np.asarray(W)
""",
    "a list in place": """
rows = []
for step in range(12):
    z = W * step
    rows += [z]
""",
    "NumPy's random numbers": """
np.random.seed(0)
for step in range(12):
    noise = np.random.normal(size=(4, 2))
    W = W + noise
    z = W * 2
print(np.random.rand())
""",
    "keys": """
key = jax.random.key(0)
for step in range(12):
    key, sub = jax.random.split(key)
    W = W + jax.random.normal(sub, W.shape)
""",
    "dicts that are updated": """
state = {"w": W, "n": 0}
for step in range(12):
    g = jnp.sign(state["w"])
    state["w"] = state["w"] - 0.1 * g
    state["n"] += 1
""",
    "dicts that are new each turn": """
state = {"w": W, "m": jnp.zeros_like(W)}
for step in range(12):
    m = 0.9 * state["m"] + jax.grad(loss_of)(state["w"])
    state = {"w": state["w"] - 0.1 * m, "m": m}
""",
    "loops inside each other": """
for epoch in range(3):
    total = jnp.zeros(())
    for at in range(6):
        x = X[at % 3] + 0.3
        total = total + jnp.sum(jnp.tanh(x @ W))
    W = W * 0.9
    print(epoch, f"{total:.3f}")
""",
    "with and try": """
for step in range(12):
    with jax.default_matmul_precision("float32"):
        h = X @ W
        z = h * 2
    try:
        q = z.reshape(-1)[100] + jnp.ones((3,)) @ jnp.ones((4 if step == 10 else 3,))
        r = q * 2
    except TypeError as error:
        print(type(error).__name__, step)
    finally:
        W = W * 0.99
""",
    "a walrus and tuples": """
for step in range(12):
    if (n := step % 2):
        a, (c, *d) = W[0], (W[1] * 2, W[2], W[3])
    e = (m := n + 1) * W
""",
    "two names of one thing": """
old = W
for step in range(12):
    new = W * 0.9
    old = W
    W = new
same = new is W
""",
    "a list that is handed on": """
params = [W, b]
for step in range(12):
    before = params
    params = [p * 0.9 for p in params]
    alias = params[0]
print(before is params, alias is params[0])
""",
    "functions that are defined in the loop": """
for step in range(12):
    def scaled(x):
        return x * (step + 1)
    z = scaled(W)
    y = z + 1.0
""",
    "classes and their globals": """
class Model:
    scale = 0.5
    def __call__(self, x):
        return x @ W * self.scale
model = Model()
for step in range(20):
    y = model(X)
    z = y * 2.0
    if step == 12:
        Model.scale = 0.75
""",
    "a function that is defined anew": """
def f(x):
    return x + 1.0
for step in range(20):
    y = f(W)
    z = y * 2.0
    if step == 12:
        def f(x):
            return x + 5.0
""",
    "Python's numbers come out": """
for step in range(12):
    h = X @ W
    n = h.shape[0] * 2
    s = str(h.dtype)
    z = h * n
""",
    "reads of globals by name": """
for step in range(12):
    y = globals()["W"] * 2.0
    W = y * 0.5
    z = eval("W + 1")
""",
    "warnings": """
import warnings
for step in range(12):
    y = W * 2.0
    warnings.warn(f"turn {step}", stacklevel=1)
    z = y + 1.0
""",
    "the line that asks": """
import sys
def line():
    return sys._getframe(1).f_lineno
lines = set()
for step in range(12):
    y = W * 2.0
    z = jnp.ones(()) * line()
    lines.add(int(z))
""",
    "two statements in a line": """
for step in range(12): h = X @ W; W = W * 0.9; print(float(h[0, 0]))
""",
    "an iterator that is used up": """
data = iter([X[i % 3] for i in range(12)])
for x in data:
    y = x @ W
    z = y + next(data, x)[0]
""",
    "values that stop being arrays": """
scale = jnp.float32(2.0)
for step in range(20):
    y = W * scale
    z = y + 1.0
    if step == 12:
        scale = 3
""",
    "a type that changes": """
x = X
for step in range(20):
    y = x * 2
    z = y + 1
    if step == 11:
        x = X.astype(jnp.bfloat16)
    if step == 15:
        x = [1.0]
""",
}
