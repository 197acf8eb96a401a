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

try:
    # What jitted functions were traced to, `jnp.add` and its like too: kept as long as these live, without bound; and
    # with what they were called, which holds the same.
    from jax._src.interpreters.partial_eval import trace_to_jaxpr as _inner_traces  # pyright: ignore
    from jax._src.pjit import _infer_params_cached as _inner_calls  # pyright: ignore
except ImportError:  # pragma: no cover - what is traced here stays where JAX keeps it
    _inner_traces: Any = None
    _inner_calls: Any = None

_KEPT = 512  # inner programs of traces from here, some 5 kB each, that JAX may keep though nobody asks for them again
_number = count(1)
_added = [0]


@contextmanager
def _let_go() -> Generator[None]:
    """What is traced within is let go of once it is much. All that JAX knows of inner functions goes with it.

    Entries can't be removed by their mark. What is compiled stays; the next trace of a new shape does a little anew.
    """
    before = _inner_count()
    try:
        yield
    finally:
        _added[0] += max(_inner_count() - before, 0)
        if _added[0] > _KEPT:
            _added[0] = 0
            for cache in (_inner_traces, _inner_calls):
                getattr(cache, "cache_clear", lambda: None)()


def _inner_count() -> int:
    info = getattr(_inner_traces, "cache_info", None)
    return getattr(info(), "currsize", 0) if info is not None else 0


@contextmanager
def uncached_traces() -> Generator[None]:
    """Nothing that JAX remembers of earlier traces is used within, nor used again later."""
    with _metadata(explorer_trace=str(next(_number))) if _metadata is not None else nullcontext(), _let_go():
        yield


@contextmanager
def uncached_programs() -> Generator[None]:
    """The same for a trace that will be compiled: in that, XLA would see the mark of `uncached_traces`."""
    mark: Any = nullcontext()
    make: Any = _cache_of_calls
    if make is not None and internals is not None:
        mark = make(internals.cache(capacity=_CALLS))
    with mark, _let_go():
        yield


def is_uncached_mark(value: Any) -> bool:
    """Whether a setting of a trace is what `uncached_programs` set, and none of the user's."""
    return internals is not None and isinstance(value, type(internals.cache(capacity=1)))


def unchecked_leaks() -> AbstractContextManager[Any]:
    """No look for leaked tracers within: who records a trace keeps its values alive."""
    # The public function only switches that on; it is a partial() of the one that does both.
    switch = getattr(jax.checking_leaks, "func", None)
    return nullcontext() if switch is None else switch(False)
