"""What an optimization level tells XLA, by the names of its debug options (xla/xla.proto)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax

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


def level_options(level: int) -> Options:
    """XLA's options for a level, 0 to 4, on the default backend."""
    return MORE.get(jax.default_backend(), {}) if level == 4 else LEVELS[level]
