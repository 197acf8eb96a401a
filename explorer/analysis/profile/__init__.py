"""Profiles: recorded events attributed to instructions, kernels, source lines and Python stacks."""
