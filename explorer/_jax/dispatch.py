"""jax.jit's own dispatcher, in C++, with another answer to a call that it doesn't know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer._jax.internals import internals


def dispatcher(name: str, miss: Callable[..., tuple[Any, Any]], capacity: int) -> Any:
    """A function whose calls stay in C++ once `miss` has answered one of their kind; None if this JAX has none such.

    It is jax.jit's own dispatcher, with another answer to a call it doesn't know: jax.jit traces, which can refuse
    shapes and dtypes only in the middle of a trace, and a NumPy float64 not at all. A Python function around
    jax.jit would cost a tenth of a small call.

    Args:
        miss: Takes a call, and gives its result and `fast_path(…)` of what ran, or None to be asked each time.
        capacity: How many kinds of calls are kept.
    """
    if internals is None:
        return None

    def answer(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        __tracebackhide__ = True
        return *miss(*args, **kwargs), False

    def undispatched(*args: Any, **kwargs: Any) -> Any:  # within jax.disable_jit too, for it is compiled
        __tracebackhide__ = True
        return miss(*args, **kwargs)[0]

    how = internals
    cache = how.cache(capacity=capacity)
    made = how.function(name, undispatched, answer, [], [], how.key(), how.registry, how.shard, cache)
    made._fun = undispatched  # what JAX asks again when jax_debug_nans finds one in C++
    return made


def with_fast_path(compiled: Any) -> Callable[..., tuple[Any, Any]]:
    """A function that calls a `jax.stages.Compiled` and also gives what a `dispatcher` needs to do so by itself.

    The latter is None where Python must take part in each call, as with host callbacks.
    """
    call = compiled._executable.create_cpp_call(compiled._params) if internals is not None else None
    if call is None:
        return lambda *args: (compiled(*args), None)

    def run(*args: Any) -> tuple[Any, Any]:
        __tracebackhide__ = True
        try:
            return call._cache_miss(*args)[:2]
        except internals.not_finite as error:  # with jax_debug_nans; jax.jit turns it into this too
            raise FloatingPointError(f"invalid value ({error.ty}) encountered in {error.name}") from None

    return run
