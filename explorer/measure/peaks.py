"""peaks(): the most that this machine can do, measured once and kept."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from explorer._jax.calls import suppress_recording
from explorer.errors import ResultFileError
from explorer.files.disk import cache_folder
from explorer.measure import probes
from explorer.measure.device import default_device
from explorer.measure.machine import cores, last_cache, load, memory_bytes, processor
from explorer.measure.probes import Budget
from explorer.model.results.roofline import Peaks

_METHOD = 2  # how it is measured and kept; what another method gave is measured again
_SECONDS = 5  # what is said; on two cores it takes as long
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
    # What a busy machine gave is kept until there is a quieter moment.
    if kept is None or refresh or (key not in _kept and kept.is_provisional and not _is_busy()):
        print(f"explorer: measuring this machine once, about {_SECONDS} s", file=sys.stderr, flush=True)
        with suppress_recording():
            measured = _measure(environment)
        kept = measured if kept is None else kept.better(measured)
        _write(file, kept)
    _kept[key] = kept
    return kept


def _environment() -> dict[str, str]:
    """Return the settings that the figures depend on."""
    device = default_device()
    settings = {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "backend": device.platform,
        "device": device.device_kind,
        "x64": str(_has_x64()),
        "matmul precision": str(getattr(jax.config, "jax_default_matmul_precision", None)),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }
    if device.platform == "cpu":
        settings |= {"processor": processor(), "cores": str(cores())}
    return settings


def _has_x64() -> bool:
    return jax.dtypes.canonicalize_dtype(np.int64) == np.int64


def _is_busy() -> bool:
    return load() > _BUSY * cores()


def _read(file: Path, environment: Mapping[str, str]) -> Peaks | None:
    """Return the kept figures; None if there are none that can be read."""
    try:
        kept = Peaks.load(file)
    except (OSError, ResultFileError):
        return None
    return kept if kept.environment == environment and kept.bandwidth > 0 else None


def _write(file: Path, measured: Peaks) -> None:
    # A folder that can't be written to only costs the next session some seconds.
    # A folder that can't be written to only costs the next session some seconds.
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        measured.save(file)


def _measure(environment: Mapping[str, str]) -> Peaks:
    # Whatever the user has set for their own program is not for these: they are to be fast.
    with (
        jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False), jax.log_compiles(False),
        jax.transfer_guard("allow"),
    ):  # fmt: skip
        return _probe_all(environment)


class _Probes:
    """Measures figures until time is up; a figure that fails is 0, with a note."""

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
    # The most important figures first: those that there is no time for are left out.
    is_cpu = environment["backend"] == "cpu"
    was_busy = is_cpu and _is_busy()
    probes_ = _Probes(perf_counter() + _LONGEST)
    probe, large = probes_.probe, _large_array(is_cpu)
    bandwidth = probe("memory", probes.in_place_bandwidth, large, Budget(0.3, least=4))
    products = {"f32": _products(probe, "f32", is_cpu)}
    overhead = probe("kernel overhead", probes.kernel_seconds, Budget(0.05))
    call_overhead = probe("call overhead", probes.call_seconds, Budget(0.02, most=2000))
    caches = {size: probe("caches", probes.in_place_bandwidth, size, Budget(0.05)) for size in _CACHED}
    count = _SPECIAL_COUNT if is_cpu else _SPECIAL_COUNT_GPU
    special = {op: probe(op, probes.special_rate, op, count, Budget(0.01, least=5)) for op in probes.SPECIAL}
    special["sort"] = probe("sort", probes.sort_rate, *_SORTED, Budget(0.02))
    fresh = probe("new memory", probes.fresh_bandwidth, large // 4, Budget(0.2))
    for dtype in ["f64"] * _has_x64() + ["bf16", "f16", "s8"]:
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
        is_provisional=was_busy or bool(probes_.left_out),
        notes=tuple(probes_.notes),
        environment=dict(environment),
    )


def _measured(rates: Mapping[str, float]) -> dict[str, float]:
    return {name: rate for name, rate in rates.items() if rate}


def _products(probe: Callable[..., float], name: str, is_cpu: bool) -> tuple[float, float]:
    """Return the operations per second of matrix products and of multiply-adds in one dtype."""
    dtype = _DTYPES[name]
    budget = Budget(0.25 if name == "f32" else 0.1, least=2)
    matmul = probe(f"matmul {name}", probes.matmul_rate, dtype, budget, *(_MATMUL if is_cpu else _MATMUL_GPU))
    if name == "s8":  # multiply-adds of whole numbers that wrap are nobody's yardstick
        return matmul, 0.0
    lengths, count, steps = (64, 256), 1 << 22, 16
    if is_cpu and name in ("bf16", "f16"):  # most have no arithmetic of 16 bits, so that it takes many instructions
        lengths, count, steps = (8,), 1 << 16, 4
    elif is_cpu:
        lengths, count, steps = (8, 16, 32), 1 << 19, 8
    return matmul, probe(f"arithmetic {name}", probes.fma_rate, dtype, count, lengths, steps, budget)


def _large_array(is_cpu: bool) -> int:
    """Return a number of bytes that no cache holds and that the machine can spare."""
    if not is_cpu:
        return _LARGEST_GPU
    spare = memory_bytes() // 16 or _LARGEST
    return max(min(2 * last_cache(), _LARGEST, spare), 1 << 24)
