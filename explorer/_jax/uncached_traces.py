"""Traces that run the user's Python though JAX knows the functions already."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from typing import Any

import jax

try:
    # Experimental, hence here. It is part of every trace's cache key, that of inner jits too, and changes nothing else.
    from jax.experimental.xla_metadata import set_xla_metadata as _metadata  # pyright: ignore[reportUnknownVariableType]
except ImportError:  # pragma: no cover - degrades to what JAX remembers of earlier traces
    _metadata: Any = None

_number = count(1)


@contextmanager
def uncached_traces() -> Generator[None]:
    """Nothing that JAX remembers of earlier traces is used within, nor used again later."""
    with _metadata(explorer_trace=str(next(_number))) if _metadata is not None else nullcontext():
        yield


def unchecked_leaks() -> AbstractContextManager[Any]:
    """No look for leaked tracers within: who records a trace keeps its values alive."""
    # The public function only switches that on; it is a partial() of the one that does both.
    switch = getattr(jax.checking_leaks, "func", None)
    return nullcontext() if switch is None else switch(False)
