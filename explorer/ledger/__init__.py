"""Watches what JAX traces, lowers and compiles in this process, and says why."""
