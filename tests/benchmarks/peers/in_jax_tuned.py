"""The workloads in JAX, by who tunes: Explorer's level 4, and a call that runs in the thread that makes it.

JAX hands a call of a thousand operations or more to another thread, and comes back before it is done. Where each
result is waited for at once, that gains nothing and costs two switches; JAX has an option for it, of a whole process.
"""

import jax

jax.config.update("jax_cpu_enable_async_dispatch", False)  # only before JAX starts

from tests.benchmarks.peers.in_jax import FUNCTIONS, TUNED, forget, ready, values, versions  # noqa: E402

__all__ = ["FUNCTIONS", "VARIANTS", "forget", "ready", "values", "versions"]

VARIANTS = (TUNED,)
