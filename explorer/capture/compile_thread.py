"""The compiler in a thread of its own, while this one does something else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from explorer._jax.calls import suppress_recording
from explorer._jax.settings import CARRIES_SETTINGS, local_settings, with_settings
from explorer.capture.backends import CompiledProgram


def compile_beside(compile_program: Callable[[], CompiledProgram], meanwhile: Callable[[], object]) -> CompiledProgram:
    """What a compiler gives, which works in another thread while something else is done in this one.

    XLA lets go of Python, and its passes take one processor. The user's Python stays in the thread that called, for
    settings, meshes and tracers are a thread's own; the compiler gets the settings.
    """
    if not CARRIES_SETTINGS:  # pragma: no cover - no such JAX is supported
        meanwhile()
        return compile_program()
    settings = local_settings()

    def compile_there() -> CompiledProgram:
        with with_settings(settings), suppress_recording():
            return compile_program()

    with ThreadPoolExecutor(1, "explorer-compiler") as pool:
        program = pool.submit(compile_there)
        meanwhile()
        return program.result()
