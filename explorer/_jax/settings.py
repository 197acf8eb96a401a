"""JAX's settings: those of this thread, to be had in another one, and those under which a compiled call shows.

Public are the context managers, each for itself; none says what is set now, nor can all be carried to another thread.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
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

CARRIES_SETTINGS = bool(_settings)  # whether another thread can have the settings of this one


if _config is not None:

    def shows_compiled() -> bool:
        """Whether a setting is on under which a compiled call differs from the same operations one by one.

        With `debug_nans` and `debug_infs` each operation's result is looked at, and with a guard each transfer of a
        Python number; `disable_jit` asks for operations one by one, and so does `as_written`.
        """
        looked_at = _debug_nans.value or _debug_infs.value
        return bool(_written[0] or looked_at or _disable_jit.value or _guard.value not in _ALLOWED)

else:  # pragma: no cover

    def shows_compiled() -> bool:
        return True


def metadata_in_cache_key() -> AbstractContextManager[object]:
    """Have names count in the key of JAX's persistent cache within.

    A numbered program must not be found there in place of a plain one, whose key is the same without names, nor the
    plain one in its place.
    """
    setting: Any = getattr(_config, "compilation_cache_include_metadata_in_key", None)
    return nullcontext() if setting is None else setting(True)


_ALLOWED = (None, "allow")
_written = [0]  # how many ask for it now


@contextmanager
def as_written() -> Generator[None]:
    """Hot functions run operation by operation within, on all threads: somebody measures how long that takes."""
    _written[0] += 1
    try:
        yield
    finally:
        _written[0] -= 1


def local_settings() -> tuple[tuple[Any, Any], ...]:
    """The settings that hold in this thread alone, `with jax.enable_x64(True)` and the like, with their values."""
    return tuple((setting, value) for setting in _settings if (value := setting.get_local()) is not _unset)


@contextmanager
def with_settings(settings: tuple[tuple[Any, Any], ...]) -> Generator[None]:
    """Another thread's settings hold in this one."""
    before = [(setting, setting.swap_local(value)) for setting, value in settings]
    try:
        yield
    finally:
        for setting, value in reversed(before):
            setting.set_local(value)


# Those of which it depends what is traced, lowered and computed. The others say how errors read, or where files are.
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
    """What a program depends on, by name, as it holds in this thread: for a process that has settings of its own."""
    return {name: setting.value for setting in _settings if (name := getattr(setting, "name", "")) in _OF_PROGRAMS}


def settings_by_name(values: Mapping[str, Any]) -> tuple[tuple[Any, Any], ...]:
    """The settings of these names, as `with_settings` takes them; those that this JAX doesn't have are left out."""
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
    """XLA's options for a level, 0 to 4, on the default backend."""
    return MORE.get(jax.default_backend(), {}) if level == 4 else LEVELS[level]


def measured_options() -> list[Options]:
    """The sets of options of which level 5 keeps the fastest, XLA's own first, on the default backend."""
    backend = jax.default_backend()
    return [LEVELS[3], MORE.get(backend, {}), *TRIED.get(backend, ())]


class LazyOptions(Sequence[Options]):
    """Sets of options that are asked for when something is compiled first: to know the backend starts it.

    Args:
        get: Gives them, at least one.
    """

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
    """What may be a name of an option: the words `xla_…` in jaxlib's own code; empty where that can't be read.

    The fields of XLA's DebugOptions are described in that code, next to few other such words. It takes 0.3 s, so it is
    only for what somebody wrote wrong.
    """
    names: set[bytes] = set()
    with suppress(OSError, ValueError):
        files = Path(jaxlib.__file__).parent.glob("*.so*")
        largest = max(files, key=lambda file: file.stat().st_size)
        with largest.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            names.update(_NAME.findall(content))
    return frozenset(name.decode("ascii") for name in names if not _NOT.search(name))
