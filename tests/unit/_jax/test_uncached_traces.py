"""Traces for which all Python runs leave next to nothing behind in JAX."""

import jax
import jax.numpy as jnp
import pytest

from explorer._jax import traces

X = jnp.ones(3)


@pytest.mark.parametrize("section", [traces.uncached_traces, traces.uncached_programs])
def test_what_jax_keeps_of_inner_functions_stays_bounded(section, monkeypatch):
    monkeypatch.setattr(traces, "_MAX_KEPT", 20)
    seen = []
    for _ in range(60):
        with section():
            jax.jit(lambda x: jnp.add(x, 1) * 2).trace(X)
        seen.append(traces._inner_count())
    assert max(seen) > 0
    assert max(seen) - min(seen) <= 60  # two or three a trace, and some that JAX has of others


def test_what_was_compiled_runs_on_without_another_trace():
    runs = []

    @jax.jit
    def inner(x):
        runs.append(1)
        return x * 2

    inner(X)
    for cache in (traces._inner_traces, traces._inner_calls):
        cache.cache_clear()
    inner(X)
    assert len(runs) == 1
