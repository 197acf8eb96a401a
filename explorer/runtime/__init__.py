"""Mechanisms that `compile()`, `jit()` and hot paths share: guards that are written for one structure."""
