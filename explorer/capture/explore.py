"""explore(): trace, lower and compile a function once, and keep what was seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax

from explorer.capture.hlo import read_hlo
from explorer.capture.jaxpr import read_jaxpr
from explorer.capture.stablehlo import read_stablehlo
from explorer.errors import ExploreError, NotCallableError
from explorer.model.capture import Capture, Durations, Stage
from explorer.model.graph import Graph

__all__ = ["explore"]


def explore(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Capture:
    """Compile a function for these arguments and keep every stage of it.

    The function's Python runs once, to be traced; the compiled program is not run.

    Args:
        function: Any callable, or a `jax.jit` function.
        args, kwargs: Arrays or `jax.ShapeDtypeStruct`, or trees of them, as for a call.

    Raises:
        NotCallableError: `function` can't be called.
        ExploreError: Tracing, lowering or compiling failed. It has the capture of the steps that worked as
            `.capture`, and the error itself as `__cause__`.

    Example:
        >>> import jax.numpy as jnp
        >>> explore(lambda x: jnp.tanh(x) * 2, jnp.ones(8))
        Capture(<lambda>: jaxpr → stablehlo → hlo)
    """
    if not callable(function):
        raise NotCallableError(
            f"explore takes a function and its arguments; it got {type(function).__name__}. "
            "Hint: write explore(f, x), not explore(f(x))."
        )
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name, file = getattr(plain, "__name__", type(plain).__name__), code.co_filename if code else ""
    jitted: Any = function if hasattr(function, "trace") else jax.jit(function)
    stages: list[Stage] = []
    seconds: dict[str, float] = {}

    def capture(failure: str = "") -> Capture:
        return Capture(name, file, tuple(stages), Durations(**seconds), _environment(), failure)

    def step(what: str, run: Callable[[], Any]) -> Any:
        start = perf_counter()
        try:
            return run()
        except Exception as error:
            failure = f"{what} failed: {type(error).__name__}"
            raise ExploreError(
                f"{name} could not be explored: {failure}: {str(error).splitlines()[0] if str(error) else ''}",
                capture(failure),
            ) from error
        finally:
            seconds[what] = perf_counter() - start

    traced = step("trace", lambda: jitted.trace(*args, **kwargs))
    stages.append(Stage("jaxpr", lambda: read_jaxpr(traced.jaxpr)))
    lowered = step("lower", traced.lower)
    stages.append(Stage("stablehlo", lambda: _read_text(lowered.as_text(debug_info=True), read_stablehlo)))
    compiled = step("compile", lowered.compile)
    stages.append(Stage("hlo", lambda: _read_text(compiled.as_text(), read_hlo)))
    return capture()


def _read_text(text: str, read: Callable[[str], Graph]) -> tuple[str, Graph]:
    return text, read(text)


def _environment() -> dict[str, str]:
    return {"jax": jax.__version__, "backend": jax.default_backend()}
