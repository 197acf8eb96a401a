"""Pure functions from captures, ledgers and profiles to their meaning, without JAX."""
