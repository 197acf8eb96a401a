"""What a capture, a ledger or a profile means: pure functions from values to values, without JAX."""
