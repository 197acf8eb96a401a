"""Compile events, the cache keys that JAX compares, and the ledger of events."""
