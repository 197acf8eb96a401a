"""What compile(), its executables and jit() cost: ratios to plain JAX within one run.

python -m tests.benchmarks.bench_compile [executables|memory|jit|loading [layers]]
"""

import gc
import itertools
import resource
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np

import explorer as ex
from tests.benchmarks.table import row
from tests.examples.training import training_step

ROUNDS = 61
LEAVES = 100
CAPTURED = 20
CALLS = 200_000

# A fresh process, as after a deployment: what it prints are the seconds of a load and the first call.
LOAD_AND_CALL = """
import sys
from time import perf_counter
from types import SimpleNamespace
import jax
import explorer as ex
from tests.examples.training import training_step
_, arguments = training_step(int(sys.argv[2]))
jax.block_until_ready(arguments)
ex.Executable  # imported by now
start = perf_counter()
step = ex.Executable.load(sys.argv[1], trust_native_code=sys.argv[3] == "trusted")
jax.block_until_ready(step(*arguments))
print(perf_counter() - start)
"""


def ratio(run, baseline, calls):
    """How many times as long one takes as the other: the median over rounds, each round half and half, in turns."""
    found = []
    for turn in range(ROUNDS):
        spent = {}
        for function in (run, baseline) if turn % 2 else (baseline, run):
            start = perf_counter()
            for _ in range(calls):
                function()
            spent[function] = perf_counter() - start
        found.append(spent[run] / spent[baseline])
    return median(found)


def filled(n, x):
    return jnp.zeros(n) + x[0, 0]


def kinds():
    """Of calls: what it is, the function, its description, the arguments, how to have jax.jit, its arguments, calls."""
    x, numpy = jnp.ones((2, 2)), np.ones((2, 2), np.float32)
    array, scalar = ex.InputInfo((2, 2), x.dtype), ex.InputInfo((), x.dtype)
    ranged = ex.InputInfo((ex.NamedDimension("rows", 1, 2, 8), 2), x.dtype)
    size = ex.compat.tripy.DimensionInputInfo((1, 2, 8))
    beside = {"x": x, "by": None}  # jax.jit moves a number to the device at each call: less than that is asked for

    def added(x):
        return x + 1

    def twice(x, y):
        return x + y

    def inside(d):
        return d["x"] + 1

    for what, info in (("one shape", array), ("a range", ranged)):
        yield f"{what}, 2×2", added, [info], [x], {}, [x], 1000
        yield f"{what}, {LEAVES} leaves", sum, [[info] * LEAVES], [[x] * LEAVES], {}, [[x] * LEAVES], 200
        yield f"{what}, NumPy", added, [info], [numpy], {}, [numpy], 1000
        yield f"{what}, NumPy twice", twice, [info, info], [numpy, numpy], {}, [numpy, numpy], 1000
        leaves = [[numpy] * LEAVES]
        yield f"{what}, {LEAVES} NumPy leaves", sum, [[info] * LEAVES], leaves, {}, leaves, 50
        for constant in (3.0, "relu", len, numpy):
            name = getattr(constant, "__name__", type(constant).__name__)
            described, given = {"x": info, "by": constant}, {"x": x, "by": constant}
            yield f"{what}, {name} beside", inside, [described], [given], {}, [beside], 1000
        yield f"{what}, a size", filled, [size, info], [3, x], {"static_argnums": 0}, [3, x], 1000
    weak, number = jnp.asarray(3.0), np.float32(3)
    yield "a weak scalar", added, [scalar], [weak], {}, [weak], 1000
    yield "np.float32", added, [scalar], [number], {}, [number], 1000


def cached_calls():
    """Of executables, over the same call of jax.jit."""
    for what, function, described, arguments, options, jits, calls in kinds():
        executable, jitted = ex.compile(function, args=described), jax.jit(function, **options)
        for _ in range(3):
            executable(*arguments), jitted(*jits)
        measured = ratio(lambda e=executable, a=arguments: e(*a), lambda j=jitted, a=jits: j(*a), calls)
        yield row(f"cached call, {what}, over jax.jit", measured, 1.10, "×")


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def growth(call):
    """Bytes that the process grows by in CALLS calls, once it is warm."""
    for _ in range(1000):
        call()
    gc.collect()
    before = resident()
    for _ in range(CALLS):
        call()
    gc.collect()
    return resident() - before


def memory():
    """What many calls leave behind, and of jax.jit beside it."""
    numbers = itertools.count()
    for what, function, described, arguments, options, jits, calls in kinds():
        if calls < 1000:
            continue
        executable, jitted = ex.compile(function, args=described), jax.jit(function, **options)
        grown, of_jit = (growth(lambda c=c, a=a: c(*a)) for c, a in ((executable, arguments), (jitted, jits)))
        print(f"    jax.jit: {of_jit / 1e6:.2f} MB")
        yield row(f"{CALLS} calls, {what}, grow by", grown, 1e6, "MB")
    info = ex.InputInfo((2, 2), jnp.float32)
    executable = ex.compile(lambda d: d["x"] + 1, args=[{"x": info, "by": 3.0}])
    x = jnp.ones((2, 2))
    changing = {
        "a number": lambda: executable({"x": x, "by": float(next(numbers))}),
        "a text": lambda: executable({"x": x, "by": str(next(numbers))}),
        "a list": lambda: executable({"x": x, "by": [next(numbers)]}),
        "an array": lambda: executable({"x": x, "by": np.ones(next(numbers) % 50)}),
    }
    for what, call in changing.items():
        yield row(f"{CALLS} calls beside {what} that changes, grow by", growth(call), 1e6, "MB")


def jitted_calls():
    """Of jit() without state to jax.jit, for every kind of argument."""
    x = jnp.ones((2, 2))
    array = np.ones((2, 2), np.float32)
    for what, function, arguments, options, calls in (
        ("2×2", lambda x: x + 1, (x,), {}, 1000),
        (f"{LEAVES} leaves", sum, ([x] * LEAVES,), {}, 200),
        ("NumPy", lambda x: x + 1, (array,), {}, 500),
        (f"{LEAVES} NumPy leaves", sum, ([array] * LEAVES,), {}, 50),
        ("Python scalars", lambda x, y: x + y, (1.0, 2), {}, 500),
        ("np scalars", lambda x, y: x + y, (np.float32(1), np.int32(2)), {}, 500),
        ("a weak type", lambda x: x + 1, (jnp.asarray(1.0),), {}, 1000),
        ("static", lambda x, n: x + n, (x, 2), {"static_argnums": 1}, 1000),
    ):
        ours, theirs = ex.jit(function, **options), jax.jit(function, **options)
        measured = ratio(lambda f=ours, a=arguments: f(*a), lambda f=theirs, a=arguments: f(*a), calls)
        yield row(f"jit(), {what}, over jax.jit", measured, 1.10, "×")


def captured_state():
    """Of jit() with its state captured, to handing the same arrays in and out."""
    x = jnp.ones((2, 2))
    state = [x for _ in range(CAPTURED)]
    model = SimpleNamespace(**{f"w{i}": x for i in range(CAPTURED)})
    nested = SimpleNamespace(layers=[SimpleNamespace(w=x, b=x, name=str(i)) for i in range(CAPTURED // 2)])

    @ex.jit(inputs=state, outputs=state)
    def in_a_list(x):
        state[:] = [one + x for one in state]

    @ex.jit(inputs=model, outputs=model)
    def in_an_object(x):
        for name, one in vars(model).items():
            setattr(model, name, one + x)

    @ex.jit(inputs=nested, outputs=nested)
    def in_objects(x):
        for layer in nested.layers:
            layer.w, layer.b = layer.w + x, layer.b + x

    own = list(state)
    by_hand = jax.jit(lambda state, x: [one + x for one in state])

    def hand():
        own[:] = by_hand(own, x)

    for what, captured, most in (
        ("a list", in_a_list, 1.3),
        ("an object", in_an_object, 1.5),
        (f"{CAPTURED // 2} objects", in_objects, 1.5),
    ):
        measured = ratio(lambda f=captured: f(x), hand, 100)
        yield row(f"jit(), {CAPTURED} captured arrays in {what}, over by hand", measured, most, "×")


def trained_module():
    """Of jit() with a flax nnx module and its Adam captured, to dicts of the same arrays handed in and out."""
    try:
        import optax
        from flax import nnx
    except ImportError:
        return
    x, y, adam = jnp.ones((4, 8)), jnp.ones((4, 1)), optax.adam(1e-3)

    class Net(nnx.Module):
        def __init__(self, rngs):
            self.one, self.two = nnx.Linear(8, 8, rngs=rngs), nnx.Linear(8, 1, rngs=rngs)

        def __call__(self, x):
            return self.two(jax.nn.relu(self.one(x)))

    model = Net(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, adam, wrt=nnx.Param)
    state = model, optimizer

    def loss_of(model, x, y):
        return ((model(x) - y) ** 2).mean()

    def update(x, y):
        loss, gradients = nnx.value_and_grad(loss_of)(model, x, y)
        optimizer.update(model, gradients)
        return loss

    captured = ex.jit(update, inputs=state, outputs=state)

    def plain_loss(weights, x, y):
        hidden = jax.nn.relu(x @ weights["one"]["kernel"] + weights["one"]["bias"])
        return ((hidden @ weights["two"]["kernel"] + weights["two"]["bias"] - y) ** 2).mean()

    @jax.jit
    def step(weights, moments, x, y):
        loss, gradients = jax.value_and_grad(plain_loss)(weights, x, y)
        updates, moments = adam.update(gradients, moments)
        return loss, optax.apply_updates(weights, updates), moments

    weights = nnx.to_pure_dict(nnx.state(model, nnx.Param))
    own = [weights, adam.init(weights)]

    def hand():
        _, *own[:] = step(*own, x, y)

    for _ in range(3):
        captured(x, y), hand()
    yield row("jit(), an nnx module and Adam, over by hand", ratio(lambda: captured(x, y), hand, 50), 2.0, "×")


def loading(layers):
    """Of a training step from a file, in a fresh process: its load and first call, to its compile."""
    step, arguments = training_step(layers)
    described = jax.tree.map(ex.InputInfo.like, arguments)
    start = perf_counter()
    executable = ex.compile(step, args=described)
    jax.block_until_ready(executable(*arguments))
    compiled = perf_counter() - start
    with TemporaryDirectory() as folder:
        path = Path(folder) / "step.explorer"
        executable.save(path, native=True)

        def seconds(trust):
            command = [sys.executable, "-c", LOAD_AND_CALL, str(path), str(layers), trust]
            runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(3)]
            return median(float(run.stdout) for run in runs)

        trusted, recompiled = seconds("trusted"), seconds("not")
        size = path.stat().st_size
    print(
        f"{layers} layers: compile {compiled:.2f} s; load and first call {trusted:.3f} s native, {recompiled:.2f} s not"
    )
    print(f"the file has {size / 1e6:.1f} MB")
    yield row("native load and first call, over compiling", trusted / compiled, 1 / 20, "×")
    yield row("other load and first call, over compiling", recompiled / compiled, 1.0, "×")


def main(only="", layers=4):
    rows = {
        "executables": cached_calls,
        "memory": memory,
        "jit": lambda: (*jitted_calls(), *captured_state(), *trained_module()),
        "loading": lambda: loading(layers),
    }
    return all([held for name, measure in rows.items() if only in ("", name) for held in measure()])


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:2], *map(int, sys.argv[2:])))
