"""XLA's flags for CPUs and its description of GPUs."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from functools import cache
from typing import Any

from explorer.files.disk import read_text
from explorer.model.target import Hardware, Target

# XLA's CPU compiler takes its machine's features, without those newer than `xla_cpu_max_isa` (`cpu_features.cc`). It
# has no topologies of other CPUs ("topology not implemented for cpu", jaxlib 0.10 to 0.12), and a wheel has no code
# generator for another architecture.
ARM = "XLA compiles for a CPU only on a machine of its architecture: for ARM use explore() on an ARM machine"


def xla_flags(target: Target) -> str:
    """Return the value of `XLA_FLAGS` for a process that compiles for a CPU target; empty for other hardware."""
    if target.platform != "cpu":
        return ""
    count = f" --xla_force_host_platform_device_count={target.count}" if target.count > 1 else ""
    return f"--xla_cpu_max_isa={target.device.compiler['isa']}{count}"


def lacking_feature(device: Hardware) -> str:
    """Return what this machine lacks to compile for a CPU, as words after "needs"; empty if it lacks nothing."""
    if device.platform != "cpu":
        return ""
    machine = platform.machine()
    if machine.lower() not in ("x86_64", "amd64"):
        return f"an x86-64 machine: this one is {machine}, and its compiler makes code for that architecture only"
    features = _features()
    flag: str = device.compiler["flag"]
    if features and flag not in features:
        return f"a machine that has {flag}: XLA can leave out instructions of this CPU, but not add others"
    return ""


@cache
def _features() -> frozenset[str]:
    """Return the CPU flags that the system reports; may be empty."""
    try:
        text = read_text("/proc/cpuinfo")
    except OSError:
        return frozenset()
    lines = (line.partition(":")[2] for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").split())


# Numbers of XLA's PrimitiveType by the dtype with their rate: on these GPUs, bf16 has the rate of
# f16, and all 8-bit floats have one rate.
_TYPES = {
    "s8": (2, 6),
    "s32": (4, 8),
    "f16": (10, 16),
    "f32": (11,),
    "f64": (12,),
    "f8": (19, 20, 23, 24, 25, 28, 29, 33),
}


def target_config(device: Hardware) -> str:
    """Return XLA's `GpuTargetConfig` as text; empty for hardware other than GPUs."""
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
    if is_cuda:  # new enough for everything that XLA may want of the driver and cuDNN
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
    # sm_90a and sm_100a have instructions of this generation only, which XLA's matrix products use.
    feature = "ACCELERATED_FEATURES" if text.endswith("a") else "NONE"
    return f"cuda_compute_capability {{ major: {major} minor: {minor} feature_extension: {feature} }}"


def _rates(table: Mapping[str, Any], clock: float, fixed: int) -> str:
    # For a scalar unit, the table has the number of units, each with `fixed` operations per clock. For a matrix unit
    # (`fixed` is 0) the table has the operations per clock.
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
