"""A GPU's figures as XLA's compiler takes them: the text of a `stream_executor.GpuTargetConfigProto`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.model.target import Hardware

# The numbers of XLA's PrimitiveType, by the dtype whose rate they have: bf16 is as fast as f16 on each of these, and
# one 8-bit format as fast as another.
_TYPES = {
    "s8": (2, 6),
    "s32": (4, 8),
    "f16": (10, 16),
    "f32": (11,),
    "f64": (12,),
    "f8": (19, 20, 23, 24, 25, 28, 29, 33),
}


def target_config(device: Hardware) -> str:
    """The proto as text; empty for what is no GPU.

    What it says of a driver and cuDNN is that both are new enough for all that XLA may want of them.
    """
    if device.platform not in ("cuda", "rocm"):
        return ""
    figures = device.compiler
    is_cuda = device.platform == "cuda"
    shared = figures["shared_memory"]
    info = {
        "threads_per_block_limit": 1024,
        "threads_per_warp": 32 if is_cuda else 64,
        "threads_per_core_limit": figures["threads"],
        "shared_memory_per_block": shared["block"],
        "shared_memory_per_core": shared["core"],
        "shared_memory_per_block_optin": shared["most"],
        "core_count": figures["cores"],
        "fpus_per_core": figures["fpus"],
        "clock_rate_ghz": figures["clock"],
        "block_dim_limit_x": 2147483647,
        "block_dim_limit_y": 65535,
        "block_dim_limit_z": 65535,
        "thread_dim_limit_x": 1024,
        "thread_dim_limit_y": 1024,
        "thread_dim_limit_z": 64 if is_cuda else 1024,
        "registers_per_core_limit": 65536 if is_cuda else 131072,
        "registers_per_block_limit": 65536 if is_cuda else 131072,
        "memory_bandwidth": int(device.bandwidth),
        "l2_cache_size": figures["l2"],
        "device_memory_size": device.memory,
    }
    parts = [f"{name}: {value}" for name, value in info.items()]
    parts += [f'name: "{device.name}"', _capability(device)]
    if "scalar" in figures:
        parts.append(f"scalar_unit_description {{ {_rates(figures['scalar'], figures['clock'], 1)} }}")
        parts.append(f"matrix_unit_description {{ {_rates(figures['matrix'], figures['clock'], 0)} }}")
    if figures["active_links"]:
        parts.append(f"device_interconnect_info {{ active_links: {figures['active_links']} }}")
    if is_cuda:
        versions = {"driver": "13.0.0", "runtime": "12.8.0", "compile_time_toolkit": "12.8.0", "dnn": "9.10.0"}
        parts += [f'{name}_version: "{version}"' for name, version in versions.items()]
    dnn = "dnn_version_info { major: 9 minor: 10 }" if is_cuda else ""
    return (
        f'gpu_device_info {{ {" ".join(parts)} }} platform_name: "{device.platform.upper()}" {dnn} '
        f'device_description_str: "{device.name}"'
    )


def _capability(device: Hardware) -> str:
    text: str = device.compiler["capability"]
    if device.platform == "rocm":
        return f'rocm_compute_capability {{ gcn_arch_name: "{text}" }}'
    major, _, minor = text.rstrip("a").partition(".")
    # sm_90a and sm_100a: instructions of this generation only, which XLA's matrix products use.
    feature = "ACCELERATED_FEATURES" if text.endswith("a") else "NONE"
    return f"cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {feature} }}"


def _rates(table: Mapping[str, Any], clock: float, fixed: int) -> str:
    """Of a scalar unit, `fixed` operations a clock in as many units as the table says; else the other way round."""
    infos: list[str] = []
    for dtype, rate in table.items():
        for number in _TYPES.get(dtype, ()):
            units, ops = (rate, _FUSED if dtype in ("f16", "f32") else fixed) if fixed else (table["units"], rate)
            ghz = clock if fixed or dtype == "f64" else table["clock"]
            infos.append(
                f"rate_infos {{ key: {number} value {{ clock_rate_ghz: {ghz} units_per_core: {units} "
                f"ops_per_clock: {ops} }} }}"
            )
    return " ".join(infos)


_FUSED = 2  # a multiply-add counts as two
