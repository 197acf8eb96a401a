"""CPUs by their instructions: what XLA is given for one, and whether this machine's compiler has it."""

from __future__ import annotations

import platform
from functools import cache

from explorer.files.disk import read_text
from explorer.model.target import Hardware, Target

# XLA's compiler for CPUs takes the features of the machine that it runs on, and leaves out what is newer than it is
# given (`cpu_features.cc`); a topology of CPUs that aren't here it has not ("topology not implemented for cpu", jaxlib
# 0.10 to 0.12), and a wheel has no other architecture's code generator.
ARM = "a CPU's compiler makes code for the architecture of its own machine: for ARM on ARM alone, where explore() is it"


def xla_flags(target: Target) -> str:
    """What `XLA_FLAGS` is in the process that compiles for CPUs, empty for other hardware.

    It is read once in a process: given with one program, XLA takes it and goes by its own machine.
    """
    if target.platform != "cpu":
        return ""
    count = f" --xla_force_host_platform_device_count={target.count}" if target.count > 1 else ""
    return f"--xla_cpu_max_isa={target.device.compiler['isa']}{count}"


def lacking_feature(device: Hardware) -> str:
    """Why this machine can't compile for a CPU, as the rest of a sentence; empty where it can."""
    if device.platform != "cpu":
        return ""
    machine = platform.machine()
    if machine.lower() not in ("x86_64", "amd64"):
        return f"an x86-64 machine: this one is {machine}, and its compiler makes code for its own alone"
    features = _features()
    flag: str = device.compiler["flag"]
    if features and flag not in features:
        return f"a machine that has {flag} itself: XLA leaves instructions out, and adds none"
    return ""


@cache
def _features() -> frozenset[str]:
    """What the system says that this machine's CPU has; empty where it doesn't say."""
    try:
        text = read_text("/proc/cpuinfo")
    except OSError:
        return frozenset()
    lines = (line.partition(":")[2] for line in text.splitlines() if line.startswith("flags"))
    return frozenset(next(lines, "").split())
