"""Findings as text, page and notebook output; knows the model alone, no JAX."""
