"""Eager code that gets compiled by itself: what is called often, whether that is safe, and what it brings."""
