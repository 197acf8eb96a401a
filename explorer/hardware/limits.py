"""How much a process may take: of a compile for other hardware what its target says, else what the environment does."""

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
    """Seconds and bytes that one compile may take; 0 for as many as it likes."""

    seconds: float = 0.0
    memory: int = 0


def limits_of(target: Target) -> Limits:
    """Those of a target, which are given with it; else those of the environment.

    Raises:
        OptionError: The environment has no number there.
    """
    return Limits(
        target.compile_seconds or _number(_SECONDS, "seconds"), target.compile_memory or int(_number(_MEMORY, "bytes"))
    )


def limit_memory(most: int) -> None:
    """Have what would take more bytes fail in this process, rather than the system end another; 0 takes it back."""
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


_FRACTION = 0.75  # what XLA's allocator takes of a GPU's memory, unless it is told otherwise
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = r"(\d+(?:\.\d+)?)([KMGT]?)"
_TPU = re.compile(rf"(?s)Ran out of memory on HBM.*?required.*?\({_SIZE}\) exceeds available \w+ \({_SIZE}\)")
_USED = re.compile(rf"(?s)Ran out of memory in memory space hbm.*?Used {_SIZE} of {_SIZE}")


@dataclass(frozen=True)
class Capacity:
    """What a program may take of one device.

    Args:
        bytes: How many; 0 where that isn't known.
        basis: Who says so, as the rest of a sentence.
        is_compilers: Whether the compiler itself refuses what doesn't fit: then that decides, and not the figure.
    """

    bytes: int
    basis: str
    is_compilers: bool = False


def capacity_of(target: Target) -> Capacity:
    """What a program may take of each of a target's devices.

    A TPU's compiler lays out the whole of its memory, and refuses a program that needs more. A GPU's compiler compiles
    whatever it is given; when it runs, XLA's allocator has three quarters of the memory, or what
    `XLA_PYTHON_CLIENT_MEM_FRACTION` says.
    """
    device = target.device
    if target.platform == "tpu":
        return Capacity(device.memory, "the compiler's own error where it doesn't fit", True)
    if target.platform == "cpu":
        return Capacity(0, "a CPU's memory is that of its machine")
    fraction = _fraction()
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
    """A compiler's statement that a program doesn't fit into a device: bytes that it needs, at least, and has."""

    needed: int
    available: int


def read_overflow(message: str) -> Overflow | None:
    """The figures of a TPU compiler's error; None of any other.

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
