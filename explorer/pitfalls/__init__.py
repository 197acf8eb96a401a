"""Pitfalls of JAX in a function as it is traced: rules (`rule_….py`), their evidence, and fixes."""
