"""peaks(): the most that this machine can do, measured once and kept."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from explorer._jax.calls import suppress_recording
from explorer._jax.settings import settings_restored
from explorer.errors import ResultFileError
from explorer.files.disk import cache_folder
from explorer.measure.machine import cores, default_device, last_cache, load, memory_bytes, processor
from explorer.model.results.roofline import Peaks
from explorer.model.types import sort_flops

_METHOD = 2  # how it is measured and kept; what another method gave is measured again
_SECONDS = 5  # printed; that is what it takes on two cores
_CACHED = (1 << 18, 1 << 21, 1 << 24)  # bytes: about the sizes of caches, from a core's own to all cores'
_LARGEST = 1 << 29  # bytes of the array that must not fit in a cache: one larger takes too long to be made
_LARGEST_GPU = 1 << 30
_MATMUL, _MATMUL_GPU = (512, 2048), (2048, 8192)  # the sizes of a matrix
_LONGEST = 8.0  # seconds
_SORTED = (64, 1024)  # rows and columns
_BUSY = 0.5  # of the cores: what other programs take
_SPECIAL_COUNT, _SPECIAL_COUNT_GPU = 1 << 16, 1 << 22  # elements
_DTYPES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16, "f64": jnp.float64, "s8": jnp.int8}
_kept: dict[str, Peaks] = {}


def peaks(*, refresh: bool = False) -> Peaks:
    """Measure the most that this machine can do: bandwidth of memory and caches, arithmetic by dtype, cost of a
    kernel.

    It takes a few seconds, once per machine, device and version of JAX. The figures are kept in the cache folder
    (`$EXPLORER_CACHE_DIR`, else `$XDG_CACHE_HOME/explorer`, else `~/.cache/explorer`) if that is writable.

    Args:
        refresh: Measure again, for example if the machine was busy before. The better figures are kept.

    Returns:
        Bytes per second, operations per second, seconds; see `Peaks`.

    Example:
        >>> import explorer
        >>> machine = explorer.peaks()  # doctest: +SKIP
        >>> machine.least_seconds(flops=2 * 1024**3, bytes_=12 * 2**20, dtype="f32", is_matmul=True)  # doctest: +SKIP
        0.0142
    """
    environment = _environment()
    key = blake2b(json.dumps([_METHOD, environment]).encode(), digest_size=8).hexdigest()
    file = cache_folder() / f"peaks-{key}.json"
    kept = _kept.get(key) or _read(file, environment)
    # Figures of a busy machine are kept until it is quieter.
    if kept is None or refresh or (key not in _kept and kept.is_provisional and not _is_busy()):
        print(f"explorer: measuring this machine once, about {_SECONDS} s", file=sys.stderr, flush=True)
        # These compiles aren't the user's.
        with suppress_recording():
            measured = _measure(environment)
        kept = measured if kept is None else kept.better(measured)
        with suppress(OSError):  # without a folder to write to, the next session measures again
            file.parent.mkdir(parents=True, exist_ok=True)
            kept.save(file)
    _kept[key] = kept
    return kept


def _environment() -> dict[str, str]:
    """Return the settings that the figures depend on, by name: versions, device, XLA's flags, …."""
    device = default_device()
    settings = {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "backend": device.platform,
        "device": device.device_kind,
        "x64": str(jax.dtypes.canonicalize_dtype(np.int64) == np.int64),
        "matmul precision": str(getattr(jax.config, "jax_default_matmul_precision", None)),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }
    if device.platform == "cpu":
        settings |= {"processor": processor(), "cores": str(cores())}
    return settings


def _is_busy() -> bool:
    return load() > _BUSY * cores()


def _read(file: Path, environment: Mapping[str, str]) -> Peaks | None:
    """Return the figures kept in a file; None if it can't be read, is of another environment, or has no bandwidth."""
    try:
        kept = Peaks.load(file)
    except (OSError, ResultFileError):
        return None
    return kept if kept.environment == environment and kept.bandwidth > 0 else None


def _measure(environment: Mapping[str, str]) -> Peaks:
    # Whatever the user has set for their own program is not for these: they are to be fast.
    with (
        settings_restored(), jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False),
        jax.log_compiles(False), jax.transfer_guard("allow"),
    ):  # fmt: skip
        return _probe_all(environment)


class _Probes:
    """Runner of probes until time is up; a figure that fails is 0, with a note."""

    def __init__(self, end: float) -> None:
        self.end = end
        self.notes: list[str] = []
        self.left_out: list[str] = []

    def probe(self, what: str, measure: Callable[..., float], *args: Any) -> float:
        if perf_counter() >= self.end:
            self.left_out.append(what)
            return 0.0
        try:
            return measure(*args)
        except Exception as error:  # a backend without this dtype, no memory: the other figures are still true
            self.notes.append(f"{what} could not be measured: {type(error).__name__}")
            return 0.0


def _probe_all(environment: Mapping[str, str]) -> Peaks:
    # The most important figures first: those that there is no time for are left out.
    is_cpu = environment["backend"] == "cpu"
    was_busy = is_cpu and _is_busy()
    probes = _Probes(perf_counter() + _LONGEST)
    probe, large = probes.probe, _large_array(is_cpu)
    bandwidth = probe("memory", in_place_bandwidth, large, Budget(0.3, least=4))
    products = {"f32": _products(probe, "f32", is_cpu)}
    overhead = probe("kernel overhead", kernel_seconds, Budget(0.05))
    call_overhead = probe("call overhead", call_seconds, Budget(0.02, most=2000))
    caches = {size: probe("caches", in_place_bandwidth, size, Budget(0.05)) for size in _CACHED}
    count = _SPECIAL_COUNT if is_cpu else _SPECIAL_COUNT_GPU
    special = {op: probe(op, special_rate, op, count, Budget(0.01, least=5)) for op in SPECIAL}
    special["sort"] = probe("sort", sort_rate, *_SORTED, Budget(0.02))
    fresh = probe("new memory", fresh_bandwidth, large // 4, Budget(0.2))
    for dtype in ["f64"] * (environment["x64"] == "True") + ["bf16", "f16", "s8"]:
        products[dtype] = _products(probe, dtype, is_cpu)
    device = " ".join(environment["processor" if is_cpu else "device"].split())
    return Peaks(
        device=f"{device}, {environment['cores']} cores" if is_cpu else device,
        bandwidth=bandwidth,
        matmul=_measured({dtype: matmul for dtype, (matmul, _) in products.items()}),
        fma=_measured({dtype: fma for dtype, (_, fma) in products.items()}),
        special=_measured(special),
        overhead=overhead,
        call_overhead=call_overhead,
        caches={size: rate for size, rate in caches.items() if rate > bandwidth},
        fresh=fresh,
        is_provisional=was_busy or bool(probes.left_out),
        notes=tuple(probes.notes),
        environment=dict(environment),
    )


def _measured(rates: Mapping[str, float]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate}


def _products(probe: Callable[..., float], name: str, is_cpu: bool) -> tuple[float, float]:
    """Return operations per second in one dtype, (matrix products, multiply-adds); 0 for one that wasn't measured."""
    dtype = _DTYPES[name]
    budget = Budget(0.25 if name == "f32" else 0.1, least=2)
    matmul = probe(f"matmul {name}", matmul_rate, dtype, budget, *(_MATMUL if is_cpu else _MATMUL_GPU))
    if name == "s8":  # multiply-adds of integers that wrap are of no interest
        return matmul, 0.0
    lengths, count, steps = (64, 256), 1 << 22, 16
    if is_cpu and name in ("bf16", "f16"):  # most have no arithmetic of 16 bits, so that it takes many instructions
        lengths, count, steps = (8,), 1 << 16, 4
    elif is_cpu:
        lengths, count, steps = (8, 16, 32), 1 << 19, 8
    return matmul, probe(f"arithmetic {name}", fma_rate, dtype, count, lengths, steps, budget)


def _large_array(is_cpu: bool) -> int:
    """Return the bytes for an array that exceeds the caches, as far as the machine can spare the memory."""
    if not is_cpu:
        return _LARGEST_GPU
    spare = memory_bytes() // 16 or _LARGEST
    return max(min(2 * last_cache(), _LARGEST, spare), 1 << 24)


# Small programs whose time shows the most that a machine can do. Each is compiled as users' programs are, so that its
# rate is one that XLA can reach. All work depends on the arguments, or XLA would do it while compiling. A call has
# several steps, so that starting it costs little. The best of several calls counts, as other work can only take time
# away. (After Yang et al., *An Empirical Roofline Methodology for Quantitatively Assessing Performance Portability*,
# P3HPC 2018.)


_SPECIAL_STEPS = 8
# Operations dearer than a multiply-add, by HLO's name: steps that can be repeated on their own result.
SPECIAL: dict[str, Callable[[jax.Array], jax.Array]] = {
    "divide": lambda x: 0.7 / x,
    "erf": lax.erf,
    "exponential": lambda x: lax.exp(-x),
    "log": lambda x: lax.log(x + 1.5),
    "power": lambda x: lax.pow(x, x),
    "sine": lax.sin,
    "sqrt": lax.sqrt,
    "tanh": lax.tanh,
}
_SMALL = 4096  # elements: above 1 kB, below which XLA makes one kernel of a whole loop


@dataclass
class Budget:
    """Limits of one probe.

    Args:
        seconds: No further call is timed after this time.
        least: Minimum number of calls.
        most: Maximum number of calls.
    """

    seconds: float
    least: int = 3
    most: int = 50

    def best(self, call: Callable[[], Any]) -> float:
        """Return the seconds of the fastest of several calls, after one that isn't timed."""
        jax.block_until_ready(call())
        best, end = math.inf, perf_counter() + self.seconds
        for number in range(self.most):
            if number >= self.least and perf_counter() >= end:
                break
            start = perf_counter()
            jax.block_until_ready(call())
            best = min(best, perf_counter() - start)
        return best


def in_place_bandwidth(size: int, budget: Budget) -> float:
    """Return the bytes per second of reading and writing `size` bytes in place, repeatedly."""
    count, steps = max(size // 4, 1), max(2, min(64, (1 << 25) // size))
    # Powers of a factor near 1 stay finite over all steps.
    by, buffer = jnp.float32(1.0000001), [jnp.ones(count, jnp.float32)]
    # A donated buffer is written in place, without the cost of new memory.
    run = _compiled(_scaled(steps), buffer[0], by, donate=0)

    def call() -> jax.Array:
        buffer[0] = run(buffer[0], by)
        return buffer[0]

    # Each step reads and writes each float32.
    return 2 * 4 * count * steps / budget.best(call)


def fresh_bandwidth(size: int, budget: Budget) -> float:
    """Return the bytes per second of reading `size` bytes and writing as many into newly allocated memory."""
    count = max(size // 4, 1)
    x, by = jnp.ones(count, jnp.float32), jnp.float32(1.0000001)
    run = _compiled(_scaled(1), x, by)
    return 2 * 4 * count / budget.best(partial(run, x, by))


def fma_rate(dtype: Any, count: int, lengths: Sequence[int], steps: int, budget: Budget) -> float:
    """Return the operations per second of multiply-adds on `count` elements that stay in the caches.

    Args:
        dtype: Of the elements.
        count: Number of elements.
        lengths: Lengths of multiply-add chains to try: the best use of registers differs by machine.
        steps: Passes over the elements per call.
        budget: For each length.
    """
    factor, x = jnp.asarray(0.5, dtype), jnp.ones(count, dtype)

    def rate(length: int) -> float:
        def chain(by: jax.Array, step: Any, value: jax.Array) -> jax.Array:
            for _ in range(length):
                value = value * by + by
            return value

        def loop(x: jax.Array, by: jax.Array) -> jax.Array:
            return _looped(steps, partial(chain, by), x)

        run = _compiled(loop, x, factor)
        return 2 * length * steps * count / budget.best(partial(run, x, factor))

    return max(map(rate, lengths))


def matmul_rate(dtype: Any, budget: Budget, least: int, largest: int) -> float:
    """Return the operations per second of a product of square matrices, at the fastest size."""
    # Sums of int8 products need more bits than int8 has.
    accumulated = jnp.int32 if jnp.issubdtype(dtype, jnp.integer) else dtype
    best, size = 0.0, least
    while size <= largest:
        x = jnp.ones((size, size), dtype)
        run = _compiled(partial(lax.dot, preferred_element_type=accumulated), x, x)
        seconds = budget.best(partial(run, x, x))
        rate = 2 * size**3 / seconds
        if rate < 1.15 * best or 8 * seconds > budget.seconds:  # larger would not be faster, or take too long
            return max(rate, best)
        best, size = rate, 2 * size
    return best


def special_rate(op: str, count: int, budget: Budget) -> float:
    """Return the elements per second of an operation dearer than a multiply-add, on `count` cached elements."""

    def loop(x: jax.Array) -> jax.Array:
        return _looped(_SPECIAL_STEPS, lambda _, value: SPECIAL[op](value), x)

    x = jnp.linspace(0.1, 0.9, count, dtype=jnp.float32)
    run = _compiled(loop, x)
    return count * _SPECIAL_STEPS / budget.best(partial(run, x))


def sort_rate(rows: int, columns: int, budget: Budget) -> float:
    """Return the comparisons per second of sorting rows that are sorted already, the fastest case."""
    x = jnp.arange(rows * columns, dtype=jnp.float32).reshape(rows, columns)
    run = _compiled(partial(lax.sort, dimension=1, is_stable=False), x)
    return sort_flops(rows * columns, columns) / budget.best(partial(run, x))


def kernel_seconds(budget: Budget) -> float:
    """Return the seconds that one more kernel adds to a program, if it does next to nothing."""
    x, by = jnp.ones(_SMALL, jnp.float32), jnp.float32(1.0000001)

    def seconds(steps: int) -> tuple[float, int]:
        run = _compiled(_scaled(steps), x, by)
        kernels = run.as_text().count(" fusion(")  # the body's, the counter's, the condition's
        return budget.best(partial(run, x, by)), max(kernels, 1)

    # The difference of two lengths has no cost of the call.
    (few, _), (many, kernels) = seconds(8), seconds(8 + 512)
    return max(many - few, 0.0) / (512 * kernels)


def call_seconds(budget: Budget) -> float:
    """Return the seconds of a call of a compiled function that does next to nothing."""
    x = jnp.zeros((), jnp.float32)
    run: Any = jax.jit(partial(jnp.add, 1))
    return budget.best(partial(run, x))


def _scaled(steps: int) -> Callable[[jax.Array, jax.Array], jax.Array]:
    def scaled(x: jax.Array, by: jax.Array) -> jax.Array:
        return _looped(steps, lambda _, value: value * by, x)

    return scaled


def _looped(steps: int, body: Callable[[Any, jax.Array], jax.Array], x: jax.Array) -> jax.Array:
    return cast(Any, lax).fori_loop(0, steps, body, x)


def _compiled(function: Callable[..., Any], *args: Any, donate: Any = ()) -> Any:
    return jax.jit(function, donate_argnums=donate).lower(*args).compile()
