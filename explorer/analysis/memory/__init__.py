"""Buffers of an optimized program: schedule, lifetimes, and possible donations."""
