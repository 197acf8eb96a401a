"""Compilation at call time, with captured state: jit, and the switch that turns compilation off."""

from explorer.errors import LeakedStateError, RecompilationWarning, StateError, UnwrittenStateWarning
from explorer.jitted.jit import Jitted, jit, registry
from explorer.jitted.switch import disable_compile, enable_compile

__all__ = [
    "Jitted",
    "LeakedStateError",
    "RecompilationWarning",
    "StateError",
    "UnwrittenStateWarning",
    "disable_compile",
    "enable_compile",
    "jit",
    "registry",
]
