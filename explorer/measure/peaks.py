"""peaks(): what this machine can do at most, measured once and kept."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from explorer._jax.suppress_recording import suppress_recording
from explorer.measure import probes
from explorer.measure.device import default_device
from explorer.measure.machine import cores, last_cache, load, memory_bytes, processor
from explorer.measure.probes import Budget
from explorer.model.results.peaks import Peaks

__all__ = ["cache_folder", "peaks"]

_FORMAT = 1
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
_known: dict[str, Peaks] = {}


def peaks(*, refresh: bool = False) -> Peaks:
    """What this machine can do at most: memory and cache bandwidth, arithmetic by dtype, the cost of a kernel.

    It takes a few seconds, once for each machine, device and version of JAX: the figures are kept in the user's cache
    folder (`$EXPLORER_CACHE_DIR`, else `$XDG_CACHE_HOME/explorer`, else `~/.cache/explorer`) where that can be written.

    Args:
        refresh: Measure again, as when the machine was busy the first time; of both the better figure counts.

    Returns:
        Bytes a second, operations a second, seconds; see `Peaks`.

    Example:
        >>> machine = peaks()  # doctest: +SKIP
        >>> machine.least_seconds(flops=2 * 1024**3, bytes_=12 * 2**20, dtype="f32", is_matmul=True)  # doctest: +SKIP
        0.0142
    """
    environment = _environment()
    key = blake2b(json.dumps([_FORMAT, environment]).encode(), digest_size=8).hexdigest()
    file = cache_folder() / f"peaks-{key}.json"
    found = _known.get(key) or _read(file, environment)
    # What a busy machine gave is kept until there is a quieter moment.
    if found is None or refresh or (key not in _known and found.is_provisional and not _is_busy()):
        print(f"explorer: measuring this machine once, about {_SECONDS} s", file=sys.stderr, flush=True)
        with suppress_recording():
            measured = _measure(environment)
        found = measured if found is None else found.better(measured)
        _write(file, found)
    _known[key] = found
    return found


def cache_folder() -> Path:
    """Where what was measured is kept; it need not be there."""
    if own := os.environ.get("EXPLORER_CACHE_DIR"):
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path(os.path.expanduser("~"), ".cache")) / "explorer"


def _environment() -> dict[str, str]:
    """What the figures depend on."""
    device = default_device()
    known = {
        "jax": jax.__version__,
        "jaxlib": version("jaxlib"),
        "backend": device.platform,
        "device": device.device_kind,
        "x64": str(_has_x64()),
        "matmul precision": str(getattr(jax.config, "jax_default_matmul_precision", None)),
        "XLA_FLAGS": os.environ.get("XLA_FLAGS", ""),
    }
    if device.platform == "cpu":
        known |= {"processor": processor(), "cores": str(cores())}
    return known


def _has_x64() -> bool:
    return jax.dtypes.canonicalize_dtype(np.int64) == np.int64


def _is_busy() -> bool:
    return load() > _BUSY * cores()


def _read(file: Path, environment: Mapping[str, str]) -> Peaks | None:
    """What was kept; None where there is nothing, or nothing that can be read."""
    try:
        kept = cast("dict[str, Any]", json.loads(file.read_text(encoding="utf-8")))
        if kept.pop("format") != _FORMAT or kept["environment"] != environment:
            return None
        kept["caches"] = {int(size): float(rate) for size, rate in kept["caches"].items()}
        kept["notes"] = tuple(kept["notes"])
        found = Peaks(**kept)
        figures = [found.bandwidth, found.overhead, *found.matmul.values(), *found.fma.values()]
        return found if found.bandwidth > 0 and all(type(one) is float for one in figures) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _write(file: Path, measured: Peaks) -> None:
    """Whole or not at all; a folder that can't be written to costs the next session some seconds, not this one."""
    partial_file = file.with_name(f".{file.name}.{os.getpid()}.partial")
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            partial_file.write_text(json.dumps({"format": _FORMAT} | asdict(measured), indent=1), encoding="utf-8")
            partial_file.replace(file)
        finally:
            partial_file.unlink(missing_ok=True)


def _measure(environment: Mapping[str, str]) -> Peaks:
    # Whatever the user has set for their own program is not for these: they are to be fast.
    with (
        jax.disable_jit(False), jax.debug_nans(False), jax.debug_infs(False), jax.log_compiles(False),
        jax.transfer_guard("allow"),
    ):  # fmt: skip
        return _Measuring(environment).run()


class _Measuring:
    """One run of the probes, the most important first: what there is no time for is left out, and said."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.environment = environment
        self.notes: list[str] = []
        self.left_out: list[str] = []
        self.end = perf_counter() + _LONGEST
        self.is_cpu = environment["backend"] == "cpu"

    def run(self) -> Peaks:
        was_busy = self.is_cpu and _is_busy()
        matmul: dict[str, float] = {}
        fma: dict[str, float] = {}
        caches: dict[int, float] = {}
        bandwidth = self.probe("memory", partial(probes.in_place_bandwidth, self.large(), Budget(0.3, least=4)))
        self.products("f32", matmul, fma)
        overhead = self.probe("kernel overhead", partial(probes.kernel_seconds, Budget(0.05)))
        call = self.probe("call overhead", partial(probes.call_seconds, Budget(0.02, most=2000)))
        for size in _CACHED:
            rate = self.probe("caches", partial(probes.in_place_bandwidth, size, Budget(0.05)))
            if rate > bandwidth:
                caches[size] = rate
        count = _SPECIAL_COUNT if self.is_cpu else _SPECIAL_COUNT_GPU
        special = {
            op: self.probe(op, partial(probes.special_rate, op, count, Budget(0.01, least=5))) for op in probes.SPECIAL
        }
        special["sort"] = self.probe("sort", partial(probes.sort_rate, *_SORTED, Budget(0.02)))
        fresh = self.probe("new memory", partial(probes.fresh_bandwidth, self.large() // 4, Budget(0.2)))
        for dtype in ["f64"] * _has_x64() + ["bf16", "f16", "s8"]:
            self.products(dtype, matmul, fma)
        count = f", {self.environment['cores']} cores" if self.is_cpu else ""
        device = self.environment["processor"] if self.is_cpu else self.environment["device"]
        return Peaks(
            device=" ".join(device.split()) + count,
            bandwidth=bandwidth,
            matmul={dtype: rate for dtype, rate in matmul.items() if rate},
            fma={dtype: rate for dtype, rate in fma.items() if rate},
            special={op: rate for op, rate in special.items() if rate},
            overhead=overhead,
            call_overhead=call,
            caches=caches,
            fresh=fresh,
            is_provisional=was_busy or bool(self.left_out),
            notes=tuple(self.notes),
            environment=dict(self.environment),
        )

    def products(self, name: str, matmul: dict[str, float], fma: dict[str, float]) -> None:
        """The arithmetic of one dtype."""
        dtype = _DTYPES[name]
        sizes = _MATMUL if self.is_cpu else _MATMUL_GPU
        budget = Budget(0.25 if name == "f32" else 0.1, least=2)
        matmul[name] = self.probe(f"matmul {name}", partial(probes.matmul_rate, dtype, budget, *sizes))
        if name == "s8":  # multiply-adds of whole numbers that wrap are nobody's yardstick
            return
        is_narrow = name in ("bf16", "f16")
        lengths, count, steps = (64, 256), 1 << 22, 16
        if self.is_cpu:  # where most have no arithmetic of 16 bits, so that it takes many instructions
            lengths, count, steps = ((8,), 1 << 16, 4) if is_narrow else ((8, 16, 32), 1 << 19, 8)
        fma[name] = self.probe(f"arithmetic {name}", partial(probes.fma_rate, dtype, count, lengths, steps, budget))

    def probe(self, what: str, measure: Callable[[], float]) -> float:
        """One figure; 0 if it can't be had, with a note."""
        if perf_counter() >= self.end:
            self.left_out.append(what)
            return 0.0
        try:
            return measure()
        except Exception as error:  # a backend without this dtype, no memory: the other figures are still true
            self.notes.append(f"{what} could not be measured: {type(error).__name__}")
            return 0.0

    def large(self) -> int:
        """Bytes that no cache holds, and that the machine can spare."""
        if not self.is_cpu:
            return _LARGEST_GPU
        spare = memory_bytes() // 16 or _LARGEST
        return max(min(2 * last_cache(), _LARGEST, spare), 1 << 24)
