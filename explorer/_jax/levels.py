"""What an optimization level tells XLA, by the names of its debug options (xla/xla.proto)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, overload

import jax

from explorer.model.attached import cached_property

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
