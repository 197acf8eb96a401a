"""A `jax.jit` function whose errors are told by somebody else; what its C++ answers by itself costs nothing more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from explorer._jax.internals import internals

_KINDS_OF_CALL = 1024


def with_explained_misses(
    jitted: Any,
    explain: Callable[[Exception, tuple[Any, ...], dict[str, Any]], None],
    answer: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any] | None = None,
) -> Any:
    """The same function, as far as a call goes: what JAX raises where it traces and compiles is given to `explain`.

    jax.jit's dispatcher is C++ and calls Python for what it has no entry for. A function around it would be called
    each time; this one is in the place of that Python alone.

    Args:
        jitted: What `jax.jit` returned.
        explain: Takes the error and the call's arguments, and raises another one, or nothing: then it stays.
        answer: What answers such a call; it takes what JAX would do, and the call's arguments.
    """
    how, info = internals, getattr(jitted, "_jit_info", None)
    if how is None or info is None or not hasattr(jitted, "_cache_miss"):
        return jitted

    def miss(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        try:
            if answer is not None:
                return answer(jitted._cache_miss, args, kwargs)
            return jitted._cache_miss(*args, **kwargs)
        except Exception as error:
            explain(error, args, kwargs)
            raise

    made = how.function(
        jitted.__name__, jitted._fun, miss, info.static_argnums, info.static_argnames, how.key(), how.registry,
        how.shard, how.cache(capacity=_KINDS_OF_CALL),
    )  # fmt: skip
    made._fun = jitted._fun  # what JAX asks again when jax_debug_nans finds one in C++
    return made
