"""This machine: its default device, processor, cores, caches and memory."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax

from explorer.capture.backends import environment
from explorer.files.disk import read_text

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_UNKNOWN_CACHE = 32 << 20
_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
# Limits of a container, in versions 2 and 1 of control groups.
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def processor() -> str:
    """Return the processor's model name, or else the name of its architecture."""
    with suppress(OSError):
        for line in read_text("/proc/cpuinfo", errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def usable_cores() -> frozenset[int]:
    """Return the numbers of the cores that this process may use."""
    # Not on macOS and Windows.
    affinity = getattr(os, "sched_getaffinity", None)
    return frozenset(affinity(0) if affinity is not None else range(os.cpu_count() or 1))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(usable_cores())


def last_cache() -> int:
    """Return the bytes of the largest cache; 32 MiB if unknown."""
    sizes: list[int] = []
    with suppress(OSError, ValueError):
        for file in _CACHES.glob("index*/size"):
            text = read_text(file).strip()
            sizes.append(int(text[:-1]) * _UNITS[text[-1]] if text[-1:] in _UNITS else int(text))
    return max(sizes, default=_UNKNOWN_CACHE)


def memory_bytes() -> int:
    """Return the bytes that this process may use: physical memory or the cgroup's limit if less; 0 if unknown."""
    total = 0
    with suppress(OSError, ValueError, AttributeError):
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for file in _LIMITS:
        with suppress(OSError, ValueError):  # the file holds `max` if there is no limit
            total = min(total or 1 << 62, int(read_text(file)))
    return max(total, 0)


def free_bytes() -> int:
    """Return the bytes that another process could take now; 0 if unknown."""
    with suppress(OSError, ValueError):
        for line in read_text("/proc/meminfo").splitlines():
            name, _, value = line.partition(":")
            if name == "MemAvailable":
                return min(int(value.split()[0]) << 10, memory_bytes() or 1 << 62)
    return 0


def busy_note() -> str:
    """Return a note if the load average exceeds the number of usable cores by more than 0.5; else ""."""
    runnable, there = load(), cores()
    if runnable <= there + 0.5:  # the measurement itself is one of them, and the average of a minute is not exact
        return ""
    return f"the machine is busy: {runnable:.1f} programs compete for {there} cores"


def load() -> float:
    """Return the load average of the last minute; 0 if unknown."""
    try:
        return os.getloadavg()[0]
    except (OSError, AttributeError):
        return 0.0


def default_device() -> Any:
    # No array is made to find out: a transfer guard might forbid it.
    of_jax: Any = jax
    chosen = of_jax.config.jax_default_device
    is_named = chosen is None or isinstance(chosen, str)
    return of_jax.devices(chosen)[0] if is_named else chosen


def environment_with_cores() -> dict[str, str]:
    """Return the versions and device of a capture's environment, and the number of usable cores."""
    count = str(cores())
    return {**environment(), "cores": count}
