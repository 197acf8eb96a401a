"""How long something takes that JAX hasn't done before."""

import gc
from time import perf_counter

import jax


def cold_seconds(run):
    """Of the clock, with nothing in JAX's caches, and the result: XLA compiles on all cores, and one waits for all."""
    jax.clear_caches()
    gc.collect()
    start = perf_counter()
    result = run()
    return perf_counter() - start, result
