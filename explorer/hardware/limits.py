"""How much a process may take: of a compile for other hardware what its target says, else what the environment does."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass

from explorer.errors import OptionError
from explorer.model.target import Target

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
