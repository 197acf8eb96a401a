"""What padding gains over a compile for each size, and what it costs at a size that needs none.

python -m tests.benchmarks.bench_padding [stream|stalls|cost|transfer|peers [sizes]]

`peers` takes the stream through torch.compile(dynamic=True) and mlx.compile(shapeless=True), by the interpreter that
EXPLORER_PEERS names (`make bench-peers` makes one: .venv-peers/bin/python); who isn't installed there is left out.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

import explorer as ex
from explorer.padding.transfer import Resize
from tests.benchmarks.table import row

LARGEST = 64
WIDTH = 64
ROUNDS = 31


def classifier():
    """Two blocks of attention and a perceptron over `batch × seq × WIDTH`, with weights that it closes over."""
    random = np.random.default_rng(0)

    def weights(*shape):
        return jnp.asarray(random.normal(size=shape) / np.sqrt(shape[0]), jnp.float32)

    layers = [(weights(WIDTH, 3 * WIDTH), weights(WIDTH, 4 * WIDTH), weights(4 * WIDTH, WIDTH)) for _ in range(2)]

    def normalized(x):
        x = x - x.mean(-1, keepdims=True)
        return x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)

    def classify(x):
        for projection, up, down in layers:
            query, key, value = jnp.split(normalized(x) @ projection, 3, axis=-1)
            scores = jnp.einsum("bsd,btd->bst", query, key) / np.sqrt(WIDTH)
            x = x + jnp.einsum("bst,btd->bsd", jax.nn.softmax(scores, axis=-1), value)
            x = x + jax.nn.gelu(normalized(x) @ up) @ down
        return x.mean(axis=1)

    return classify


def stream(count):
    """Arrays of random sizes, as a server gets them."""
    random = np.random.default_rng(1)
    for batch, seq in random.integers(1, LARGEST + 1, (count, 2)):
        yield random.normal(size=(batch, seq, WIDTH)).astype(np.float32)


def described():
    batch, seq = (ex.NamedDimension(name, 1, LARGEST // 2, LARGEST) for name in ("batch", "seq"))
    return ex.InputInfo((batch, seq, WIDTH), "float32")


def timed(make, arrays):
    """Seconds of making a function, and of each call until its result is there."""
    start = perf_counter()
    function = make()
    made = perf_counter() - start
    seconds = []
    for array in arrays:
        start = perf_counter()
        jax.block_until_ready(function(array))
        seconds.append(perf_counter() - start)
    return function, made, seconds


def padded_stream(count):
    """Of everything that a stream of sizes takes, compiling included: jax.jit over padding."""
    arrays = list(stream(count))
    for name, options in (
        ("powers of two by demand", {}),
        ("{16, 32, 64} by demand", {"buckets": {"batch": (16, 32), "seq": (16, 32)}}),
    ):
        exe, made, seconds = timed(
            lambda o=options: ex.compile(classifier(), args=[described()], dynamic="pad", **o), arrays
        )
        exe.padded.join()
        binaries = exe.dynamic_report.binaries
        print(
            f"{name}: {made:.2f} s to compile, {sum(seconds):.2f} s for {count} calls, {len(binaries)} binaries, "
            f"median {median(seconds) * 1e3:.1f} ms, largest {max(seconds) * 1e3:.1f} ms"
        )
        yield name, made + sum(seconds), seconds, exe


def streams(count):
    results = list(padded_stream(count))
    _, made, seconds = timed(lambda: jax.jit(classifier()), stream(count))
    plain = made + sum(seconds)
    print(f"jax.jit: {plain:.2f} s for {count} calls, median {median(seconds) * 1e3:.1f} ms")
    for name, spent, _, _ in results:
        yield row(f"{count} sizes, padding over jax.jit, {name}", spent / plain, 1 / 10, "×")


def peers(count):
    """The stream by each: what it takes in all, compiling included, and at a call."""
    python = os.environ.get("EXPLORER_PEERS", str(Path(sys.prefix).with_name(".venv-peers") / "bin" / "python"))
    module = "tests.benchmarks.peers.dynamic_stream"
    for name in ("torch", "mlx"):
        command = [python, "-m", module, name, str(count)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            why = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
            print(f"    {name}: left out, {why}")
            continue
        shown(f"{name}, one program for all sizes", 0.0, json.loads(done.stdout)["seconds"])
    arrays = list(stream(count))
    for name, make in (
        ("compile(dynamic='pad')", lambda: ex.compile(classifier(), args=[described()], dynamic="pad")),
        ("jit(shapeless=True)", lambda: ex.jit(classifier(), shapeless=True)),
        ("jax.jit", lambda: jax.jit(classifier())),
    ):
        _, made, seconds = timed(make, arrays)
        shown(name, made, seconds)
    return ()


def shown(name, made, seconds):
    later = seconds[1:]
    print(
        f"    {name}: {made + sum(seconds):.2f} s in all, first call {made + seconds[0]:.2f} s, then median "
        f"{median(later) * 1e3:.1f} ms, p99 {float(np.quantile(later, 0.99)) * 1e3:.1f} ms"
    )


def stalls(count):
    """Of the calls after the first, while other binaries are compiled beside them."""
    for name, _, seconds, _ in padded_stream(count):
        ordered = np.sort(seconds[1:])
        yield row(f"p99 over median, {name}", float(np.quantile(ordered, 0.99) / np.median(ordered)), 3.0, "×")


def interleaved(run, baseline, calls):
    """How many times as long one takes as the other: the median over rounds, in turns."""
    ratios, spent = [], {}
    for turn in range(ROUNDS):
        for function in (run, baseline) if turn % 2 else (baseline, run):
            start = perf_counter()
            for _ in range(calls):
                jax.block_until_ready(function())
            spent[function] = (perf_counter() - start) / calls
        ratios.append(spent[run] / spent[baseline])
    return median(ratios), spent[run], spent[baseline]


def at_bucket(function, shape, dimensions):
    """A padded call whose size is its bucket's, over the specialised binary's."""
    info = ex.InputInfo(tuple(dimensions.get(axis, size) for axis, size in enumerate(shape)), "float32")
    padded = ex.compile(function, args=[info], dynamic="pad")
    padded.padded._demand.note = lambda *_: None  # no exact binary may come
    exact = jax.jit(function)
    x = jnp.asarray(np.random.default_rng(0).normal(size=shape), jnp.float32)
    jax.block_until_ready((padded(x), exact(x)))
    return interleaved(lambda: padded(x), lambda: exact(x), 5)


def costs():
    kinds = {
        "classifier": (classifier(), (64, 64, WIDTH), (0, 1)),
        "softmax over the padded axis": (lambda x: jax.nn.softmax(x, axis=1), (2048, 2048), (1,)),
        # Not of what comes in, whose padding is filled as the maximum wants it, but of what is computed.
        "softmax of products over the padded axis": (lambda x: jax.nn.softmax(x * x, axis=1), (2048, 2048), (1,)),
        "softmax over a whole axis": (lambda x: jax.nn.softmax(x, axis=1), (2048, 512), (0,)),
        "norm over the padded axis": (
            lambda x: (x - x.mean(1, keepdims=True)) / (x.std(1, keepdims=True) + 1e-5),
            (2048, 2048),
            (1,),
        ),
        "merged axes": (
            lambda x: jax.nn.relu(x.reshape(-1, x.shape[-1]) @ np.eye(128, dtype=np.float32)).reshape(x.shape),
            (64, 64, 128),
            (0, 1),
        ),
        "sorted": (lambda x: jnp.sort(x, axis=1), (64, 1024), (1,)),
        "matmul and sum": (lambda x: (x @ x.T).sum(0), (512, 512), (0,)),
    }
    for name, (function, shape, axes) in kinds.items():
        dimensions = {axis: ex.NamedDimension(f"d{axis}", 1, shape[axis], shape[axis]) for axis in axes}
        try:
            measured, spent, baseline = at_bucket(function, shape, dimensions)
        except ex.errors.PaddingError as error:
            print(f"    {name}: {error}")
            continue
        print(f"    {name}: {spent * 1e3:.2f} ms padded, {baseline * 1e3:.2f} ms by jax.jit")
        yield row(f"at a bucket's size, {name}", measured, 1.5, "×")


def transfer():
    """Padding and cutting of one array by NumPy and by a program, without the program's compile."""
    for shape, largest in (((5, 8), (8, 8)), ((33, 17, 64), (64, 64, 64)), ((50, 60, 512), (64, 64, 512))):
        x, whole = jnp.ones(shape), jnp.ones(largest)
        double = jax.jit(lambda x: x * 2)
        resize = Resize([shape], [largest])
        back = Resize([largest], [shape])
        size = whole.nbytes
        for name, one, other, array in (("pad", resize, resize.pad, x), ("cut", back, back.cut, whole)):
            by_numpy, by_program = [], []
            start = perf_counter()
            jax.block_until_ready(other([array], False))
            compiled = perf_counter() - start
            for _ in range(ROUNDS):
                for is_on_host, into in ((True, by_numpy), (False, by_program)):
                    start = perf_counter()
                    (made,) = other([array], is_on_host)
                    jax.block_until_ready(double(made))
                    into.append(perf_counter() - start)
            print(
                f"{name} {shape} of {largest}, {size / 1e6:.2f} MB: NumPy {median(by_numpy) * 1e6:.0f} µs, a program "
                f"{median(by_program) * 1e6:.0f} µs after {compiled * 1e3:.0f} ms, each with a double of the result"
            )
            assert one.changed
    return ()


def main(only="", count=200):
    rows = {
        "stream": lambda: streams(count),
        "stalls": lambda: stalls(count),
        "cost": costs,
        "transfer": transfer,
        "peers": lambda: peers(count),
    }
    return all(
        [held for name, measure in rows.items() if only == name or (not only and name != "peers") for held in measure()]
    )


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:2], *map(int, sys.argv[2:])))
