"""Ways in which programs compile again without meaning to, each with its true cause and its cure.

    python -m tests.corpus_recompiles

prints for each what this library names as the reason, and what JAX's own `jax_explain_cache_misses` does.
"""
