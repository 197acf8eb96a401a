"""Fates of equations on the way to the optimized program."""
