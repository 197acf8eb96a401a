"""JAX's settings: carrying a thread's settings to another thread, and XLA's options by level.

Public are only the context managers of single settings, which don't say what is set now.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, overload

import jax
import jaxlib

from explorer.model.declared import cached_property

try:
    from jax._src import config as _config  # pyright: ignore

    _unset: Any = vars(_config.config_ext)["unset"]  # pyright: ignore
    _settings: tuple[Any, ...] = tuple(
        value for value in vars(_config).values() if isinstance(value, _config.config_ext.Config)
    )
    _debug_nans: Any = vars(_config)["debug_nans"]
    _debug_infs: Any = vars(_config)["debug_infs"]
    _disable_jit: Any = vars(_config)["disable_jit"]
    _guard: Any = vars(_config)["transfer_guard_host_to_device"]
    _settings[0].get_local()
except (ImportError, AttributeError, KeyError, IndexError):  # pragma: no cover - then nothing may be compiled elsewhere
    _config = None
    _settings = ()


if _config is not None:

    def shows_compiled() -> bool:
        """Return True if a compiled call would differ visibly from the same operations one by one.

        That is so in `as_written`, and under JAX's checks for NaNs and infinities, `jax_disable_jit` and transfer
        guards.
        """
        looked_at = _debug_nans.value or _debug_infs.value
        return bool(_written[0] or looked_at or _disable_jit.value or _guard.value not in _ALLOWED)

else:  # pragma: no cover

    def shows_compiled() -> bool:
        return True


def metadata_in_cache_key() -> AbstractContextManager[object]:
    """Return a context in which names count in the keys of JAX's persistent cache.

    Otherwise a plain and a numbered program have the same key, and one would be found in place of the other.
    """
    setting: Any = getattr(_config, "compilation_cache_include_metadata_in_key", None)
    return nullcontext() if setting is None else setting(True)


_ALLOWED = (None, "allow")
_written = [0]  # how many ask for it now


@contextmanager
def as_written() -> Generator[None]:
    """Run hot functions operation by operation in this context, on all threads, to measure how long that takes."""
    _written[0] += 1
    try:
        yield
    finally:
        _written[0] -= 1


def local_settings() -> tuple[tuple[Any, Any], ...]:
    """Return (setting, value) of each setting of this thread alone, such as `jax.enable_x64(True)`."""
    return tuple((setting, value) for setting in _settings if (value := setting.get_local()) is not _unset)


@contextmanager
def with_settings(settings: tuple[tuple[Any, Any], ...]) -> Generator[None]:
    """Apply another thread's settings in this context."""
    before = [(setting, setting.get_local()) for setting, _ in settings]

    def restore() -> None:
        for setting, value in before:
            setting.set_local(value)

    with undone(restore):
        for setting, value in settings:
            setting.set_local(value)
        yield


@contextmanager
def settings_restored() -> Generator[None]:
    """Restore this thread's settings after this context, also where an interrupt comes as JAX changes one.

    JAX's own contexts lose the former value if an interrupt comes while they begin or end.
    """
    before = [(setting, setting.get_local()) for setting in _settings]

    def restore() -> None:
        for setting, value in before:
            if setting.get_local() is not value:
                hook = getattr(setting, "_update_thread_local_hook", None)
                if hook is not None:
                    hook(None if value is _unset else value)
                setting.set_local(value)

    with undone(restore):
        yield


@contextmanager
def nothing_cached() -> Generator[None]:
    """Keep what is compiled within out of the persistent cache; a program that is already there is still read."""
    name = "jax_persistent_cache_min_compile_time_secs"
    with undone(partial(jax.config.update, name, getattr(jax.config, name))):
        jax.config.update(name, float("inf"))
        yield


@contextmanager
def undone(undo: Callable[[], object]) -> Generator[None]:
    """Call `undo` at the end of this context, twice, because an interrupt may come in the first call."""
    try:
        yield
    finally:
        try:
            undo()
        finally:
            undo()


# Settings on which traces, lowering and results depend. The others are about error messages and paths.
_OF_PROGRAMS = frozenset(
    f"jax_{name}"
    for name in (
        *("enable_x64", "explicit_x64_dtypes", "numpy_dtype_promotion", "numpy_rank_promotion", "disable_jit"),
        *("default_matmul_precision", "default_prng_impl", "threefry_partitionable", "enable_custom_prng"),
        *("legacy_prng_key", "debug_nans", "debug_infs", "softmax_custom_jvp", "use_shardy_partitioner"),
        *("optimization_level", "memory_fitting_level", "use_direct_linearize", "enable_remat_opt_pass"),
    )
)


def named_settings() -> dict[str, Any]:
    """Return the settings that a program depends on, by name, as in this thread: for another process."""
    return {name: setting.value for setting in _settings if (name := getattr(setting, "name", "")) in _OF_PROGRAMS}


def settings_by_name(values: Mapping[str, Any]) -> tuple[tuple[Any, Any], ...]:
    """Return (setting, value) pairs for `with_settings` from values by name, without settings that this JAX lacks."""
    return tuple((setting, values[name]) for setting in _settings if (name := getattr(setting, "name", "")) in values)


Options = Mapping[str, Any]

LEVELS: dict[int, Options] = {
    0: {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True},
    1: {"xla_backend_optimization_level": 1},
    2: {"xla_backend_optimization_level": 2},
    3: {},
}
MORE: dict[str, Options] = {
    "cpu": {"xla_cpu_parallel_codegen_split_count": 1, "xla_cpu_prefer_vector_width": 512},
    "gpu": {"xla_gpu_exhaustive_tiling_search": True, "xla_gpu_enable_latency_hiding_scheduler": True},
}
TRIED: dict[str, Sequence[Options]] = {
    "cpu": (
        {"xla_cpu_prefer_vector_width": 512},
        {"xla_cpu_parallel_codegen_split_count": 1},
        {"xla_cpu_enable_concurrency_optimized_scheduler": True},
        {"xla_cpu_copy_insertion_use_region_analysis": True},
    ),
    "gpu": (
        {"xla_gpu_triton_gemm_any": True},
        {"xla_gpu_enable_triton_gemm": False},
        {"xla_gpu_enable_latency_hiding_scheduler": True},
        {"xla_gpu_exhaustive_tiling_search": True},
    ),
}


def level_options(level: int) -> Options:
    """Return XLA's options for a level, 0 to 4, on the default backend."""
    return MORE.get(jax.default_backend(), {}) if level == 4 else LEVELS[level]


def measured_options() -> list[Options]:
    """Return the sets of options from which level 5 keeps the fastest, XLA's own first."""
    backend = jax.default_backend()
    return [LEVELS[3], MORE.get(backend, {}), *TRIED.get(backend, ())]


class LazyOptions(Sequence[Options]):
    """Sets of options that are made at the first compile: to know the backend starts it."""

    def __init__(self, get: Callable[[], Sequence[Options]]) -> None:
        self._get = get

    @cached_property
    def _sets(self) -> Sequence[Options]:
        return self._get()

    def __len__(self) -> int:
        return len(self._sets)

    @overload
    def __getitem__(self, index: int) -> Options: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Options]: ...
    def __getitem__(self, index: int | slice) -> Options | Sequence[Options]:
        return self._sets[index]


_NAME = re.compile(rb"xla_[a-z][a-z0-9_]{3,}")
_NOT = re.compile(rb"_2[ef]|_5f|_proto|_once$")  # names of files in the code that protobuf makes


@cache
def option_names() -> frozenset[str]:
    """Return the words `xla_…` in jaxlib's binary, which may be names of options; empty where it can't be read.

    The fields of XLA's DebugOptions are described there, with few other such words. Takes 0.3 s: only for error
    messages.
    """
    names: set[bytes] = set()
    with suppress(OSError, ValueError):
        files = Path(jaxlib.__file__).parent.glob("*.so*")
        largest = max(files, key=lambda file: file.stat().st_size)
        with largest.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            names.update(_NAME.findall(content))
    return frozenset(name.decode("ascii") for name in names if not _NOT.search(name))
