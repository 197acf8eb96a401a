"""Traces that run the user's Python though JAX knows the functions already."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import count
from typing import Any

import jax

from explorer._jax.internals import internals

_CALLS = 4096  # what JAX keeps of calls by default

try:
    # Experimental, hence here. It is part of every trace's cache key, that of inner jits too, and changes nothing else.
    from jax.experimental.xla_metadata import set_xla_metadata as _metadata  # pyright: ignore[reportUnknownVariableType]
except ImportError:  # pragma: no cover - degrades to what JAX remembers of earlier traces
    _metadata: Any = None

try:
    # Part of every key too. JAX takes it for the cache of calls of what is jitted within, and equations don't show it.
    from jax._src.config import jax_jit_cpp_cache_obj as _cache_of_calls  # pyright: ignore
except ImportError:  # pragma: no cover - as above
    _cache_of_calls: Any = None

_number = count(1)


@contextmanager
def uncached_traces() -> Generator[None]:
    """Nothing that JAX remembers of earlier traces is used within, nor used again later."""
    with _metadata(explorer_trace=str(next(_number))) if _metadata is not None else nullcontext():
        yield


def uncached_programs() -> AbstractContextManager[Any]:
    """The same for a trace that will be compiled: in that, XLA would see the mark of `uncached_traces`."""
    if _cache_of_calls is None or internals is None:
        return nullcontext()
    return _cache_of_calls(internals.cache(capacity=_CALLS))


def is_uncached_mark(value: Any) -> bool:
    """Whether a setting of a trace is what `uncached_programs` set, and none of the user's."""
    return internals is not None and isinstance(value, type(internals.cache(capacity=1)))


def unchecked_leaks() -> AbstractContextManager[Any]:
    """No look for leaked tracers within: who records a trace keeps its values alive."""
    # The public function only switches that on; it is a partial() of the one that does both.
    switch = getattr(jax.checking_leaks, "func", None)
    return nullcontext() if switch is None else switch(False)
