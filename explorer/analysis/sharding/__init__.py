"""Shardings of values in an optimized program, and wasted work and memory in sharded programs."""
