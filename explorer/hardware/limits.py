"""Limits of a compile for other hardware, and memory limits of the hardware itself."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass

from explorer.errors import OptionError
from explorer.model.target import Target
from explorer.model.units import bytes_text

_SECONDS, _MEMORY = "EXPLORER_TARGET_SECONDS", "EXPLORER_TARGET_MEMORY"


@dataclass(frozen=True)
class Limits:
    """Seconds and bytes that one compile may take; 0 for no limit."""

    seconds: float = 0.0
    memory: int = 0


def limits_of(target: Target) -> Limits:
    """Return a target's limits, or else those of the environment; OptionError if these are no numbers."""
    return Limits(
        target.compile_seconds or _number(_SECONDS, "seconds"), target.compile_memory or int(_number(_MEMORY, "bytes"))
    )


def limit_memory(most: int) -> None:
    """Limit this process's data in bytes (0 for no limit), so that large allocations fail in Python."""
    # Windows has no such module, and a system may refuse the limit: the compile then runs without one.
    with suppress(ImportError, ValueError, OSError):
        import resource

        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (most or hard, hard))


def _number(name: str, unit: str) -> float:
    text = os.environ.get(name, "").strip()
    try:
        value = float(text or 0)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise OptionError(f"{name} is {text!r}; allowed is a number of {unit}, or nothing for no limit.")
    return value


_FRACTION = 0.75  # of a GPU's memory, XLA's default
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = r"(\d+(?:\.\d+)?)([KMGT]?)"
_TPU = re.compile(rf"(?s)Ran out of memory on HBM.*?required.*?\({_SIZE}\) exceeds available \w+ \({_SIZE}\)")
_USED = re.compile(rf"(?s)Ran out of memory in memory space hbm.*?Used {_SIZE} of {_SIZE}")


@dataclass(frozen=True)
class Capacity:
    """Memory for a program on one device.

    Args:
        bytes: Size; 0 if unknown.
        basis: Source of the figure, as the end of a sentence.
        is_compilers: Whether the compiler itself refuses larger programs, which then decides.
    """

    bytes: int
    basis: str
    is_compilers: bool = False


def capacity_of(target: Target) -> Capacity:
    """Return the memory for a program on each of a target's devices."""
    device = target.device
    if target.platform == "tpu":  # the compiler allocates all memory, and refuses a program that needs more
        return Capacity(device.memory, "the compiler's own error where it doesn't fit", True)
    if target.platform == "cpu":
        return Capacity(0, "a CPU's memory is that of its machine")
    fraction = _fraction()  # a GPU's compiler takes any program; XLA's allocator then has a fraction of the memory
    basis = f"{fraction:.0%} of the {bytes_text(device.memory)} published, which XLA's allocator takes"
    return Capacity(int(fraction * device.memory), basis)


def _fraction() -> float:
    names = ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION")
    try:
        fraction = float(next(filter(None, map(os.environ.get, names)), _FRACTION))
    except ValueError:
        return _FRACTION
    return fraction if 0 < fraction <= 1 else _FRACTION


@dataclass(frozen=True)
class Overflow:
    """Least bytes of a program, and bytes of the device, from a compiler's error."""

    needed: int
    available: int


def read_overflow(message: str) -> Overflow | None:
    """Return the figures of a TPU compiler's out-of-memory error; None for any other text.

    Example:
        >>> read_overflow("Ran out of memory on HBM, the total memory required for HLO temporaries (32.00G) exceeds "
        ...               "available HBM (15.75G).").needed
        34359738368
    """
    match = _TPU.search(message) or _USED.search(message)
    if match is None:
        return None
    needed, needed_unit, there, there_unit = match.groups()
    return Overflow(int(float(needed) * _UNITS[needed_unit]), int(float(there) * _UNITS[there_unit]))
