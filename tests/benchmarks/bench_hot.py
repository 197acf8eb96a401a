"""Hot paths against the same code eager and the same code under a hand-written `jax.jit`.

python -m tests.benchmarks.bench_hot [what]

Each figure is the median of rounds in which the ways run in turns, so that a machine that slows down slows all of them;
of microseconds and of a few percent it is by the best rounds: what disturbs one makes it longer by far more than those.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import jax
import jax.numpy as jnp
import numpy as np

from explorer.hotpath.hot import HotFunction, Options
from tests.benchmarks.table import row

RNG = np.random.default_rng(0)
X = jnp.asarray(RNG.normal(size=(128, 784)), jnp.float32)
Y = jnp.asarray(RNG.integers(0, 10, 128))
SIZES = ((784, 256), (256,), (256, 10), (10,))
WEIGHTS = [jnp.asarray(RNG.normal(size=size) * 0.05, jnp.float32) for size in SIZES]
SQUARE = jnp.asarray(RNG.normal(size=(128, 128)) / 12, jnp.float32)
LARGE = jnp.asarray(RNG.normal(size=(512, 512)), jnp.float32)
HEADS = jnp.asarray(RNG.normal(size=(4, 64, 64)), jnp.float32)


def matmul_chain(a):
    x = a
    for _ in range(8):
        x = jnp.maximum(x @ a, 0) * 0.5
    return x.sum()


def mlp_loss(weights, x, y):
    hidden = jnp.maximum(x @ weights[0] + weights[1], 0)
    logits = hidden @ weights[2] + weights[3]
    logs = logits - jax.scipy.special.logsumexp(logits, -1, keepdims=True)
    return -jnp.mean(jnp.take_along_axis(logs, y[:, None], 1))


def mlp_step(weights, x, y):
    loss, gradients = jax.value_and_grad(mlp_loss)(weights, x, y)
    return [weight - 0.1 * gradient for weight, gradient in zip(weights, gradients, strict=True)], loss


def attention(q):
    scores = jnp.einsum("htd,hsd->hts", q, q) / jnp.sqrt(q.shape[-1])
    scores = jnp.where(jnp.tril(jnp.ones(scores.shape[-2:], bool)), scores, -1e9)
    out = jax.nn.softmax(scores, -1) @ q
    return jax.nn.gelu(out + q) * 0.5


def mixed(a):
    x = jnp.sort(a, axis=0)[:64] + jnp.cumsum(a, axis=1)[:64]
    x = jnp.where(x > 0, jnp.sqrt(jnp.abs(x)), jnp.exp(-jnp.abs(x)))
    return x.reshape(-1, 32).mean(1), x.T @ x


def elementwise(x):
    for _ in range(5):
        x = jnp.tanh(x * 1.01 + 0.1) - x * 0.5
    return x


def reductions(x):
    mean = jnp.mean(x, 1, keepdims=True)
    variance = jnp.mean((x - mean) ** 2, 1, keepdims=True)
    y = (x - mean) / jnp.sqrt(variance + 1e-5)
    return jnp.sum(y * y), jnp.max(y, 0), jnp.min(y, 0)


WORKLOADS = (
    ("matmul chain", matmul_chain, (SQUARE,), 1.2),
    ("MLP training step", mlp_step, (WEIGHTS, X, Y), 8.0),
    ("attention block", attention, (HEADS,), 1.2),
    ("mixed operations", mixed, (SQUARE,), 0.97),  # most of it is a sort, which takes as long compiled
    ("element-wise chain", elementwise, (LARGE,), 3.0),
    # The seed's table gives no sizes; this is its batch. Of 512 × 512 XLA's own program is only 2.4 to 3 × as fast as
    # operations one by one.
    ("reductions", reductions, (X,), 3.0),
)


def twin(function):
    """A function of the same code that is another one."""
    return type(function)(function.__code__, function.__globals__, function.__name__)


def in_turns(ways, seconds=0.05, rounds=15, of_rounds=median):
    """Seconds of a call, each way, over some rounds."""
    counts, spent = {}, {name: [] for name in ways}
    for name, call in ways.items():
        jax.block_until_ready(call())  # compiles, if nothing did before: one call a round would wait for each result
        begun = perf_counter()
        jax.block_until_ready(call())
        counts[name] = max(1, int(seconds / max(perf_counter() - begun, 1e-7)))
    for turn in range(rounds):
        for name in list(ways) if turn % 2 else list(ways)[::-1]:
            call, count = ways[name], counts[name]
            begun = perf_counter()
            for _ in range(count):
                result = call()
            jax.block_until_ready(result)
            spent[name].append((perf_counter() - begun) / count)
    return {name: of_rounds(times) for name, times in spent.items()}


def made_hot(function, *args, calls=10, **options):
    """A function made hot, and called until it is compiled or stays eager."""
    hot = HotFunction(function, Options(calls, 0.05 if calls == 10 else 0.0, lambda work: work(), **options))
    hot.watch()
    until = perf_counter() + 30
    while hot.state not in ("compiled", "eager") and perf_counter() < until:
        jax.block_until_ready(function(*args))
    return hot


def speedups():
    """Of each workload against eager, and against a hand-written jit."""
    for name, function, args, least in WORKLOADS:
        eager, hand = twin(function), jax.jit(twin(function))
        hot = made_hot(function, *args)
        if hot.state != "compiled":
            print(f"{name} stays eager: {hot.refusal}")
        times = in_turns(
            {"eager": lambda: eager(*args), "hot": lambda: function(*args), "hand": lambda: hand(*args)}  # noqa: B023
        )
        hot.release()
        eager_over, of_hand = times["eager"] / times["hot"], times["hand"] / times["hot"]
        print(f"{name}: {eager_over:.1f} × as fast as eager, {of_hand:.0%} of a hand-written jit", flush=True)
        yield row(f"{name}: its time over eager", times["hot"] / times["eager"], 1 / least, "×")
        if hot.state == "compiled":
            yield row(f"{name}: its time over a hand-written jit's", times["hot"] / times["hand"], 1 / 0.7, "×")


COUNT = [0]


def counts(x):
    COUNT[0] += 1
    return jnp.sin(x) + 1


def one_operation(x):
    return jnp.sin(x)


def grows(x):
    return jnp.tanh(x * 2) + 1


def never_slower():
    """What can't be compiled or isn't faster, and what is on its way, against the same code unwatched."""
    for name, function, calls in (
        ("10,000 calls of a function that counts", counts, 10_000),
        ("10,000 calls of a single operation", one_operation, 10_000),
    ):
        eager, parts, rounds = twin(function), 20, 15
        spent = {way: np.full((rounds, parts), np.inf) for way in ("hot", "eager")}
        for turn in range(rounds):
            mine = twin(function)
            hot = HotFunction(mine, Options(10, 0.05, lambda work: work()))
            hot.watch()
            # A part of the calls each in turns: what disturbs one way for half a second disturbs the other as well.
            for part in range(parts):
                for way, run in (("hot", mine), ("eager", eager))[:: 1 if (turn + part) % 2 else -1]:
                    begun = perf_counter()
                    for _ in range(calls // parts):
                        result = run(SQUARE)
                    jax.block_until_ready(result)
                    spent[way][turn, part] = perf_counter() - begun
            hot.release()
        # The first part has what it takes to look at it; of a disturbed machine the same code over itself is 0.97-1.03.
        yield row(
            f"{name}, over unwatched", float(np.median(spent["hot"] / spent["eager"], axis=0).mean()), 1 / 0.97, "×"
        )
    for name, function, args in (
        ("training step", mlp_step, (WEIGHTS, X, Y)),
        ("single operation", one_operation, (X,)),
    ):
        eager, mine = twin(function), twin(function)
        hot = HotFunction(mine, Options(10**9, 0.0, lambda work: work()))
        hot.watch()
        for _ in range(300):
            mine(*args)
        ways = {"eager": lambda: eager(*args), "counted": lambda: mine(*args)}  # noqa: B023
        times = in_turns(ways, rounds=31, of_rounds=min)
        hot.release()
        yield row(f"before the threshold, a {name}, over unwatched", times["counted"] / times["eager"], 1.1, "×")


def guard_hit():
    """What a compiled call takes more than one of a `jax.jit` function with the same 20 arrays."""
    weights, x = [jnp.ones((4, 4)) for _ in range(19)], jnp.ones((4, 4))

    def scaled(weights, x):
        return [weight * x + 1 for weight in weights]

    def read(x):
        return x * SCALE + OFFSET

    for name, function, args in (("20 arrays", scaled, (weights, x)), ("1 array, 2 read from outside", read, (x,))):
        hand = jax.jit(twin_of_closure(function))
        hot = made_hot(function, *args, calls=1, is_forced=True)
        assert hot.state == "compiled", hot.refusal
        hand(*args)
        spent = {"hot": [], "hand": []}
        for turn in range(101):
            for way, call in (("hot", function), ("hand", hand))[:: 1 if turn % 2 else -1]:
                begun = perf_counter()
                for _ in range(200):
                    call(*args)
                spent[way].append((perf_counter() - begun) / 200)
        hot.release()
        more = min(spent["hot"]) - min(spent["hand"])
        yield row(f"guards that hold over jax.jit's call, {name}", more, 5e-6, "µs")


SCALE, OFFSET = jnp.float32(2), 1.0


def twin_of_closure(function):
    return type(function)(function.__code__, function.__globals__, function.__name__, None, function.__closure__)


def flat_memory(operations=1_000_000):
    """Bytes by which the process grows over eager operations of ever new shapes, in functions that are watched."""

    def resident():
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    # Shapes that are new to this function and known to JAX, which keeps a program for each of its own.
    arrays = [jnp.ones((rows, columns)) for rows in range(1, 9) for columns in range(1, 9)]
    hot = HotFunction(grows, Options(10, 0.05, lambda work: work()))
    hot.watch()
    for array in arrays:
        grows(array)
    before, done, most = 0, 0, 0
    while done < operations:
        for at, array in enumerate(arrays):
            grows(array)
            if at % 16 == 0:
                (lambda x: x + done)(array)
        done += 3 * len(arrays)
        if not before and done > operations / 10:
            before = resident()
    most = resident() - before
    hot.release()
    print(f"{hot.state}, {hot.calls}, {len(hot.variants)} variants")
    return row(f"{operations:,} operations, changing shapes: the process grows", most, 10e6, "MB")


def main(what=""):
    held = []
    for name, part in (("speedups", speedups), ("slower", never_slower), ("guard", guard_hit)):
        if what in ("", name):
            held += part()
    if what in ("", "memory"):
        held.append(flat_memory())
    return all(held)


if __name__ == "__main__":
    sys.exit(not main(*sys.argv[1:]))
