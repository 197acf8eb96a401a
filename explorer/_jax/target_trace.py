"""Tracing for hardware that isn't here: the user's code sees the target where it reads a device's platform.

Code often chooses a kernel by `mesh.devices[0].platform`, and JAX's cuDNN attention refuses to be traced without a GPU
plugin. JAX keeps traces, so those for a target get keys of their own: the session's own calls never find them.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from os import sep
from pathlib import Path
from threading import RLock, get_ident
from types import SimpleNamespace
from typing import Any
from zlib import crc32

import jax
from jax._src import config  # non-public: a key of traces that changes nothing else
from jax._src.cudnn import fused_attention_stablehlo  # non-public: its checks ask for devices that are here
from jaxlib import xla_client  # non-public: the class of devices, whose property is replaced for a while

_Device: Any = getattr(xla_client, "Device")  # noqa: B009 - its type is unknown
_cudnn: Any = fused_attention_stablehlo
_PLATFORMS = {"cuda": "gpu", "rocm": "gpu"}  # a device's platform, by the compiler's
_LIBRARIES = tuple(str(Path(module.__file__ or "").parent) + sep for module in (jax, sys.modules["jaxlib"]))
_CUDNN = 91_200  # version of cuDNN that JAX's plugin for CUDA 13 is built with
_one_at_a_time = RLock()


@contextmanager
def traced_for(target: str, platform: str, capability: str = "") -> Generator[None]:
    """Trace for a compiler platform (`cuda`, `tpu`, …) in this context; JAX's own code still sees the real devices.

    `target` names the hardware in the keys of JAX's traces. `capability` is a CUDA device's, such as `9.0a`.
    """
    with _one_at_a_time, config.jax_xla_profile_version(1 + crc32(target.encode()) // 2):
        real, thread, checks = _Device.platform, get_ident(), {name: getattr(_cudnn, name) for name in _CHECKS}

        def seen(device: Any) -> str:
            caller = sys._getframe(1).f_code.co_filename  # pyright: ignore[reportPrivateUsage] - the documented way
            is_users = get_ident() == thread and not caller.startswith(_LIBRARIES)
            return _PLATFORMS.get(platform, platform) if is_users else real.__get__(device)

        _Device.platform = property(seen)
        if capability:
            _answer_for(_numbers(capability))
        try:
            yield
        finally:
            _Device.platform = real
            for name, check in checks.items():
                setattr(_cudnn, name, check)


_CHECKS = ("cuda_versions", "check_compute_capability", "is_cuda_compute_capability_equal")


def _answer_for(own: tuple[int, ...]) -> None:
    """Let JAX's cuDNN attention be traced for a GPU of this compute capability."""

    def check_compute_capability(capability: str) -> bool:
        return own >= _numbers(capability)

    def is_equal(capability: str) -> bool:
        return own == _numbers(capability)

    if _cudnn.cuda_versions is None:
        _cudnn.cuda_versions = SimpleNamespace(cudnn_get_version=lambda: _CUDNN)
    _cudnn.check_compute_capability, _cudnn.is_cuda_compute_capability_equal = check_compute_capability, is_equal


def _numbers(capability: str) -> tuple[int, ...]:
    """Return `(9, 0)` for `9.0a`."""
    return tuple(int("".join(filter(str.isdigit, part))) for part in capability.split("."))
